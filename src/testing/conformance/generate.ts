import type { WireReply } from '../wire/api.js'
import { NO_TOKENS } from '#contracts/entry.js'
import type { AssistantPart, ToolEntry, TokenUsage, TranscriptEntry, UserEntry } from '#contracts/entry.js'
import type { JsonObject, JsonValue } from '#util/json.js'

/** A reply of a server, without the fields that depend on the request. */
export type GivenReply = Omit<WireReply, 'body' | 'model'>

type GivenPart = WireReply['parts'][number]

/** Texts that are hard to transport: quotes, line ends, other scripts, wire formats. */
const PIECES = [
  'word',
  'two words',
  'naïve',
  '漢字',
  'שלום',
  '😀👩‍👩‍👧',
  'é',
  'a\u2028b',
  '"quoted" \\ back',
  'line\nline',
  'tab\there',
  'crlf\r\nend',
  '{"json": true}',
  '</thinking>',
  'data: [DONE]\n\n',
  'event: x',
  '<b>&amp;</b>',
  '`code`',
] as const

/** Generates random conversations and replies. Each text has a unique mark. */
export class Generator {
  readonly chance: Chance
  readonly #name: string
  #marks = 0
  #replies = 0
  #entries = 0
  #calls = 0

  /** `name` makes the marks of generators differ. */
  constructor(chance: Chance, name = 'm') {
    this.chance = chance
    this.#name = name
  }

  /** A unique word. */
  mark(): string {
    return `${this.#name}${(++this.#marks).toString(36)}x${this.chance.int(0, 46655).toString(36)}`
  }

  text(): string {
    const pieces = this.chance.several(0, 4, () => this.chance.pick<string>(PIECES))
    pieces.splice(this.chance.int(0, pieces.length), 0, this.mark())
    return pieces.join(this.chance.pick<string>([' ', '', '\n']))
  }

