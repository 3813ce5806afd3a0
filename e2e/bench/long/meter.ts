// The input of requests, in tokens, and how much of it a prompt cache has.
import { resultForModel, textOf, toolCallsOf } from 'thinharness'
import type { ContentPart, TranscriptEntry } from 'thinharness'

/** Characters for one token. */
const CHARACTERS = 4
/** Tokens of input that cost as much as one token of output, and as one that is read from the cache. */
const OUTPUT = 5
const CACHED = 0.1

/** A message, as far as its tokens and the search for facts are concerned. */
export interface Sent {
  readonly role: 'user' | 'assistant' | 'tool'
  readonly text: string
}

const known = new WeakMap<TranscriptEntry, Sent>()

/** The same object for the same entry, so that requests can be compared quickly. */
export function sentOf(entry: TranscriptEntry): Sent {
  let sent = known.get(entry)
  if (sent === undefined) known.set(entry, (sent = { role: entry.role, text: textOfEntry(entry) }))
  return sent
}

function textOfEntry(entry: TranscriptEntry): string {
  if (entry.role === 'user') return joined(entry.content)
  if (entry.role === 'tool') return joined(resultForModel(entry, 'prefix'))
  return (
    textOf(entry.parts) +
    toolCallsOf(entry.parts)
      .map((call) => `${call.name}(${call.arguments})`)
      .join('\n')
  )
}

function joined(content: string | readonly ContentPart[]): string {
  return typeof content === 'string' ? content : content.map((part) => ('text' in part ? part.text : '')).join('\n')
}

export function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARACTERS)
}

/** Sums up the requests of a conversation. The common beginning with the last request is read from the cache. */
export class Meter {
  #last: readonly Sent[] = []
  input = 0
  cached = 0
  longest = 0
  /** Of models that write about the conversation. */
  writerInput = 0
  writerOutput = 0

  add(messages: readonly Sent[]): { readonly input: number; readonly cached: number } {
    let [input, cached, isShared] = [0, 0, true]
    for (const [index, message] of messages.entries()) {
      const tokens = tokensOf(message.text)
      isShared &&= message === this.#last[index] || message.text === this.#last[index]?.text
      input += tokens
      if (isShared) cached += tokens
    }
    this.#last = [...messages]
    this.input += input
    this.cached += cached
    this.longest = Math.max(this.longest, input)
    return { input, cached }
  }

  /** In tokens of input at the full price. */
  get cost(): number {
    const { input, cached, writerInput, writerOutput } = this
    return input - cached + cached * CACHED + writerInput + writerOutput * OUTPUT
  }
}
