import { ModelRetry } from '#contracts/errors.js'
import type { ModelCapabilities } from '#core/model-session.js'
import type { OutputContext, OutputType, OutputValidator } from '#core/tools/output-type.js'
import type { ArgumentIssue } from '#schema/argument-issues.js'
import { clipped, dotted } from '#core/tools/boundary/input-summary.js'
import { isObject, parseJson } from '#util/json.js'
import type { JsonSchema, JsonValue } from '#util/json.js'
import { sortedKeys } from '#schema/answer-schema.js'
import { withoutFillers } from '#schema/fillers.js'
import { parseWith } from '#schema/schema-check.js'
import { followAnswer } from './follow-answer.js'
import { FINAL_RESULT } from '#core/state/output-format.js'
import type { OutputFormat, ParsedOutput } from '#core/state/output-format.js'
import { isSeveral, outputForm } from './output-form.js'
import type { RequestedOutput } from './output-form.js'

const DESCRIPTION = 'Gives the final answer. Call it once, alone, when the work is done.'

/** The type of an answer that may be any text. */
export const anyText: JsonSchema = { type: 'string' }

/** The type of an answer, and how it is requested and checked. */
export interface AskedOutput extends RequestedOutput {
  /** The caller's own check, of an answer that fits. */
  readonly validate?: OutputValidator<unknown> | null
  /** Finds problems of the evidence in an answer; set if the type demands evidence. */
  readonly checkEvidence?: ((json: JsonValue, context: OutputContext) => Promise<readonly ArgumentIssue[]>) | null
}

/**
 * How an answer is asked for from a model of these capabilities. Throws `invalid_options` for a
 * mode that the model or the type cannot have.
 */
export function outputFormat(asked: AskedOutput, capabilities: ModelCapabilities): OutputFormat {
  const { document, isWrapped, full, strict, mode } = outputForm(asked, capabilities)
  const none = { mode, tool: null, request: null, instructions: '' }
  switch (mode) {
    case 'text':
      return { ...none, ...textReader(asked) }
    case 'tool':
      return {
        ...none,
        tool: { name: FINAL_RESULT, description: DESCRIPTION, parameters: full },
        ...jsonReader(asked, { isWrapped, strictOf: null }),
      }
    case 'native':
      return {
        ...none,
        request: { name: FINAL_RESULT, schema: strict ?? full, strict: strict !== null },
        ...jsonReader(asked, { isWrapped, strictOf: strict === null ? null : document }),
      }
    case 'prompted':
      return {
        ...none,
        instructions: promptedInstructions(document),
        ...jsonReader(asked, { isWrapped: false, strictOf: null }),
      }
  }
}

export type ParsedAnswer =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly issues: readonly ArgumentIssue[] }

/** Parses an answer with the first type that it fits; otherwise reports the problems of the type with the fewest. */
export async function parseAnswer(type: OutputType, json: unknown): Promise<ParsedAnswer> {
  if (!isSeveral(type)) return parseWith(type, json)
  let nearest: readonly ArgumentIssue[] = []
  for (const each of type) {
    const parsed = await parseWith(each, json)
    if (parsed.ok) return parsed
    if (nearest.length === 0 || weight(parsed.issues) < weight(nearest)) nearest = parsed.issues
  }
  return { ok: false, issues: nearest }
}

/** A value of another kind is further off than any with wrong fields. */
function weight(issues: readonly ArgumentIssue[]): number {
  return issues.reduce((sum, { path, type }) => sum + (path.length === 0 && type.endsWith('type') ? 100 : 1), 0)
}

function promptedInstructions(document: JsonSchema): string {
  return `Give the final answer as JSON only, without any other text, fitting this JSON Schema:\n${JSON.stringify(sortedKeys(document))}`
}

type Reader = Pick<OutputFormat, 'parseText' | 'parseArguments' | 'follow'>

/** How an answer is written: as the member `value` of an object, or in the strict form of a schema. */
interface Written {
  readonly isWrapped: boolean
  readonly strictOf: JsonSchema | null
}

function jsonReader(asked: AskedOutput, { isWrapped, strictOf }: Written): Reader {
  const read = async (text: string, context: OutputContext): Promise<ParsedOutput> => {
    const parsed = parseJson(text)
    if (!parsed.ok) return { ok: false, problem: `The answer is not JSON: ${parsed.problem}` }
    const given = isWrapped && isObject(parsed.value) ? parsed.value['value'] : parsed.value
    const json = strictOf === null || given === undefined ? given : withoutFillers(strictOf, given)
    const result = await parseAnswer(asked.type, json)
    if (!result.ok) return { ok: false, problem: problemOf(result.issues) }
    return checked(asked, { json: json ?? null, value: result.value }, context)
  }
  return {
    parseText: (text, context) => read(withoutFence(text), context),
    parseArguments: read,
    follow: () => followAnswer({ isWrapped, hasFillers: strictOf !== null }),
  }
}

/** Any text fits; only the caller's check can reject it. */
function textReader(asked: AskedOutput): Reader {
  const read = async (text: string, context: OutputContext): Promise<ParsedOutput> => {
    const result = asked.type === anyText ? { ok: true as const, value: text } : await parseAnswer(asked.type, text)
    if (!result.ok) return { ok: false, problem: problemOf(result.issues) }
    return checked(asked, { json: text, value: result.value }, context)
  }
  return { parseText: read, parseArguments: read, follow: () => null }
}

async function checked(
  { validate, checkEvidence }: AskedOutput,
  answer: { readonly json: JsonValue; readonly value: unknown },
  context: OutputContext,
): Promise<ParsedOutput> {
  const issues = (await checkEvidence?.(answer.json, context)) ?? []
  if (issues.length > 0) return { ok: false, problem: problemOf(issues) }
  try {
    await validate?.(answer.value, context)
    return { ok: true, ...answer }
  } catch (thrown) {
    if (thrown instanceof ModelRetry) return { ok: false, problem: clipped(thrown.message, LONGEST_PROBLEM) }
    throw thrown
  }
}

const MOST_ISSUES = 12

function problemOf(issues: readonly ArgumentIssue[]): string {
  const lines = issues
    .slice(0, MOST_ISSUES)
    .map(({ path, message }) => `- ${dotted(path)}: ${clipped(message, LONGEST_MESSAGE)}`)
  return (lines.length < issues.length ? [...lines, '- and more problems'] : lines).join('\n')
}

/** Most characters of the problem of one field. */
const LONGEST_MESSAGE = 300
/** Characters of a message of the caller's check. */
const LONGEST_PROBLEM = 4_000

/** The inside of one Markdown code fence around the whole text. */
function withoutFence(text: string): string {
  const trimmed = text.trim()
  const fence = /^```(?:json)?[ \t]*\r?\n([\s\S]*?)\r?\n?```$/i.exec(trimmed)
  return fence?.[1] ?? trimmed
}