  /** Arguments of a call, as text. */
  args(): string {
    if (this.chance.happens(0.1)) return '{}'
    const text = JSON.stringify(this.#object(2))
    return this.chance.happens(0.3) ? text.replace(/^\{/, '{ ').replace(/,"/g, ', "') : text
  }

  /** A reply with thoughts, text and calls, in the order in which every API can give them. */
  reply({ calls = this.chance.int(0, 3), reasoning = this.chance.happens(0.5) } = {}): GivenReply {
    const parts: GivenPart[] = []
    if (reasoning) parts.push({ type: 'reasoning', text: this.chance.happens(0.2) ? '' : this.text() })
    if (calls === 0 || this.chance.happens(0.5)) parts.push({ type: 'text', text: this.text() })
    for (let count = 0; count < calls; count++) parts.push(this.call())
    return this.replyOf(parts)
  }

  call(callId: string | null = this.callId()): GivenPart & { type: 'call' } {
    return { type: 'call', name: this.toolName(), arguments: this.args(), callId }
  }

  callId(): string {
    return `call_${this.#name}${++this.#calls}`
  }

  toolName(): string {
    return this.chance.pick(['read', 'look_up', 'send-mail'])
  }

  replyOf(parts: readonly GivenPart[], more: Partial<GivenReply> = {}): GivenReply {
    const hasCalls = parts.some((part) => part.type === 'call')
    return {
      id: `${this.#name}${(++this.#replies).toString(16).padStart(8, '0')}`,
      created: 1_767_225_600 + this.#replies,
      parts,
      finishReason: hasCalls ? 'tool_calls' : 'stop',
      nativeFinishReason: undefined,
      usage: this.usage(),
      ...more,
    }
  }

  usage(): TokenUsage {
    const [cacheReadTokens, cacheWriteTokens, reasoningTokens] = [this.#count(), this.#count(), this.#count()]
    return {
      ...NO_TOKENS,
      inputTokens: cacheReadTokens + cacheWriteTokens + this.#count(),
      outputTokens: reasoningTokens + this.#count(),
      cacheReadTokens,
      cacheWriteTokens,
      reasoningTokens,
    }
  }

  user(): UserEntry {
    return { role: 'user', ...this.stamp(), content: [{ type: 'text', text: this.text() }] }
  }

  /** The answer to a call: done, or failed. */
  result(callId: string, name: string): ToolEntry {
    const isError = this.chance.happens(0.3)
    const content = JSON.stringify({ ok: !isError, content: this.text(), metadata: {} })
    return { role: 'tool', ...this.stamp(), callId, name, content, isError }
  }

  /** A reply of another provider, with native data of that provider. */
  foreignReply(): TranscriptEntry & { role: 'assistant' } {
    const { parts, finishReason, usage } = this.reply()
    const foreign = parts.map((part) => this.#foreignPart(part))
    if (this.chance.happens(0.2)) foreign.push({ type: 'opaque', native: { provider: 'elsewhere', data: { n: 1 } } })
    return {
      role: 'assistant',
      ...this.stamp(),
      parts: foreign,
      provider: 'elsewhere',
      model: 'other-1',
      finishReason,
      usage: usage ?? this.usage(),
    }
  }

  stamp(): { readonly id: string; readonly at: string } {
    return { id: `e${++this.#entries}`, at: '2026-01-01T00:00:00.000Z' }
  }

  #foreignPart(part: GivenPart): AssistantPart {
    const native = { provider: 'elsewhere', data: { signature: this.mark(), id: this.mark() } }
    if (part.type === 'reasoning') return { type: 'reasoning', text: part.text, native }
    if (part.type !== 'call') return { type: 'text', text: part.type === 'block' ? '' : part.text }
    const name = this.chance.happens(0.1) ? 'no such.tool é' : part.name
    return { type: 'tool_call', callId: this.#foreignId(), name, arguments: part.arguments, native }
  }

  /** Providers differ in the ids that they allow. */
  #foreignId(): string {
    const id = this.callId()
    return this.chance.pick([id, `${id}_${'long'.repeat(20)}`, `${id}:é 漢`, `toolu_${id}`, id.slice(-1) + id])
  }

  #count(): number {
    return this.chance.int(0, 5000)
  }

  #object(depth: number): JsonObject {
    const members = this.chance.several(1, 3, (index) => [
      `${this.chance.pick(['a', 'b', 'é'])}${index}`,
      this.#value(depth),
    ])
    return Object.fromEntries(members) as JsonObject
  }

  #value(depth: number): JsonValue {
    const kinds = depth > 0 ? 6 : 4
    switch (this.chance.int(1, kinds)) {
      case 1:
        return this.text()
      case 2:
        return this.chance.pick([0, -1, 1.5, 1e21, 1e-7])
      case 3:
        return this.chance.pick([true, false, null])
      case 4:
        return ''
      case 5:
        return this.chance.several(0, 2, () => this.#value(depth - 1))
      default:
        return this.#object(depth - 1)
    }
  }
}

/** Reproducible random values: the same seed gives the same numbers (mulberry32). */
export class Chance {
  #state: number

  /** `seed` is a whole number. */
  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number from `least` to `most`. */
  int(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }

  /** True in `share` of all cases. */
  happens(share: number): boolean {
    return this.next() < share
  }

  pick<T>(list: readonly [T, ...T[]]): T {
    return list[this.int(0, list.length - 1)] ?? list[0]
  }

  /** From `least` to `most` items. */
  several<T>(least: number, most: number, make: (index: number) => T): T[] {
    return Array.from({ length: this.int(least, most) }, (_, index) => make(index))
  }
}

/** How bytes arrive. */
export type Cut = (bytes: Buffer) => readonly Buffer[]

export const byteByByte: Cut = (bytes) => Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))

/** In pieces of up to `most` bytes, regardless of characters and lines. */
export function atRandom(chance: Chance, most: number): Cut {
  return (bytes) => {
    const pieces: Buffer[] = []
    for (let from = 0; from < bytes.length;) {
      const to = from + chance.int(1, most)
      pieces.push(bytes.subarray(from, to))
      from = to
    }
    return pieces
  }
}

/** The first `share` of the bytes, from 0 to 1. */
export function cutToShare(share: number): Cut {
  return (bytes) => [bytes.subarray(0, Math.floor(bytes.length * share))]
}
