import { stat } from 'node:fs/promises'
import type { ToolContext, ToolOutcome } from '#core/tools/tool-spec.js'
import { FileFailure, invalidInput, isMissing } from '../workspace/file-failure.js'
import { shownPath } from '../workspace/path-text.js'
import { environmentOf } from '../process/environment.js'
import type { Environment } from '../process/environment.js'
import { shellQuoted } from '../process/run-process.js'
import type { OutputStream, ProcessEnd } from '../process/run-process.js'
import { inSandbox, ownFolderIn, runWithin, Sandbox, SANDBOX_HOME, UNCONFINED } from '../sandbox/sandbox.js'
import type { OpenSandbox, SandboxCommand, Room, SandboxForm } from '../sandbox/sandbox.js'
import type { Workspace } from '../workspace/workspace.js'
import type { BashSettings } from './options.js'
import { findProgram } from '../process/find-program.js'
import { stripVTControlCharacters } from 'node:util'
import type { JsonObject } from '#util/json.js'
import { cutText } from '#util/characters.js'
import { excerptOf } from '../process/capture.js'
import { refusedNote } from '../sandbox/options.js'
import { spill } from '../workspace/spill.js'

export interface BashArguments {
  readonly command: string
  readonly cwd?: string
  readonly timeout_ms?: number
  readonly max_chars?: number
}

/** A command, ready to be started. */
export interface PreparedCommand {
  readonly launch: Launch
  readonly command: SandboxCommand
  /** To be closed when it has ended. */
  readonly sandbox: OpenSandbox
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

