import type { ModelDelta } from '#core/model-session.js'
import type { AssistantPart, NativePart, TranscriptEntry } from '#contracts/entry.js'
import { isObject, jsonObjectIn, parseJson } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { sha256 } from '#util/platform/sha256.js'
import type { DecodedReply } from '../http/wire-format.js'

/**
 * The ids of the tool calls of a transcript. Some servers restart the numbering with each reply and so repeat ids. An id
 * identifies a call, so a repeated one is replaced: by the same id in the deltas and in the parts of the reply.
 */
export class WireCallIds {
  readonly #taken = new Set<string>()

  note(entries: readonly TranscriptEntry[]): void {
    for (const entry of entries) {
      if (entry.role !== 'assistant') continue
      for (const part of entry.parts) if (part.type === 'tool_call') this.#taken.add(part.callId)
    }
  }

  clear(): void {
    this.#taken.clear()
  }

  inDelta(delta: ModelDelta): ModelDelta {
    if (delta.callId === undefined || !this.#taken.has(delta.callId)) return delta
    return { ...delta, callId: this.#free(delta.callId) }
  }

  /** A list of its own, of the one form that V8's code for a turn expects: `map` and `flatMap` make others now and then. */
  inParts(parts: readonly AssistantPart[]): readonly AssistantPart[] {
    const named: AssistantPart[] = []
    for (const part of parts) {
      const isTaken = part.type === 'tool_call' && this.#taken.has(part.callId)
      named.push(isTaken ? { ...part, callId: this.#free(part.callId) } : part)
    }
    return named
  }

  #free(callId: string): string {
    for (let copy = 2; ; copy++) {
      const free = `${callId}_${copy}`
      if (!this.#taken.has(free)) return free
    }
  }
}

/** The ids of the calls of one reply: the provider's, replaced if missing or repeated within the reply. */
export class ReplyCallIds {
  readonly #callIdFor: (index: number) => string
  readonly #used = new Set<string>()
  #count = 0

  constructor(callIdFor: (index: number) => string) {
    this.#callIdFor = callIdFor
  }

  /** True if a call of this reply has the provider's `id`. */
  has(id: string): boolean {
    return this.#used.has(id)
  }

  /** The final id of the call with the provider's `id`. Once for each call; `index` is that of the call by default. */
  take(id: unknown, index = this.#count++): string {
    let callId = typeof id === 'string' ? id : ''
    for (let at = index; callId === '' || this.#used.has(callId); at++) callId = this.#callIdFor(at)
    this.#used.add(callId)
    return callId
  }
}

/** `callId` if the API accepts it, otherwise a digest: the same for the call and its result. */
export function acceptedCallId(callId: string, accepted: RegExp): string {
  return accepted.test(callId) ? callId : `call_${shortDigest(callId)}`
}

/** A digest of a string: 32 hexadecimal digits. */
export function shortDigest(text: string): string {
  return sha256(text).slice(0, 32)
}

/**
 * The name of an earlier call as APIs accept it: a model may have called a tool that does not exist. `longest` is in
 * characters, 64 by default.
 */
export function acceptedName(name: string, longest = 64): string {
  const accepted = name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, longest)
  return accepted === '' ? 'unnamed' : accepted
}

/** The arguments of a call as JSON text. Some servers send the object itself, or nothing for an empty one. */
export function argumentsText(input: unknown): string {
  if (typeof input === 'string') return input === '' ? '{}' : input
  return JSON.stringify(input ?? {})
}

/** Arguments as an object. Text that is not a JSON object is kept in it as the model wrote it. */
export function argumentsObject(text: string): JsonObject {
  if (text.trim() === '') return {}
  const parsed = parseJson(text)
  return parsed.ok && isObject(parsed.value) ? parsed.value : { invalid_arguments: text }
}

/** The input of a custom tool is plain text; as arguments it is `{"input": …}`. */
export function customArguments(input: string): string {
  return JSON.stringify({ input })
}

/** The plain text in `{"input": …}`. */
export function customInput(text: string): string {
  const { input } = jsonObjectIn(text)
  return typeof input === 'string' ? input : text
}

interface Holder {
  readonly native?: NativePart
}

/**
 * The name of what is a server's own: `provider`, or `provider@host` of a server that is not at the provider's address. A
 * wire format knows `provider` alone, so that what another host made is to it another provider's.
 */
export class OwnParts {
  readonly #provider: string
  readonly #name: string

  constructor(provider: string, name = provider) {
    this.#provider = provider
    this.#name = name
  }

  /** True if `holder` has something that this server made. */
  includes({ native }: Holder): boolean {
    return native?.provider === this.#name
  }

  /** The entries as a wire format reads them. */
  read(entries: readonly TranscriptEntry[]): readonly TranscriptEntry[] {
    if (this.#name === this.#provider || !entries.some(hasNative)) return entries
    return entries.map((entry) => {
      if (entry.role === 'tool' || !hasNative(entry)) return entry
      const named = this.#read(entry)
      return named.role === 'assistant' ? { ...named, parts: named.parts.map((part) => this.#read(part)) } : named
    })
  }

  /** The reply as the transcript has it. */
  write(reply: DecodedReply): DecodedReply {
    if (this.#name === this.#provider || !hasNative(reply)) return reply
    return { ...this.#named(reply), parts: reply.parts.map((part) => this.#named(part)) }
  }

  #read<T extends Holder>(holder: T): T {
    const by = holder.native?.provider
    if (by !== this.#name && by !== this.#provider) return holder
    return renamed(holder, by === this.#name ? this.#provider : `${this.#provider}@`)
  }

  #named<T extends Holder>(holder: T): T {
    return holder.native?.provider === this.#provider ? renamed(holder, this.#name) : holder
  }
}

/** True if it, or a part of it, has a provider's own form. */
function hasNative(holder: TranscriptEntry | DecodedReply): boolean {
  if ('native' in holder) return true
  if (!('parts' in holder)) return false
  for (const { native } of holder.parts) if (native !== undefined) return true
  return false
}

function renamed<T extends Holder>(holder: T, provider: string): T {
  return holder.native === undefined ? holder : { ...holder, native: { ...holder.native, provider } }
}
