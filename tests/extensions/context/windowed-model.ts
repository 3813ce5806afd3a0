import { HarnessError, toolCallsOf } from 'thinharness'
import type { AssistantPart, Model, ModelTurn, TranscriptEntry } from 'thinharness'
import { UNREPORTED_USAGE } from '#contracts/entry.js'

/** Numbers from 0 to 1, the same for each seed. */
export function randomOf(seed: number): () => number {
  let state = seed + 0x6d2b79f5
  return () => {
    state = Math.imul(state ^ (state >>> 15), state | 1)
    state ^= state + Math.imul(state ^ (state >>> 7), state | 61)
    return ((state ^ (state >>> 14)) >>> 0) / 4294967296
  }
}

export interface Windowed extends Model {
  /** Tokens of all requests that were answered. */
  readonly sums: { input: number; cached: number; refused: number; requests: number; largest: number }
  /** The entries of the last request. */
  view: readonly TranscriptEntry[]
}

export interface WindowedOptions {
  /** Tokens of input that it takes. */
  readonly window: number
  /** The window is part of its capabilities. Default true. */
  readonly isKnown?: boolean
  /** Characters for one token. Default 3.2, so that estimates are wrong. */
  readonly charsPerToken?: number
  readonly reply: (request: number) => readonly AssistantPart[]
}

/** A model that refuses requests longer than its window and broken histories, and reports what a prefix cache would save. */
export function windowedModel({ window, isKnown = true, charsPerToken = 3.2, reply }: WindowedOptions): Windowed {
  const sums = { input: 0, cached: 0, refused: 0, requests: 0, largest: 0 }
  const model: Windowed = {
    provider: 'scripted',
    id: 'windowed',
    capabilities: isKnown ? { contextTokens: window } : {},
    sums,
    view: [],
    openSession: () => {
      let before: { readonly entries: readonly TranscriptEntry[]; readonly generation: number } | null = null
      const lengths = new WeakMap<TranscriptEntry, number>()
      const lengthOf = (entry: TranscriptEntry): number => {
        const known = lengths.get(entry) ?? JSON.stringify(entry).length / charsPerToken
        lengths.set(entry, known)
        return known
      }
      const turn = (view: readonly TranscriptEntry[], generation: number): ModelTurn => {
        model.view = view
        requirePairs(view)
        const input = view.reduce((sum, entry) => sum + lengthOf(entry), 0)
        if (input > window) {
          sums.refused += 1
          throw new HarnessError('context_overflow', `prompt is too long: ${input} tokens > ${window} maximum`, {
            status: 400,
          })
        }
        const start = before?.entries.findIndex((entry, index) => entry !== view[index]) ?? 0
        const shared = view.slice(0, start < 0 ? (before?.entries.length ?? 0) : start)
        const cached = shared.reduce((sum, entry) => sum + lengthOf(entry), 0)
        // A change of the view is not counted.
        if (before?.generation === generation) {
          sums.input += input
          sums.cached += cached
        }
        sums.requests += 1
        sums.largest = Math.max(sums.largest, input)
        before = { entries: [...view], generation }
        const parts = reply(sums.requests - 1)
        const finishReason = parts.some(({ type }) => type === 'tool_call') ? 'tool_calls' : 'stop'
        const usage = {
          ...UNREPORTED_USAGE,
          inputTokens: Math.round(input),
          outputTokens: 20,
          cacheReadTokens: Math.round(cached),
          cacheWriteTokens: 0,
        }
        return { entry: { role: 'assistant', parts, provider: 'scripted', model: 'windowed', finishReason, usage } }
      }
      return {
        turn: (view, _constants, { generation }) =>
          new Promise((resolve) => {
            resolve(turn(view, generation))
          }),
      }
    },
  }
  return model
}

/** Every call has its result, in the step of its reply, and every result its call. */
function requirePairs(view: readonly TranscriptEntry[]): void {
  let open = new Set<string>()
  for (const entry of view) {
    if (entry.role === 'tool') {
      if (!open.delete(entry.callId)) throw new Error(`The result \`${entry.id}\` has no call.`)
      continue
    }
    if (open.size > 0) throw new Error(`Before \`${entry.id}\`, ${open.size} calls have no result.`)
    open = new Set(entry.role === 'assistant' ? toolCallsOf(entry.parts).map(({ callId }) => callId) : [])
  }
  if (open.size > 0) throw new Error(`At the end, ${open.size} calls have no result.`)
}

/** Replies with calls of `look`, then an answer. */
export function lookingFor(turns: number, callsIn: (turn: number) => number = () => 1): WindowedOptions['reply'] {
  return (request) => {
    if (request >= turns) return [{ type: 'text', text: 'Done.' }]
    return Array.from({ length: callsIn(request) }, (_none, index) => ({
      ...{ type: 'tool_call', callId: `call_${request}_${index}`, name: 'look' },
      arguments: JSON.stringify({ place: `${request}.${index}` }),
    }))
  }
}
