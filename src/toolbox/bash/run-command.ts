import { stat } from 'node:fs/promises'
import type { ToolOutcome } from '../../tools/outcome.js'
import type { ToolContext } from '../../tools/spec.js'
import { FileFailure, invalidInput, isMissing } from '../workspace/failure.js'
import { shownPath } from '../workspace/path-text.js'
import { environmentOf } from '../process/environment.js'
import type { Environment } from '../process/environment.js'
import { runProcess } from '../process/run-process.js'
import type { ProcessEnd } from '../process/run-process.js'
import { ownFolderIn } from '../sandbox/own-folder.js'
import { Sandbox, SANDBOX_HOME, UNCONFINED } from '../sandbox/sandbox.js'
import type { Command, Room } from '../sandbox/sandbox.js'
import type { Workspace } from '../workspace/workspace.js'
import { cancelledOutcome, endedOutcome, unstartedOutcome } from './command-outcome.js'
import type { Launch } from './command-outcome.js'
import type { BashSettings } from './options.js'
import { findProgram } from '../process/find-program.js'
import { quoted } from '../process/quoted.js'

export interface BashArguments {
  readonly command: string
  readonly cwd?: string
  readonly timeout_ms?: number
  readonly max_chars?: number
}

/** A command, ready to be started. */
export interface PreparedCommand {
  readonly launch: Launch
  readonly isConfined: boolean
  readonly command: Command
  /** To be called when it has ended. */
  readonly close: () => Promise<void>
}

export interface BashCall {
  readonly workspace: Workspace
  /** Checked against the tool's schema by the tool boundary. */
  readonly args: BashArguments
  readonly context: ToolContext
}

/** Runs commands with the same settings. */
export class ShellRunner {
  readonly #settings: BashSettings
  readonly #shells: readonly string[] | undefined
  readonly #sandbox: Sandbox

  /** @param shells Shells to try, in this order. Default `/bin/bash`, `/bin/sh`. */
  constructor(settings: BashSettings, shells?: readonly string[]) {
    this.#settings = settings
    this.#shells = shells
    this.#sandbox = new Sandbox(settings)
  }

