import { inlinedSchema } from '#schema/clean-schema.js'
import type { CheckEvidence, Evidence } from '#core/tools/evidence.js'
import { isList, memberSchemas, withAlternatives } from '#schema/subschemas.js'
import type { ArgumentIssue } from '#schema/argument-issues.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonSchema, JsonValue } from '#util/json.js'
import { EVIDENCE_MARK } from '#schema/evidence.js'

/** Problems of the evidence in an answer, by place. */
export async function evidenceIssues(
  schema: JsonSchema,
  answer: JsonValue,
  check: CheckEvidence,
): Promise<readonly ArgumentIssue[]> {
  const issues: ArgumentIssue[] = []
  for (const { path, value } of evidenceIn(inlinedSchema(schema), answer)) {
    const message = isEvidence(value) ? await check(value) : NO_EVIDENCE
    if (message !== undefined) issues.push({ path, message, type: 'evidence' })
    if (issues.length === MOST_ISSUES) break
  }
  return issues
}

/** Further problems are reported once these are fixed. */
const MOST_ISSUES = 20

const NO_EVIDENCE =
  'is no evidence: give `quote` with `file` and `from_line`, or with `file` and `row`, or with `call_id`'

function isEvidence(value: JsonObject): value is JsonObject & Evidence {
  const { quote, file, from_line: fromLine, to_line: toLine, row, path, call_id: callId } = value
  if (typeof quote !== 'string') return false
  if (callId !== undefined) return typeof callId === 'string'
  if (typeof file !== 'string') return false
  if (row !== undefined) return isLine(row) && (path === undefined || typeof path === 'string')
  return isLine(fromLine) && (toLine === undefined || isLine(toLine))
}

function isLine(value: JsonValue | undefined): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1
}

interface Place {
  readonly path: readonly (string | number)[]
  readonly value: JsonObject
}

/** The objects in `value` at the places for which `root` demands evidence. A null means none. */
function* evidenceIn(root: JsonSchema, value: JsonValue): Generator<Place> {
  const open: { schemas: JsonSchema[]; path: Place['path']; value: JsonValue }[] = [
    { schemas: [root], path: [], value },
  ]
  // Items that are added during the iteration are visited too.
  for (const { schemas: stated, path, value: here } of open) {
    const schemas = [...withAlternatives(root, stated)]
    if (isObject(here) && schemas.some((schema) => schema[EVIDENCE_MARK] === true)) yield { path, value: here }
    for (const [step, member] of membersOf(here)) {
      const inner = memberSchemas(schemas, step)
      if (inner.length > 0) open.push({ schemas: inner, path: [...path, step], value: member })
    }
  }
}

function membersOf(value: JsonValue): Iterable<[string | number, JsonValue]> {
  if (isList(value)) return value.entries()
  return isObject(value) ? Object.entries(value as Readonly<Record<string, JsonValue>>) : []
}
