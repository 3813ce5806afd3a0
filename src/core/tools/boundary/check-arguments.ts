import { messageOf } from '#contracts/errors.js'
import { isObject, parseJson } from '#util/json.js'
import type { JsonObject, JsonSchema, JsonValue } from '#util/json.js'
import { MOST_ISSUES, valueAt } from '#schema/argument-issues.js'
import { openPlaces } from '#schema/value-places.js'
import { isRepairable, repairArguments } from './repair.js'
import type { Repaired } from './repair.js'
import { coversParameters } from '#schema/schema.js'
import { schemaProblems } from '#schema/schema-check.js'
import type { ToolOutcome, ToolSpec } from '../tool-spec.js'
import type { ArgumentIssue } from '#schema/argument-issues.js'
import { clipped, wholeStart, dotted, inputAt, shownName, summaryOf } from './input-summary.js'

/** A tool as far as its arguments are concerned, whatever its handler needs. */
type CallableTool = Omit<ToolSpec, 'call'>

/** The arguments of a call, checked. */
export type CheckedArguments =
  | {
      readonly ok: true
      /** The arguments for `call`: parsed, with defaults. */
      readonly value: JsonObject
      /** JSON text for the history: as it was sent, or repaired. */
      readonly text: string
      /** The repairs, a sentence each; at most 12. */
      readonly repairs: readonly string[]
    }
  | {
      readonly ok: false
      /** JSON text of an object for the history; never an empty object in place of another value. */
      readonly text: string
      readonly outcome: Refusal
    }

/**
 * Raw argument text as arguments that fit the tool, or the message that the model receives instead. Repairs are applied all
 * together, and only if the result is valid; malformed JSON is never completed. Depends on the text and the tool alone.
 * Does not reject.
 */
export async function checkArguments(spec: CallableTool, rawText: string): Promise<CheckedArguments> {
  const chars = rawText.length
  try {
    const parsed = parseJson(rawText)
    if (!parsed.ok || !isObject(parsed.value) || isRepairable(spec, parsed.value)) {
      return await checkRepaired(spec, readArguments(spec, rawText))
    }
    const verdict = await verdictOn(spec, parsed.value)
    if (verdict.kind === 'valid') return { ok: true, value: verdict.value, text: rawText, repairs: [] }
    return rejected(spec, verdict, { conflicts: [], sent: { rawText, received: { chars, value: parsed.value } } })
  } catch (error) {
    const why = error instanceof RangeError ? 'too large or too deeply nested' : clipped(messageOf(error), 150)
    const issue = rootIssue('unchecked', `could not be checked: ${why}`)
    return refused(spec, 'ValidationError', { issues: [issue], sent: { rawText, received: { chars } } })
  }
}

