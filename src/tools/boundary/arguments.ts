import { messageOf } from '../../contracts/errors.js'
import { isObject, parseJson } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import { issuesOf } from '../../schema/findings.js'
import { openPlaces } from '../../schema/places.js'
import { brokenSchema, refusal } from './refusal.js'
import type { Received, Refusal } from './refusal.js'
import { repairArguments } from './repair.js'
import type { Repaired } from './repair.js'
import { isTyped } from '../../schema/schema.js'
import { schemaProblems } from '../../schema/schema-check.js'
import type { ToolSpec } from '../spec.js'
import type { ArgumentIssue } from '../../schema/validation.js'
import { clipped, wholeStart } from './summaries.js'

/** A tool as far as its arguments are concerned, whatever its handler needs. */
type CallableTool = Omit<ToolSpec, 'call'>

/** The arguments of a call, checked. */
export type CheckedArguments =
  | {
      readonly ok: true
      /** What `call` gets: parsed, defaults filled in. */
      readonly value: JsonObject
      /** JSON text for the history: what came, or what the repairs made of it. */
      readonly text: string
      /** What was repaired, a sentence each; at most 12. */
      readonly repairs: readonly string[]
    }
  | {
      readonly ok: false
      /** JSON text of an object for the history, never an empty object in place of what is not one. */
      readonly text: string
      readonly outcome: Refusal
    }

/**
 * Raw argument text → arguments that fit the tool, or what the model is told in their place. Repairs are applied all together, and only where the result is valid; malformed JSON is never
 * completed. Depends on the text and the tool alone. Does not reject.
 */
export async function checkArguments(spec: CallableTool, rawText: string): Promise<CheckedArguments> {
  try {
    return await check(spec, rawText)
  } catch (error) {
    const why = error instanceof RangeError ? 'too large or too deeply nested' : clipped(messageOf(error), 150)
    const issue = rootIssue('unchecked', `could not be checked: ${why}`)
    return refused(spec, 'ValidationError', { issues: [issue], sent: { rawText, received: { chars: rawText.length } } })
  }
}

async function check(spec: CallableTool, rawText: string): Promise<CheckedArguments> {
  const read = readArguments(spec, rawText)
  if (read.kind === 'unreadable') return refused(spec, 'InvalidArguments', { issues: [read.issue], sent: read })
  const { original, repaired } = read
  if (repaired.conflicts.length === 0) {
    const verdict = await verdictOn(spec, repaired.value)
    if (verdict.kind === 'valid') return accepted(rawText, verdict.value, repaired)
    if (repaired.repairs.length === 0) return rejected(spec, verdict, { conflicts: [], sent: read })
  }
  // The repaired copy will not do: the call is judged as it came.
  if (original === undefined) return refused(spec, 'InvalidArguments', { issues: [NOT_AN_OBJECT], sent: read })
  const verdict = await verdictOn(spec, original)
  if (verdict.kind === 'valid' && repaired.conflicts.length === 0) {
    return { ok: true, value: verdict.value, text: rawText, repairs: [] }
  }
  return rejected(spec, verdict, { conflicts: repaired.conflicts, sent: read })
}

/** Argument text of a call that cannot run, for the history: an object as it came, else an object that shows its start. */
export function previewArguments(rawText: string): string {
  const parsed = parseJson(rawText)
  return parsed.ok && isObject(parsed.value) ? rawText : invalidText(rawText)
}

/** Characters of an unusable argument text that the history keeps. */
const LONGEST_PREVIEW = 200

function invalidText(rawText: string): string {
  const start = rawText.length <= LONGEST_PREVIEW ? rawText : `${wholeStart(rawText, LONGEST_PREVIEW)}…`
  return JSON.stringify({ invalid_arguments: start })
}

type ReadArguments = Sent & ({ readonly kind: 'unreadable'; readonly issue: ArgumentIssue } | Readable)

interface Sent {
  readonly rawText: string
  readonly received: Received
}

interface Readable {
  readonly kind: 'readable'
  /** What was sent; absent when that was an object's text in quotes, and no object itself. */
  readonly original: JsonObject | undefined
  readonly repaired: Repaired
}

function readArguments(spec: CallableTool, rawText: string): ReadArguments {
  const chars = rawText.length
  if (rawText.trim() === '') {
    const repaired = { value: {}, repairs: ['nothing was sent, which was read as no fields'], conflicts: [] }
    return { kind: 'readable', original: {}, repaired, rawText, received: { chars, value: {} } }
  }
  const parsed = parseJson(rawText)
  if (!parsed.ok) {
    return {
      kind: 'unreadable',
      issue: rootIssue('json', notJson(parsed.problem, chars)),
      rawText,
      received: { chars },
    }
  }
  const sent = { rawText, received: { chars, value: parsed.value } }
  const object = asObject(parsed.value)
  if (object === undefined) return { kind: 'unreadable', issue: NOT_AN_OBJECT, ...sent }
  if (object === parsed.value)
    return { kind: 'readable', original: object, repaired: repairArguments(spec, object), ...sent }
  const inner = repairArguments(spec, object)
  const repairs = ['a JSON object sent as a text was read as the object', ...inner.repairs]
  return { kind: 'readable', original: undefined, repaired: { ...inner, repairs }, ...sent }
}

