import type { ContentPart, ToolEntry } from '../../contracts/entry.js'
import type { CheckEvidence, Evidence, CallEvidence, RowEvidence } from '../../tools/evidence.js'
import { isObject, parseJson } from '../../util/json.js'
import { parseFieldPath, valueAt } from '../jsonl/field-path.js'
import { FileFailure, isMissing, isSystemError, PathValidationError } from '../workspace/failure.js'
import { quotedLines, linesOf } from './quoted-lines.js'
import type { EvidenceSources, Quoted } from './sources.js'

/**
 * Compares quotations with what stands in files of the workspace, in rows of JSONL files and in tool results of the
 * conversation. White space counts as one space. Gives what is wrong in words for the model.
 */
export function evidenceCheck(sources: EvidenceSources): CheckEvidence {
  return async (evidence) => {
    if (wordsOf(evidence.quote) === '') return '`quote` must not be empty'
    try {
      return comparison(evidence, await quoted(evidence, sources))
    } catch (error) {
      if (error instanceof PathValidationError || error instanceof FileFailure) return error.message
      if (isMissing(error)) return '`file` names no file of the workspace'
      if (isSystemError(error)) return `the file cannot be read (${error.code ?? 'unknown'})`
      throw error
    }
  }
}

function quoted(evidence: Evidence, sources: EvidenceSources): Promise<Quoted> | Quoted {
  if ('call_id' in evidence) return quotedResult(evidence, sources)
  return 'row' in evidence ? quotedRow(evidence, sources) : quotedLines(evidence, sources)
}

function comparison({ quote }: Evidence, found: Quoted): string | undefined {
  if ('problem' in found) return found.problem
  if (wordsOf(found.text).includes(wordsOf(quote))) return undefined
  return `\`quote\` does not stand in ${found.place}: copy it word for word, or name the place where it stands`
}

function wordsOf(text: string): string {
  return text.normalize('NFC').replace(/\s+/g, ' ').trim()
}

/** What a call of the conversation gave that a quotation is said to be from. */
function quotedResult({ call_id: callId }: CallEvidence, { transcript }: EvidenceSources): Quoted {
  const entry = transcript.findLast((each): each is ToolEntry => each.role === 'tool' && each.callId === callId)
  if (entry === undefined) return { problem: `there is no result of a call \`${callId.slice(0, 80)}\`` }
  return { text: textOf(entry.content), place: `the result of \`${callId}\`` }
}

function textOf(content: string | readonly ContentPart[]): string {
  if (typeof content === 'string') return resultText(content)
  return content.map((part) => (part.type === 'text' ? resultText(part.text) : '')).join('\n')
}

/** The content of an envelope, and the envelope itself, whose metadata may be quoted too. */
function resultText(text: string): string {
  const parsed = parseJson(text)
  const content = parsed.ok && isObject(parsed.value) ? parsed.value['content'] : undefined
  return typeof content === 'string' ? `${content}\n${text}` : text
}

/** The value in a row of a JSONL file that a quotation is said to be from: a text as it is, anything else as JSON. */
async function quotedRow(evidence: RowEvidence, sources: EvidenceSources): Promise<Quoted> {
  const { file, row, path } = evidence
  const line = await linesOf(file, row, { last: row, sources })
  if ('problem' in line || path === undefined || path === '') return line
  const field = parseFieldPath(path)
  if (!field.ok) return { problem: `\`path\`: ${field.problem}` }
  const parsed = parseJson(line.text)
  if (!parsed.ok) return { problem: `${line.place} is no JSON` }
  const value = valueAt(parsed.value, field.path)
  if (value === undefined) return { problem: `${line.place} has nothing at \`${path}\`` }
  return { text: typeof value === 'string' ? value : JSON.stringify(value), place: `\`${path}\` in ${line.place}` }
}