async function checkRepaired(spec: CallableTool, read: ReadArguments): Promise<CheckedArguments> {
  if (read.kind === 'unreadable') return refused(spec, 'InvalidArguments', { issues: [read.issue], sent: read })
  const { rawText, original, repaired } = read
  const hasConflicts = repaired.conflicts.length > 0
  if (!hasConflicts) {
    const verdict = await verdictOn(spec, repaired.value)
    if (verdict.kind === 'valid') {
      return {
        ok: true,
        value: verdict.value,
        text: JSON.stringify(repaired.value),
        repairs: shortened(repaired.repairs),
      }
    }
  }
  // The repaired copy does not fit: the call is judged as it was sent.
  if (original === undefined) return refused(spec, 'InvalidArguments', { issues: [NOT_AN_OBJECT], sent: read })
  const verdict = await verdictOn(spec, original)
  if (verdict.kind === 'valid' && !hasConflicts) return { ok: true, value: verdict.value, text: rawText, repairs: [] }
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
  /** The object that was sent; absent if its text was sent as a JSON string. */
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
  const repairs = ['a JSON object sent as a string was read as the object', ...inner.repairs]
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

/** A typed tool's own schema checks everything but fields that it would ignore; any other tool has a JSON Schema. */
async function verdictOn(spec: CallableTool, value: JsonObject): Promise<Verdict> {
  const { parameters, validate } = spec
  if (validate !== undefined && coversParameters(validate, parameters)) {
    const unknown = unknownFields(parameters, value)
    const result = await validate(value)
    if (result.ok && unknown.length === 0) return { kind: 'valid', value: result.value }
    return { kind: 'invalid', issues: [...(result.ok ? [] : result.issues), ...unknown] }
  }
  const problems = await schemaProblems(parameters, value)
  if (problems.kind !== 'valid') return problems
  const result = (await validate?.(value)) ?? { ok: true, value }
  return result.ok ? { kind: 'valid', value: result.value } : { kind: 'invalid', issues: result.issues }
}

/** Fields at the root that the schema for the model does not allow: a typed schema may ignore them silently. */
function unknownFields(parameters: JsonSchema, value: JsonObject): ArgumentIssue[] {
  if (parameters['additionalProperties'] !== false) return []
  const { root } = openPlaces(parameters)
  const unknown = Object.keys(value).filter((name) => root.field(name) === undefined)
  return unknown
    .slice(0, MOST_ISSUES)
    .map((name) => ({ path: [name], type: 'unknown_field', message: 'unknown field' }))
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
  const issues = verdict.kind === 'invalid' ? verdict.issues : []
  return refused(spec, 'ValidationError', { issues: [...conflicts, ...issues], sent })
}

function refused(
  spec: CallableTool,
  errorType: 'InvalidArguments' | 'ValidationError',
  { issues, sent: { rawText, received } }: { readonly issues: readonly ArgumentIssue[]; readonly sent: Sent },
): CheckedArguments {
  return { ok: false, text: previewArguments(rawText), outcome: refusal(spec, errorType, { issues, received }) }
}

/** A call with arguments that cannot be used. */
type Refusal = ToolOutcome & { readonly kind: 'failed' }

/**
 * The message to the model about arguments that do not fit: the tool, one line per problem, a summary of the received
 * arguments, the next step; at most 1,200 characters, and of a deferred tool its schema. `received`: the sent text, parsed as far as it was JSON.
 */
function refusal(
  spec: Omit<ToolSpec, 'call'>,
  errorType: 'InvalidArguments' | 'ValidationError',
  { issues, received }: { readonly issues: readonly ArgumentIssue[]; readonly received: Received },
): Refusal {
  const lines = [
    `Invalid arguments: \`${spec.name}\` was not run.`,
    ...fitting(
      issues.map((issue) => issueLine(issue, received)),
      { chars: 560, noun: 'problem', isCut: issues.length >= MOST_ISSUES },
    ),
    receivedLine(received),
    advice(spec),
  ]
  const more = spec.deferred === true ? `\nIts parameters: ${clipped(JSON.stringify(spec.parameters), 4_000)}` : ''
  const content = clipped(lines.join('\n'), LONGEST_MESSAGE) + more
  const fields = isObject(received.value) ? Object.keys(received.value).slice(0, MOST_FIELDS).map(shownName) : undefined
  const errors = issues.slice(0, MOST_LINES).map(errorOf)
  const metadata: JsonObject = { tool: spec.name, errors, ...(fields !== undefined && { fields }) }
  return { kind: 'failed', errorType, content, retry: true, metadata }
}

/** The sent text: its length in characters, and its value if it is JSON. */
interface Received {
  readonly chars: number
  readonly value?: JsonValue
}

/** The refusal of a tool with a broken schema, which the model cannot correct. */
function brokenSchema(spec: Omit<ToolSpec, 'call'>, message: string): Refusal {
  const problem = clipped(message.split('\n', 1)[0] ?? '', 300)
  const content = `\`${spec.name}\` was not run and cannot be used: the schema of its arguments is broken. ${problem}`
  return { kind: 'failed', errorType: 'InvalidToolSchema', content, retry: false, metadata: { tool: spec.name } }
}

const LONGEST_MESSAGE = 1_200
const MOST_LINES = 12
const MOST_FIELDS = 12

function issueLine({ path, message }: ArgumentIssue, { value }: Received): string {
  const input = valueAt(value, path)
  const shown = input === undefined || isObject(input) ? '' : ` (${inputAt(path, input)})`
  return `- ${dotted(path)}: ${clipped(message, 200)}${shown}`
}

function errorOf({ type, path, message }: ArgumentIssue): JsonObject {
  return {
    type,
    loc: path.map((step) => (typeof step === 'string' ? shownName(step) : step)),
    msg: clipped(message, 200),
  }
}

function receivedLine({ value, chars }: Received): string {
  if (!isObject(value)) return `Received: ${chars} characters of text.`
  const fields = Object.entries(value).map(([name, each]) => `${shownName(name)} = ${summaryOf(name, each)}`)
  if (fields.length === 0) return 'Received: no fields.'
  return `Received: ${fitting(fields, { chars: 360, noun: 'field' }).join('; ')}`
}

function advice(spec: Omit<ToolSpec, 'call'>): string {
  const { names } = openPlaces(spec.parameters).root
  const again = `Correct this and call \`${spec.name}\` again with one JSON object of all its fields`
  if (names.length === 0) return `${again}.`
  const { required } = spec.parameters
  const isRequired = (name: string): boolean => Array.isArray(required) && required.includes(name)
  const fields = names.map((name) => `${shownName(name)}${isRequired(name) ? ' (required)' : ''}`)
  return `${again}: ${fitting(fields, { chars: 120, noun: 'field' }).join(', ')}.`
}

interface Fit {
  readonly chars: number
  readonly noun: string
  /** There are more items than were rendered. */
  readonly isCut?: boolean
}

/** As many strings as fit, at most 12, then the number of those left out. */
function fitting(texts: readonly string[], { chars, noun, isCut = false }: Fit): string[] {
  let left = chars
  const shown: string[] = []
  for (const text of texts) {
    if (shown.length === MOST_LINES || (text.length > left && shown.length > 0)) break
    shown.push(clipped(text, chars))
    left -= text.length + 2
  }
  const more = texts.length - shown.length
  const rest = `and ${isCut ? 'at least ' : ''}${more} more ${noun}${more === 1 ? '' : 's'}`
  return more === 0 ? shown : [...shown, rest]
}
