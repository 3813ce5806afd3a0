import type { JsonObject, JsonValue } from '../../util/json.js'
import { isObject } from '../../util/json.js'
import { MOST_ISSUES, valueAt } from '../../schema/findings.js'
import type { ToolOutcome } from '../outcome.js'
import { openPlaces } from '../../schema/places.js'
import type { ToolSpec } from '../spec.js'
import type { ArgumentIssue } from '../../schema/validation.js'
import { clipped, dotted, inputAt, shownName, summaryOf } from './summaries.js'

/** A call with arguments that cannot be used. */
export type Refusal = ToolOutcome & { readonly kind: 'failed' }

/**
 * The message to the model about arguments that do not fit: the tool, one line per problem, a summary of the received
 * arguments, the next step; at most 1,200 characters. `received`: the sent text, parsed as far as it was JSON.
 */
export function refusal(
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
  const fields = isObject(received.value) ? Object.keys(received.value).slice(0, MOST_FIELDS).map(shownName) : undefined
  const errors = issues.slice(0, MOST_LINES).map(errorOf)
  const metadata: JsonObject = { tool: spec.name, errors, ...(fields !== undefined && { fields }) }
  return { kind: 'failed', errorType, content: clipped(lines.join('\n'), LONGEST_MESSAGE), retry: true, metadata }
}

/** The sent text: its length in characters, and its value if it is JSON. */
export interface Received {
  readonly chars: number
  readonly value?: JsonValue
}

/** The refusal of a tool with a broken schema, which the model cannot correct. */
export function brokenSchema(spec: Omit<ToolSpec, 'call'>, message: string): Refusal {
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
