import { stripVTControlCharacters } from 'node:util'
import type { ToolOutcome } from '../../tools/outcome.js'
import type { JsonObject } from '../../util/json.js'
import { firstCharacters } from '../../util/characters.js'
import { excerptOf } from '../process/excerpt.js'
import type { OutputStream, ProcessEnd } from '../process/run-process.js'
import { spill } from '../workspace/spill.js'
import type { Workspace } from '../workspace/workspace.js'
import type { Launch } from './launch.js'

type Ended = ProcessEnd & { readonly kind: 'ended' }

export interface CommandEnd {
  readonly workspace: Workspace
  readonly launch: Launch
  readonly end: Ended
  /** Most characters of each stream. */
  readonly maxChars: number
  readonly timeouts: { readonly timeoutMs: number; readonly hardTimeoutMs: number }
}

/** Longest command that a result repeats, and partial output of an aborted one, in characters. */
const MAX_COMMAND_CHARS = 2_000
const MAX_PARTIAL_CHARS = 4_000

/** A command that has ended, well or not: streams under their names, the rest as metadata. */
export async function endedOutcome({ workspace, launch, end, maxChars, timeouts }: CommandEnd): Promise<ToolOutcome> {
  const stdout = await section(workspace, 'stdout', { end, maxChars })
  const stderr = end.stdout === end.stderr ? EMPTY : await section(workspace, 'stderr', { end, maxChars })
  const message = timeoutMessage(end, timeouts)
  const texts = [message ?? '', stdout.text, stderr.text].filter((text) => text !== '')
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

/** A command that was aborted; what it had printed is in the metadata. */
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

/** A command that the system could not start, as a shell would tell it: 127 for what is missing, 126 for what cannot run. */
export function unstartedOutcome(launch: Launch, code: string): ToolOutcome {
  const exitCode = code === 'ENOENT' ? 127 : 126
  const reason = code === 'E2BIG' ? 'the command is too long: write it into a file and run that' : code
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
  const where = typeof path === 'string' ? `whole in ${path}, which \`read\` shows` : 'the rest could not be saved'
  const cut = { truncated: true, [`${stream}_truncated`]: true }
  return {
    text: `${stream} (cut; ${where}):\n${excerpt.text}`,
    metadata: typeof path === 'string' ? { ...cut, [`${stream}_file`]: path } : cut,
  }
}

function plainText(end: Ended, stream: OutputStream): string {
  return stripVTControlCharacters(end[stream].text())
}

function launchMetadata({ command, shell, cwd, sandbox, sandboxProblem }: Launch): JsonObject {
  const shown = firstCharacters(command, MAX_COMMAND_CHARS)
  return {
    command: shown === command ? command : `${shown}…`,
    shell,
    cwd,
    sandbox,
    ...(sandboxProblem !== undefined && { sandbox_problem: sandboxProblem }),
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
    return `The command was killed: it took longer than ${timeouts.hardTimeoutMs} ms, the most it may.`
  return undefined
}