  async run(call: BashCall): Promise<ToolOutcome> {
    const { workspace, args, context } = call
    const prepared = await this.prepare(call)
    if ('kind' in prepared) return prepared
    const { launch, command, close } = prepared
    try {
      const end = await this.#execute(call, prepared.isConfined, command)
      if (end.kind === 'unstarted') return unstartedOutcome(launch, end.code)
      if (end.stopped === 'aborted' || context.signal.aborted) return cancelledOutcome(launch, end)
      const maxChars = Math.min(args.max_chars ?? Infinity, this.#settings.maxOutputChars)
      return await endedOutcome({ workspace, launch, end, maxChars, timeouts: this.#timeouts(args) })
    } finally {
      await close()
    }
  }

  /** A command that can be started, or the reason why it is not. */
  async prepare({ workspace, args, context }: BashCall): Promise<PreparedCommand | ToolOutcome> {
    if (args.command.includes('\0')) {
      throw invalidInput('`command` contains a NUL character, which no shell accepts.')
    }
    const cwd = await folderAt(workspace, args.cwd ?? '.')
    const shell = await findShell(this.#shells)
    const mode = this.#sandbox.modeFor(context.sandbox ?? 'auto')
    const sandbox = mode === 'off' ? UNCONFINED : await this.#sandbox.open(await roomIn(workspace))
    if (sandbox.form === 'none' && mode === 'required') return withoutSandbox(sandbox.problem)
    const isConfined = sandbox.form !== 'none'
    const environment = this.#environment(isConfined)
    const command: Command = {
      program: shell.path,
      args: ['-lc', commandPrefix(environment) + args.command],
      cwd,
      environment: startingEnvironment(environment),
    }
    const launch: Launch = {
      command: args.command,
      shell: shell.shown,
      cwd: workspace.display(cwd),
      sandbox: sandbox.form,
      sandboxProblem: sandbox.problem,
      refusedHosts: () => sandbox.refusedHosts,
    }
    return { launch, isConfined, command: sandbox.wrap(command), close: () => sandbox.close() }
  }

  async #execute({ args, context }: BashCall, isConfined: boolean, command: Command): Promise<ProcessEnd> {
    const end = await runProcess({
      ...command,
      ...this.#timeouts(args),
      endsAll: !isConfined,
      graceMs: this.#settings.graceMs,
      maxOutputBytes: this.#settings.maxOutputBytes,
      signal: context.signal,
      onLines: (stream, output) => context.progress({ kind: 'shell_output', stream, output }),
    })
    if (end.kind === 'ended') {
      const timedOut = end.stopped === 'soft' || end.stopped === 'hard'
      const success = end.exitCode === 0 && !timedOut
      context.progress({ kind: 'command_exit', exitCode: end.exitCode, success, ...(timedOut && { timedOut }) })
    }
    return end
  }

  #timeouts({ timeout_ms: wanted }: BashArguments): { timeoutMs: number; hardTimeoutMs: number } {
    const { timeoutMs, hardTimeoutMs } = this.#settings
    return { timeoutMs: Math.min(wanted ?? timeoutMs, hardTimeoutMs), hardTimeoutMs }
  }

  #environment(isConfined: boolean): Environment {
    const environment = environmentOf(this.#settings.env)
    if (!isConfined) return environment
    const { HOME = SANDBOX_HOME, TMPDIR = '/tmp' } = this.#settings.env
    return { ...environment, HOME, TMPDIR }
  }
}

/** @throws PathValidationError; FileFailure `PathNotFound`, `NotADirectory` (BA-06, BA-07). */
async function folderAt(workspace: Workspace, raw: string): Promise<string> {
  const path = await workspace.rootPolicy.resolve(raw)
  const stats = await stat(path).catch((error: unknown) => {
    if (isMissing(error)) throw new FileFailure('PathNotFound', `path not found: ${shownPath(raw)}`)
    throw error
  })
  if (!stats.isDirectory()) throw new FileFailure('NotADirectory', `path is not a directory: ${shownPath(raw)}`)
  return path
}

/** The files of a command in a sandbox. */
async function roomIn(workspace: Workspace): Promise<Room> {
  return { root: workspace.root, ownFolder: await ownFolderIn(workspace.root), given: [] }
}

function withoutSandbox(problem = 'it does not work here'): ToolOutcome {
  return {
    kind: 'failed',
    errorType: 'SandboxUnavailable',
    content: `The command was not executed: it requires a sandbox, which is not available: ${problem}.`,
    retry: false,
  }
}

interface Shell {
  readonly path: string
  /** In results. */
  readonly shown: string
}

/** The first shell that exists; the last one if none does, so that the error names it. */
async function findShell(candidates: readonly string[] = ['/bin/bash', '/bin/sh']): Promise<Shell> {
  for (const path of candidates) if ((await findProgram(path)) !== undefined) return shellAt(path)
  return shellAt(candidates.at(-1) ?? '/bin/sh')
}

function shellAt(path: string): Shell {
  return { path, shown: `${path} -lc` }
}

/** A folder without login scripts of a user. */
const NO_HOME = '/nonexistent'

/** The environment in which a shell starts, without the home folder, whose login scripts may contain secrets. */
function startingEnvironment(environment: Environment): Environment {
  return { ...environment, HOME: NO_HOME }
}

/** Code before a command that restores the home folder, and the search path that the system's login script changes. */
function commandPrefix({ HOME, PATH }: Environment): string {
  const home = HOME === undefined ? 'unset HOME; ' : `export HOME=${quoted(HOME)}; `
  return PATH === undefined ? home : `${home}export PATH=${quoted(PATH)}; `
}