  run(call: BashCall): Promise<ToolOutcome> {
    return inSandbox(() => this.#runOnce(call))
  }

  async #runOnce(call: BashCall): Promise<ToolOutcome> {
    const { workspace, args, context } = call
    const prepared = await this.prepare(call)
    if ('kind' in prepared) return prepared
    const { launch, sandbox } = prepared
    try {
      const end = await this.#execute(call, prepared)
      if (end.kind === 'unstarted') return unstartedOutcome(launch, end.code)
      if (end.stopped === 'aborted' || context.signal.aborted) return cancelledOutcome(launch, end)
      const maxChars = Math.min(args.max_chars ?? Infinity, this.#settings.maxOutputChars)
      return await endedOutcome({ workspace, launch, end, maxChars, timeouts: this.#timeouts(args) })
    } finally {
      await sandbox.close()
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
    const sandbox = mode === 'off' ? UNCONFINED : await this.#sandbox.open(await prepareRoom(workspace))
    if (sandbox.form === 'none' && mode === 'required') return withoutSandbox(sandbox.problem)
    const environment = this.#environment(sandbox.form !== 'none')
    const command: SandboxCommand = {
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
    return { launch, command: sandbox.wrap(command), sandbox }
  }

  async #execute({ args, context }: BashCall, { command, sandbox }: PreparedCommand): Promise<ProcessEnd> {
    const end = await runWithin(sandbox, {
      ...command,
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
async function prepareRoom(workspace: Workspace): Promise<Room> {
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
  const home = HOME === undefined ? 'unset HOME; ' : `export HOME=${shellQuoted(HOME)}; `
  return PATH === undefined ? home : `${home}export PATH=${shellQuoted(PATH)}; `
}

/** A command as it was executed, for its result. */
interface Launch {
  readonly command: string
  readonly shell: string
  /** As the model knows it. */
  readonly cwd: string
  readonly sandbox: SandboxForm
  /** Why the requested sandbox is not used. */
  readonly sandboxProblem: string | undefined
  /** Hosts that the sandbox refused. */
  readonly refusedHosts: () => readonly string[]
}

type Ended = ProcessEnd & { readonly kind: 'ended' }

interface CommandEnd {
  readonly workspace: Workspace
  readonly launch: Launch
  readonly end: Ended
  /** Most characters of each stream. */
  readonly maxChars: number
  readonly timeouts: { readonly timeoutMs: number; readonly hardTimeoutMs: number }
}

/** Longest command in a result, and longest partial output of an aborted one, in characters. */
const MAX_COMMAND_CHARS = 2_000
const MAX_PARTIAL_CHARS = 4_000

/** A command that has ended, successfully or not: its streams under their names, and an exit code other than 0. */
async function endedOutcome({ workspace, launch, end, maxChars, timeouts }: CommandEnd): Promise<ToolOutcome> {
  const stdout = await outputSection(workspace, 'stdout', { end, maxChars })
  const stderr = end.stdout === end.stderr ? EMPTY : await outputSection(workspace, 'stderr', { end, maxChars })
  const message = timeoutMessage(end, timeouts)
  const refused = refusedNote(launch.refusedHosts())
  const texts = [message ?? '', stdout.text, stderr.text, refused, codeLine(end)].filter((text) => text !== '')
  return {
    kind: 'succeeded',
    content: texts.length === 0 ? '(no output)' : texts.join('\n'),
    metadata: {
      ...launchMetadata(launch),
      ...endMetadata(end),
      ...(message !== undefined && { timed_out: true, timeout_kind: end.stopped, message }),
      ...stdout.metadata,
      ...stderr.metadata,
    },
  }
}

/** The exit code, unless the command succeeded or another line says how it ended. */
function codeLine({ exitCode, signal, stopped }: Ended): string {
  if (exitCode === 0 || stopped !== null) return ''
  return exitCode === null ? `[ended by ${signal ?? 'a signal'}]` : `[exit code ${exitCode}]`
}

/** A command that was aborted; its output so far is in the metadata. */
function cancelledOutcome(launch: Launch, end: Ended): ToolOutcome {
  const partial = (stream: OutputStream): string => excerptOf(plainText(end, stream), MAX_PARTIAL_CHARS).text
  return {
    kind: 'failed',
    errorType: 'Cancelled',
    content: 'The command was cancelled and killed.',
    retry: false,
    metadata: { ...launchMetadata(launch), ...endMetadata(end), stdout: partial('stdout'), stderr: partial('stderr') },
  }
}

/** A command that could not be started, with the exit code of a shell: 127 if it is missing, 126 if it cannot be executed. */
function unstartedOutcome(launch: Launch, code: string): ToolOutcome {
  const exitCode = code === 'ENOENT' ? 127 : 126
  const reason = code === 'E2BIG' ? 'the command is too long: write it to a file and run that' : code
  return {
    kind: 'succeeded',
    content: `The command could not be started: ${reason}.`,
    metadata: { ...launchMetadata(launch), exit_code: exitCode, success: false },
  }
}

interface Section {
  readonly text: string
  readonly metadata: JsonObject
}

const EMPTY: Section = { text: '', metadata: {} }

async function outputSection(
  workspace: Workspace,
  stream: OutputStream,
  { end, maxChars }: { readonly end: Ended; readonly maxChars: number },
): Promise<Section> {
  const text = plainText(end, stream)
  if (text === '') return EMPTY
  const excerpt = excerptOf(text, maxChars)
  if (!excerpt.truncated) return { text: `${stream}:\n${text}`, metadata: {} }
  const { metadata: saved } = await spill(workspace, { text, prefix: `bash_${stream}`, limit: maxChars })
  const { saved_to_display: path } = saved
  const note = typeof path === 'string' ? `full text in ${path}: use \`read\`` : 'the rest could not be saved'
  const cut = { truncated: true, [`${stream}_truncated`]: true }
  return {
    text: `${stream} (cut; ${note}):\n${excerpt.text}`,
    metadata: typeof path === 'string' ? { ...cut, [`${stream}_file`]: path } : cut,
  }
}

function plainText(end: Ended, stream: OutputStream): string {
  return stripVTControlCharacters(end[stream].text())
}

function launchMetadata({ command, shell, cwd, sandbox, sandboxProblem, refusedHosts }: Launch): JsonObject {
  const refused = refusedHosts()
  return {
    command: cutText(command, MAX_COMMAND_CHARS),
    shell,
    cwd,
    sandbox,
    ...(sandboxProblem !== undefined && { sandbox_problem: sandboxProblem }),
    ...(refused.length > 0 && { refused_hosts: refused }),
  }
}

function endMetadata({ exitCode, signal, stopped, durationMs }: Ended): JsonObject {
  return {
    exit_code: exitCode,
    success: exitCode === 0 && stopped === null,
    duration_ms: durationMs,
    ...(signal !== null && { signal }),
  }
}

function timeoutMessage({ stopped }: Ended, timeouts: CommandEnd['timeouts']): string | undefined {
  if (stopped === 'soft') return `The command was ended: it took longer than ${timeouts.timeoutMs} ms.`
  if (stopped === 'hard')
    return `The command was killed: it took longer than the limit of ${timeouts.hardTimeoutMs} ms.`
  return undefined
}