/** The object that was sent, or the one that a sent text holds: one level of quoting, no more. */
function asObject(value: JsonValue): JsonObject | undefined {
  if (isObject(value)) return value
  if (typeof value !== 'string') return undefined
  const inner = parseJson(value)
  return inner.ok && isObject(inner.value) ? inner.value : undefined
}

const NOT_AN_OBJECT = rootIssue('object', 'arguments must be a JSON object')

/** The parser's message without the piece of the text that it quotes. */
function notJson(problem: string, chars: number): string {
  const what = problem.replace(/, (?:"|\.\.\.).*$/s, '').replace(/ in JSON\b| \(line \d+ column \d+\)/g, '')
  const position = Number(/position (\d+)/.exec(problem)?.[1] ?? NaN)
  const isCut = position >= chars || problem.startsWith('Unexpected end')
  return `invalid JSON arguments: ${what}${isCut ? `; the text may have been cut off after ${chars} characters` : ''}`
}

function rootIssue(type: string, message: string): ArgumentIssue {
  return { path: [], type, message }
}

type Verdict =
  | { readonly kind: 'valid'; readonly value: JsonObject }
  | { readonly kind: 'invalid'; readonly issues: readonly ArgumentIssue[] }
  | { readonly kind: 'broken'; readonly message: string }

/** A typed tool's schema checks all by itself, but for fields that it would pass over; any other tool has a JSON Schema. */
async function verdictOn(spec: CallableTool, value: JsonObject): Promise<Verdict> {
  const { parameters, validate } = spec
  const unknown = isTyped(spec) ? unknownFields(spec, value) : []
  if (!isTyped(spec)) {
    const problems = await schemaProblems(parameters, value)
    if (problems.kind === 'broken') return problems
    if (problems.kind === 'invalid') return { kind: 'invalid', issues: issuesOf(problems.findings, value, parameters) }
  }
  const result = (await validate?.(value)) ?? { ok: true, value }
  if (result.ok)
    return unknown.length === 0 ? { kind: 'valid', value: result.value } : { kind: 'invalid', issues: unknown }
  return { kind: 'invalid', issues: [...result.issues.filter((issue) => !isAmong(unknown, issue)), ...unknown] }
}

/** Fields at the root that the model was told do not exist: a typed schema may drop them without a word. */
function unknownFields({ parameters }: CallableTool, value: JsonObject): ArgumentIssue[] {
  if (parameters['additionalProperties'] !== false) return []
  const { root } = openPlaces(parameters)
  const unknown = Object.keys(value).filter((name) => root.field(name) === undefined)
  if (unknown.length === 0) return []
  return issuesOf(
    unknown.map((name) => ({ path: [name], kind: 'unknown_field' })),
    value,
    parameters,
  )
}

function isAmong(issues: readonly ArgumentIssue[], { path }: ArgumentIssue): boolean {
  return issues.some(
    (issue) => issue.path.length === path.length && issue.path.every((step, index) => step === path[index]),
  )
}

function accepted(rawText: string, value: JsonObject, { value: repaired, repairs }: Repaired): CheckedArguments {
  if (repairs.length === 0) return { ok: true, value, text: rawText, repairs }
  return { ok: true, value, text: JSON.stringify(repaired), repairs: shortened(repairs) }
}

const MOST_REPAIRS = 12

function shortened(repairs: readonly string[]): readonly string[] {
  const texts = repairs.slice(0, MOST_REPAIRS).map((repair) => clipped(repair, 200))
  return repairs.length > MOST_REPAIRS ? [...texts, `and ${repairs.length - MOST_REPAIRS} more`] : texts
}

function rejected(
  spec: CallableTool,
  verdict: Verdict,
  { conflicts, sent }: { readonly conflicts: readonly ArgumentIssue[]; readonly sent: Sent },
): CheckedArguments {
  if (verdict.kind === 'broken') {
    return { ok: false, text: previewArguments(sent.rawText), outcome: brokenSchema(spec, verdict.message) }
  }
  const issues = verdict.kind === 'invalid' ? verdict.issues.filter((issue) => !isAmong(conflicts, issue)) : []
  return refused(spec, 'ValidationError', { issues: [...conflicts, ...issues], sent })
}

function refused(
  spec: CallableTool,
  errorType: 'InvalidArguments' | 'ValidationError',
  { issues, sent: { rawText, received } }: { readonly issues: readonly ArgumentIssue[]; readonly sent: Sent },
): CheckedArguments {
  return { ok: false, text: previewArguments(rawText), outcome: refusal(spec, errorType, { issues, received }) }
}
