import { HarnessError } from '#contracts/errors.js'
import { FINISH_REASONS, textOf, TOKEN_FIELDS, toolCallsOf, UNREPORTED_USAGE } from '#contracts/entry.js'
import type { AssistantPart, TranscriptEntry } from '#contracts/entry.js'
import type { Model, ModelToolCall, ModelTurn } from '../../model-session.js'
import type { ReceivedTurn } from '../../state/resolve-turn.js'
import { previewArguments } from '../../tools/boundary/check-arguments.js'
import type { CheckedArguments } from '../../tools/boundary/check-arguments.js'
import type { ToolSpec } from '../../tools/tool-spec.js'
import { atOnce } from '#util/wrapped.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { compactText, plainJson } from '#util/plain-json.js'
import { FINAL_RESULT } from '../../state/output-format.js'
import { checkCall } from '../calls/admission.js'

type Tools = ReadonlyMap<string, ToolSpec>

/** A reply as it is recorded. */
export interface ReadTurn extends ReceivedTurn {
  /** The checked arguments of the calls of known tools, by call id. */
  readonly checked: ReadonlyMap<string, CheckedArguments>
  /** The calls for which calls of the reply stand; `checked` has the arguments of these. */
  readonly resolved: readonly ModelToolCall[]
}

/**
 * Reads a reply: its call ids become unique in the transcript, and its arguments those that the tool boundary accepts.
 * `calls` are the calls of the entry, by these ids, with their original arguments. Rejects with `provider_error` if a custom
 * model returned another shape.
 */
export async function readTurn(
  turn: ModelTurn,
  model: Pick<Model, 'provider' | 'id'>,
  { tools, ids }: { readonly tools: Tools; readonly ids: CallIds },
): Promise<ReadTurn> {
  checkTurn(turn, model)
  const { entry } = turn
  if (entry.parts.length > MOST_CALLS) {
    const callCount = toolCallsOf(entry.parts).length
    if (callCount > MOST_CALLS) return withoutCalls(turn, callCount)
  }
  // Copies: the run freezes its entries, and the model's own objects stay its own. A spread would be slower to freeze.
  const parts: AssistantPart[] = []
  const calls: ModelToolCall[] = []
  const checked = new Map<string, CheckedArguments>()
  const resolved: ModelToolCall[] = []
  for (const part of entry.parts) {
    if (part.type !== 'tool_call') {
      parts.push(Object.assign({}, part))
      continue
    }
    const { arguments: text } = part
    const name = knownName(part.name, tools)
    const callId = ids.claim(part.callId)
    const spec = tools.get(name)
    let runs = spec && (await checkCall(spec, text, entry.finishReason))
    const sent = runs?.text ?? previewArguments(text)
    const other = runs?.ok === true && spec?.resolve !== undefined ? otherCall(spec, runs.value, tools) : null
    if (other !== null) {
      const target = tools.get(other.name)
      runs = target && (await checkCall(target, other.arguments, entry.finishReason))
      resolved.push({ callId, name: other.name, arguments: runs?.text ?? other.arguments })
    }
    if (runs !== undefined) checked.set(callId, runs)
    calls.push({ callId, name, arguments: text })
    parts.push(Object.assign({}, part, { callId, name, arguments: sent }))
  }
  const usage = Object.assign({}, UNREPORTED_USAGE, entry.usage)
  const recorded = Object.assign({}, turn, { entry: Object.assign({}, entry, { parts, usage }) })
  return { turn: recorded, calls, checked, resolved }
}

/** The tool that a model means: some write white space around its name, or the place of its definition before it. */
function knownName(given: string, tools: Tools): string {
  if (tools.has(given)) return given
  const [, name = given] = /^\s*(?:functions\.)?(.*?)(?::\d+)?\s*$/s.exec(given) ?? []
  return tools.has(name) || name === FINAL_RESULT ? name : given
}

/** The call that a call of the tool stands for; null if it stands for itself. Not for an answer, and not for another stand-in. */
function otherCall({ name, resolve }: ToolSpec, args: JsonObject, tools: Tools): Omit<ModelToolCall, 'callId'> | null {
  const other = atOnce(`\`resolve\` of tool \`${name}\``, withoutError(() => resolve?.(args)) ?? null)
  if (other === null || other.name === FINAL_RESULT || tools.get(other.name)?.resolve !== undefined) return null
  return withoutError(() => ({ name: other.name, arguments: compactText(plainJson(other.arguments)) })) ?? null
}

function withoutError<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

/** The most calls of one reply. */
const MOST_CALLS = 1000

/** The text of a reply whose calls are too many: none of them is looked at, kept or run. */
function withoutCalls(turn: ModelTurn, callCount: number): ReadTurn {
  const { native: _, ...entry } = turn.entry
  const text = textOf(entry.parts) || `(${callCount} tool calls, left out)`
  const usage = Object.assign({}, UNREPORTED_USAGE, entry.usage)
  const kept = { ...entry, parts: [{ type: 'text' as const, text }], usage }
  const problem = `The model made ${callCount} tool calls in one reply: at most ${MOST_CALLS} are taken, so none of them was run.`
  return { turn: { ...turn, entry: kept }, calls: [], checked: new Map(), resolved: [], problem }
}

