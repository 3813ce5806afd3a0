import { stripVTControlCharacters } from 'node:util'
import type { ToolOutcome } from '../../tools/outcome.js'
import type { JsonObject } from '../../util/json.js'
import { cutText } from '../../util/characters.js'
import { excerptOf } from '../process/excerpt.js'
import type { OutputStream, ProcessEnd } from '../process/run-process.js'
import type { SandboxForm } from '../sandbox/sandbox.js'
import { refusedNote } from '../sandbox/texts.js'
import { spill } from '../workspace/spill.js'
import type { Workspace } from '../workspace/workspace.js'

/** A command as it was executed, for its result. */
export interface Launch {
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

export interface CommandEnd {
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
export async function endedOutcome({ workspace, launch, end, maxChars, timeouts }: CommandEnd): Promise<ToolOutcome> {
  const stdout = await section(workspace, 'stdout', { end, maxChars })
  const stderr = end.stdout === end.stderr ? EMPTY : await section(workspace, 'stderr', { end, maxChars })
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
export function cancelledOutcome(launch: Launch, end: Ended): ToolOutcome {
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
export function unstartedOutcome(launch: Launch, code: string): ToolOutcome {
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

async function section(
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
