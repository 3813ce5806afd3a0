import { HarnessError } from '../../contracts/errors.js'
import { toolCallsOf } from '../../contracts/entry.js'
import type { AssistantPart, TranscriptEntry } from '../../contracts/entry.js'
import type { Model, ModelToolCall, ModelTurn } from '../../contracts/model.js'
import type { ReceivedTurn } from '../../output/resolve.js'
import { previewArguments } from '../../tools/boundary/arguments.js'
import type { CheckedArguments } from '../../tools/boundary/arguments.js'
import type { ToolSpec } from '../../tools/spec.js'
import { isObject } from '../../util/json.js'
import { checkCall } from '../calls/admission.js'

/** A reply as it is recorded. */
export interface ReadTurn extends ReceivedTurn {
  /** The checked arguments of the calls of known tools, by call id. */
  readonly checked: ReadonlyMap<string, CheckedArguments>
}

/**
 * Reads a reply: its call ids become unique in the transcript, and its arguments those that the tool boundary accepts.
 * `calls` are the calls of the entry, by these ids, with their original arguments. Rejects with `provider_error` if a custom
 * model returned another shape.
 */
export async function readTurn(
  turn: ModelTurn,
  model: Pick<Model, 'provider' | 'id'>,
  { tools, ids }: { readonly tools: ReadonlyMap<string, ToolSpec>; readonly ids: CallIds },
): Promise<ReadTurn> {
  checkTurn(turn, model)
  const { entry } = turn
  // Copies: the run freezes its entries, and the model's own objects stay its own. A spread would be slower to freeze.
  const parts: AssistantPart[] = []
  const calls: ModelToolCall[] = []
  const checked = new Map<string, CheckedArguments>()
  for (const part of entry.parts) {
    if (part.type !== 'tool_call') {
      parts.push(Object.assign({}, part))
      continue
    }
    const { name, arguments: text } = part
    const callId = ids.claim(part.callId)
    const spec = tools.get(name)
    const result = spec === undefined ? undefined : await checkCall(spec, text, entry.finishReason)
    if (result !== undefined) checked.set(callId, result)
    calls.push({ callId, name, arguments: text })
    parts.push(Object.assign({}, part, { callId, arguments: result?.text ?? previewArguments(text) }))
  }
  return { turn: { ...turn, entry: { ...entry, parts, usage: Object.assign({}, entry.usage) } }, calls, checked }
}

/** Throws `provider_error` if a custom model returned something else than a turn. */
export function checkTurn(turn: unknown, { provider, id }: Pick<Model, 'provider' | 'id'>): asserts turn is ModelTurn {
  const problem = problemOf(turn)
  if (problem !== undefined)
    throw new HarnessError('provider_error', `Model \`${provider}:${id}\` returned an invalid turn: ${problem}.`)
}

/** The first member of a turn that has an invalid value, in words. */
function problemOf(turn: unknown): string | undefined {
  if (!isObject(turn)) return `expected an object, got \`${String(turn)}\``
  const { entry } = turn
  if (!isObject(entry)) return '`entry` must be an object'
  const { role, parts, finishReason, usage } = entry
  if (role !== 'assistant') return "`entry.role` must be `'assistant'`"
  if (!Array.isArray(parts)) return '`entry.parts` must be a list'
  for (const [index, part] of (parts as readonly unknown[]).entries()) {
    const at = `\`entry.parts[${index}]\``
    if (!isObject(part) || typeof part['type'] !== 'string') return `${at} must be an object with a \`type\``
    if (part['type'] !== 'tool_call') continue
    const { callId, name, arguments: text } = part
    if (typeof callId !== 'string' || typeof name !== 'string' || typeof text !== 'string')
      return `${at} must have \`callId\`, \`name\` and \`arguments\`, all strings`
  }
  if (typeof finishReason !== 'string') return '`entry.finishReason` must be a string'
  return isObject(usage) ? undefined : '`entry.usage` must be an object'
}

/** The call ids of a transcript: each is given out once. */
export class CallIds {
  readonly #used = new Set<string>()

  constructor(transcript: readonly TranscriptEntry[]) {
    for (const entry of transcript)
      if (entry.role === 'assistant') for (const { callId } of toolCallsOf(entry.parts)) this.#used.add(callId)
  }

  /** `wanted`, or an id made from it if it is empty, in use or not a safe key. */
  claim(wanted: string): string {
    const base = wanted === '' || wanted === '__proto__' ? 'call' : wanted
    let id = base
    for (let copy = 2; this.#used.has(id) || id === 'call'; copy++) id = `${base}_${copy}`
    this.#used.add(id)
    return id
  }
}
