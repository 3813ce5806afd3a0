import type { RowEvidence } from '../../tools/evidence.js'
import { parseJson } from '../../util/json.js'
import { parseFieldPath, valueAt } from '../jsonl/field-path.js'
import type { EvidenceSources, Quoted } from './sources.js'
import { linesOf } from './quoted-lines.js'

/** The value in a row of a JSONL file that a quotation is said to be from: a text as it is, anything else as JSON. */
export async function quotedRow(evidence: RowEvidence, sources: EvidenceSources): Promise<Quoted> {
  const { file, row, path } = evidence
  const line = await linesOf(file, row, row, sources)
  if ('problem' in line || path === undefined || path === '') return line
  const field = parseFieldPath(path)
  if (!field.ok) return { problem: `\`path\`: ${field.problem}` }
  const parsed = parseJson(line.text)
  if (!parsed.ok) return { problem: `${line.place} is no JSON` }
  const value = valueAt(parsed.value, field.path)
  if (value === undefined) return { problem: `${line.place} has nothing at \`${path}\`` }
  return { text: typeof value === 'string' ? value : JSON.stringify(value), place: `\`${path}\` in ${line.place}` }
}