/** Throws `provider_error` if a custom model returned something else than a turn. */
export function checkTurn(turn: unknown, { provider, id }: Pick<Model, 'provider' | 'id'>): asserts turn is ModelTurn {
  const problem = problemOf(turn)
  if (problem !== undefined)
    throw new HarnessError('provider_error', `Model \`${provider}:${id}\` returned an invalid turn: ${problem}.`)
}

const PARTS: ReadonlySet<unknown> = new Set(['text', 'reasoning', 'tool_call', 'hosted', 'image', 'opaque'])
const REASONS: ReadonlySet<unknown> = new Set(FINISH_REASONS)
const WORDS = ['nativeFinishReason', 'responseId', 'responseModel', 'refusal'] as const

/** The first member of a turn that has an invalid value, in words. */
function problemOf(turn: unknown): string | undefined {
  if (!isObject(turn)) return `expected an object, got \`${shown(turn)}\``
  const { entry } = turn
  if (!isObject(entry)) return `\`entry\` must be an object, got \`${shown(entry)}\``
  const { role, parts, finishReason, usage, provider, model, native } = entry
  if (role !== 'assistant') return `\`entry.role\` must be \`assistant\`, got \`${shown(role)}\``
  if (!Array.isArray(parts)) return `\`entry.parts\` must be a list, got \`${shown(parts)}\``
  let index = 0
  for (const part of parts as readonly unknown[]) {
    const at = `\`entry.parts[${index++}]`
    if (!isObject(part)) return `${at}\` must be an object, got \`${shown(part)}\``
    const { type, text, callId, name, arguments: input, native: own } = part
    if (!PARTS.has(type)) return `${at}.type\` must be one of \`${[...PARTS].join('`, `')}\`, got \`${shown(type)}\``
    if ((type === 'text' || type === 'reasoning') && typeof text !== 'string')
      return `${at}.text\` must be a string, got \`${shown(text)}\``
    if (own !== undefined && !(isObject(own) && typeof own['provider'] === 'string'))
      return `${at}.native\` must be an object with \`provider\` and \`data\`, got \`${shown(own)}\``
    if (type !== 'tool_call') continue
    if (typeof callId !== 'string') return `${at}.callId\` must be a string, got \`${shown(callId)}\``
    if (typeof name !== 'string') return `${at}.name\` must be a string, got \`${shown(name)}\``
    if (typeof input !== 'string') return `${at}.arguments\` must be a string, got \`${shown(input)}\``
  }
  if (typeof provider !== 'string') return `\`entry.provider\` must be a string, got \`${shown(provider)}\``
  if (typeof model !== 'string') return `\`entry.model\` must be a string, got \`${shown(model)}\``
  if (!REASONS.has(finishReason))
    return `\`entry.finishReason\` must be one of \`${FINISH_REASONS.join('`, `')}\`, got \`${shown(finishReason)}\``
  if (native !== undefined && !(isObject(native) && typeof native['provider'] === 'string'))
    return `\`entry.native\` must be an object with \`provider\` and \`data\`, got \`${shown(native)}\``
  if (!isObject(usage)) return `\`entry.usage\` must be an object, got \`${shown(usage)}\``
  for (const name of TOKEN_FIELDS) {
    const count = usage[name]
    if (count !== undefined && count !== null && !(Number.isSafeInteger(count) && Number(count) >= 0))
      return `\`entry.usage.${name}\` must be a whole number from 0 up, or null, got \`${shown(count)}\``
  }
  for (const name of WORDS) {
    const word = turn[name]
    if (word !== undefined && word !== null && typeof word !== 'string')
      return `\`${name}\` must be a string, got \`${shown(word)}\``
  }
  return undefined
}

/** A value in a message: of an object, only its kind. */
function shown(value: unknown): string {
  if (typeof value === 'string') return value.slice(0, 100)
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'a list' : 'an object'
  return typeof value === 'function' ? 'a function' : String(value)
}

/** The call ids of a transcript: each is given out once. They are read when the first reply has a call. */
export class CallIds {
  readonly #transcript: readonly TranscriptEntry[]
  #used: Set<string> | null = null

  constructor(transcript: readonly TranscriptEntry[]) {
    this.#transcript = transcript
  }

  /** `wanted`, or an id made from it if it is empty, in use or not a safe key. */
  claim(wanted: string): string {
    const used = (this.#used ??= usedIn(this.#transcript))
    const base = wanted === '' || wanted === '__proto__' ? 'call' : wanted
    let id = base
    for (let copy = 2; used.has(id) || id === 'call'; copy++) id = `${base}_${copy}`
    used.add(id)
    return id
  }
}

/** The transcript may be long: its entries are only looked at. */
function usedIn(transcript: readonly TranscriptEntry[]): Set<string> {
  const used = new Set<string>()
  for (const entry of transcript)
    if (entry.role === 'assistant') for (const part of entry.parts) if (part.type === 'tool_call') used.add(part.callId)
  return used
}
