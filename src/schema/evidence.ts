import { schemasIn } from './subschemas.js'
import type { JsonSchema } from '#util/json.js'

export const EVIDENCE_MARK = 'x-evidence'

/**
 * Marks a field of an output schema as evidence: the answer must name there the source of a quotation, and the run checks
 * it. In zod `.meta(evidence)`, in a JSON Schema document `{ …, ...evidence }`; the field's value is an `Evidence`.
 */
export const evidence = { [EVIDENCE_MARK]: true } as const

/** `schema` with the mark as a description for a model. */
export function describedAsEvidence(schema: JsonSchema): JsonSchema {
  const { [EVIDENCE_MARK]: mark, description, ...rest } = schema
  if (mark === undefined) return schema
  if (mark !== true) return { ...rest, ...(description !== undefined && { description }) }
  return { ...rest, description: typeof description === 'string' ? `${description}\n\n${WORDS}` : WORDS }
}

const WORDS =
  'Evidence: `quote` must be copied word for word from the place that is named, and is compared with what stands there.'

/** True if any field of a schema demands evidence. */
export function demandsEvidence(schema: JsonSchema): boolean {
  for (const each of schemasIn(schema)) if (each[EVIDENCE_MARK] === true) return true
  return false
}
