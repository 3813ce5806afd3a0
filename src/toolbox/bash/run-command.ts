import { lstat, mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ToolOutcome } from '../../tools/outcome.js'
import type { ToolContext } from '../../tools/spec.js'
import { FileFailure, invalidInput, isMissing, isSystemError } from '../workspace/failure.js'
import { shownPath } from '../workspace/path-text.js'
import { environmentOf } from '../process/environment.js'
import type { Environment } from '../process/environment.js'
import { runProcess } from '../process/run-process.js'
import type { ProcessEnd } from '../process/run-process.js'
import { OWN_FOLDER } from '../workspace/workspace.js'
import type { Workspace } from '../workspace/workspace.js'
import { bubblewrapArguments, probeSandbox, SANDBOX_HOME } from './bubblewrap.js'
import type { SandboxRules, SandboxState } from './bubblewrap.js'
import { cancelledOutcome, endedOutcome, unstartedOutcome } from './command-outcome.js'
import type { Launch } from './command-outcome.js'
import type { BashSettings } from './options.js'
import { commandPrefix, findShell, startingEnvironment } from './shell.js'
import type { Shell } from './shell.js'

export interface BashArguments {
  readonly command: string
  readonly cwd?: string
  readonly timeout_ms?: number
  readonly max_chars?: number
}

export interface BashCall {
  readonly workspace: Workspace
  /** Checked against the tool's schema by the tool boundary. */
  readonly args: BashArguments
  readonly context: ToolContext
}

/** Runs commands with the same settings; remembers the state of the sandbox. */
export class ShellRunner {
  readonly #settings: BashSettings
  readonly #shells: readonly string[] | undefined
  readonly #probes = new WeakMap<Workspace, Promise<SandboxState>>()

  /** @param shells Shells to try, in this order. Default `/bin/bash`, `/bin/sh`. */
  constructor(settings: BashSettings, shells?: readonly string[]) {
    this.#settings = settings
    this.#shells = shells
  }

  async run(call: BashCall): Promise<ToolOutcome> {
    const { workspace, args, context } = call
    if (args.command.includes('\0')) {
      throw invalidInput('`command` contains a NUL character, which no shell accepts.')
    }
    const cwd = await folderAt(workspace, args.cwd ?? '.')
    const shell = await findShell(this.#shells)
    const sandbox = await this.#sandboxFor(workspace, shell)
    if (sandbox?.works === false && this.#settings.sandbox === 'required') return withoutSandbox(sandbox.reason)
    const launch: Launch = {
      command: args.command,
      shell: shell.shown,
      cwd: workspace.display(cwd),
      sandbox: sandbox?.works === true ? 'bubblewrap' : 'none',
      sandboxProblem: sandbox?.works === false ? sandbox.reason : undefined,
    }
    const end = await this.#execute(call, { shell, cwd, sandbox })
    if (end.kind === 'unstarted') return unstartedOutcome(launch, end.code)
    if (end.stopped === 'aborted' || context.signal.aborted) return cancelledOutcome(launch, end)
    const maxChars = Math.min(args.max_chars ?? Infinity, this.#settings.maxOutputChars)
    return endedOutcome({ workspace, launch, end, maxChars, timeouts: this.#timeouts(args) })
  }

  async #execute(
    { workspace, args, context }: BashCall,
    { shell, cwd, sandbox }: { shell: Shell; cwd: string; sandbox: SandboxState | undefined },
  ): Promise<ProcessEnd> {
    const inSandbox = sandbox?.works === true
    const environment = this.#environment(inSandbox)
    const shellArgs = ['-lc', commandPrefix(environment) + args.command]
    const wrapped = inSandbox
      ? [...bubblewrapArguments(this.#rules(workspace), cwd), shell.path, ...shellArgs]
      : shellArgs
    const end = await runProcess({
      program: inSandbox ? sandbox.program : shell.path,
      args: wrapped,
      cwd,
      environment: startingEnvironment(environment),
      ...this.#timeouts(args),
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

  #environment(inSandbox: boolean): Environment {
    const environment = environmentOf(this.#settings.env)
    if (!inSandbox) return environment
    const { HOME = SANDBOX_HOME, TMPDIR = '/tmp' } = this.#settings.env
    return { ...environment, HOME, TMPDIR }
  }

  #rules({ root }: Workspace): SandboxRules {
    const { readPaths, writePaths, network } = this.#settings
    return { root, ownFolder: join(root, OWN_FOLDER), readPaths, writePaths, network }
  }

  /** `undefined` if none is requested. */
  async #sandboxFor(workspace: Workspace, shell: Shell): Promise<SandboxState | undefined> {
    const { sandbox, bubblewrap } = this.#settings
    if (sandbox === 'off') return undefined
    await requireOwnFolder(workspace)
    const probe = this.#probes.get(workspace) ?? probeSandbox(bubblewrap, this.#rules(workspace), shell)
    this.#probes.set(workspace, probe)
    return probe
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

/**
 * The harness's own folder exists, so that no command can create it, and is no link, whose target would be visible in the sandbox.
 * @throws FileFailure `PathTypeError`
 */
async function requireOwnFolder({ root }: Workspace): Promise<void> {
  const path = join(root, OWN_FOLDER)
  await mkdir(path).catch((error: unknown) => {
    if (!isSystemError(error, 'EEXIST')) throw error
  })
  if ((await lstat(path)).isDirectory()) return
  const message = `The command was not executed: \`${OWN_FOLDER}\` in the workspace root is not a plain folder, and a person must remove it.`
  throw new FileFailure('PathTypeError', message)
}

function withoutSandbox(reason: string): ToolOutcome {
  return {
    kind: 'failed',
    errorType: 'SandboxUnavailable',
    content: `The command was not executed: it requires a sandbox, which is not available: ${reason}.`,
    retry: false,
  }
}
