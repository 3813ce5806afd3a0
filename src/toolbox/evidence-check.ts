import type { ContentPart, ToolEntry, TranscriptEntry } from '#contracts/entry.js'
import type { CallEvidence, CheckEvidence, Evidence, FileEvidence, RowEvidence } from '#core/tools/evidence.js'
import { isObject, parseJson } from '#util/json.js'
import { parseFieldPath, valueAt } from './jsonl/field-path.js'
import { FileFailure, isMissing, isSystemError, PathValidationError } from './workspace/file-failure.js'
import { readLineRange, splitLines } from './workspace/lines.js'
import { shownPath } from './workspace/path-text.js'
import { withFile, workspaceOf } from './workspace/workspace.js'

/** The sources of quotations. */
export interface EvidenceSources {
  /** The workspace, an absolute path. */
  readonly root: string
  readonly transcript: readonly TranscriptEntry[]
  readonly signal: AbortSignal
}

/**
 * Compares quotations with files of the workspace, rows of JSONL files and tool results of the conversation. White space
 * counts as one space. Returns the problem as a message for the model.
 */
export function evidenceCheck(sources: EvidenceSources): CheckEvidence {
  return async (evidence) => {
    if (normalizedQuote(evidence.quote) === '') return '`quote` must not be empty'
    try {
      return quoteProblem(evidence, await readPassage(evidence, sources))
    } catch (error) {
      if (error instanceof PathValidationError || error instanceof FileFailure) return error.message
      if (isMissing(error)) return '`file` is not a file of the workspace'
      if (isSystemError(error)) return `the file cannot be read (${error.code ?? 'unknown'})`
      throw error
    }
  }
}

/** The text at the place of a quotation; a problem if there is no such place. */
type Passage = { readonly text: string; readonly place: string } | { readonly problem: string }

async function readPassage(evidence: Evidence, sources: EvidenceSources): Promise<Passage> {
  if ('call_id' in evidence) return resultPassage(evidence, sources)
  return 'row' in evidence ? rowPassage(evidence, sources) : filePassage(evidence, sources)
}

function quoteProblem({ quote }: Evidence, passage: Passage): string | undefined {
  if ('problem' in passage) return passage.problem
  if (normalizedQuote(passage.text).includes(normalizedQuote(quote))) return undefined
  return `\`quote\` is not in ${passage.place}: copy it word for word, or name the place that contains it`
}

function normalizedQuote(text: string): string {
  return text.normalize('NFC').replace(/\s+/g, ' ').trim()
}

function resultPassage({ call_id: callId }: CallEvidence, { transcript }: EvidenceSources): Passage {
  const entry = transcript.findLast((each): each is ToolEntry => each.role === 'tool' && each.callId === callId)
  if (entry === undefined) return { problem: `there is no result of a call \`${callId.slice(0, 80)}\`` }
  return { text: contentText(entry.content), place: `the result of \`${callId}\`` }
}

function contentText(content: string | readonly ContentPart[]): string {
  if (typeof content === 'string') return resultText(content)
  return content.map((part) => (part.type === 'text' ? resultText(part.text) : '')).join('\n')
}

/** The content of an envelope, and the envelope itself, whose metadata may be quoted too. */
function resultText(text: string): string {
  const parsed = parseJson(text)
  const content = parsed.ok && isObject(parsed.value) ? parsed.value['content'] : undefined
  return typeof content === 'string' ? `${content}\n${text}` : text
}

/** A row of a JSONL file, or one of its values: a string unchanged, anything else as JSON. */
async function rowPassage({ file, row, path = '' }: RowEvidence, sources: EvidenceSources): Promise<Passage> {
  const line = await filePassage({ file, from_line: row }, sources)
  if ('problem' in line || path === '') return line
  const field = parseFieldPath(path)
  if (!field.ok) return { problem: `\`path\`: ${field.problem}` }
  const parsed = parseJson(line.text)
  if (!parsed.ok) return { problem: `${line.place} is not JSON` }
  const value = valueAt(parsed.value, field.path)
  if (value === undefined) return { problem: `${line.place} has nothing at \`${path}\`` }
  return { text: typeof value === 'string' ? value : JSON.stringify(value), place: `\`${path}\` in ${line.place}` }
}

/** Most bytes that are compared: a larger passage does not identify a place. */
const MAX_BYTES = 4_000_000

/** A check may read the whole root except protected files: it reveals only if a quotation is true. */
const OPTIONS = {}

/** The lines of a file, as written. */
async function filePassage(
  { file, from_line: first, to_line: last = first }: Pick<FileEvidence, 'file' | 'from_line' | 'to_line'>,
  { root, signal }: EvidenceSources,
): Promise<Passage> {
  if (last < first) return { problem: `\`to_line\` must be at least \`from_line\`, ${first}` }
  const workspace = workspaceOf(OPTIONS, root)
  const shown = shownPath(file)
  return withFile(workspace, { policy: workspace.readPolicy, path: file }, async ({ handle }) => {
    const range = { offset: first, limit: last - first + 1, maxBytes: MAX_BYTES, signal }
    const { bytes, end } = await readLineRange(handle, range)
    const place = first === last ? `line ${first} of \`${shown}\`` : `lines ${first} to ${last} of \`${shown}\``
    if (end === 'bytes') return { problem: `${place} are too long to be compared: name fewer lines` }
    const text = new TextDecoder().decode(bytes)
    return splitLines(text).length > 0 ? { text, place } : { problem: `\`${shown}\` has no line ${first}` }
  })
}
