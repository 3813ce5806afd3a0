// A scripted reader: it explores a tree, and answers questions by what its request shows or by \`recall\`.
import { HarnessError } from 'thinharness'
import type { AssistantPart, Model, ModelTurn, TokenUsage, TranscriptEntry } from 'thinharness'
import { codeIn, nameIn, NOTES, PLANTED } from './facts.js'
import { Meter, sentOf, tokensOf } from './meter.js'
import type { Sent } from './meter.js'
import { callsOf } from './trees.js'
import type { Tree } from './trees.js'
import { NO_TOKENS } from '../tokens.js'

/** Most calls of \`recall\` for one question. */
const MOST_RECALLS = 60

export interface Reader extends Model {
  readonly meter: Meter
  /** Turns that explored. */
  turns: number
  /** Explores until then, and answers. */
  until: number
  /** Calls of \`recall\` for the last question. */
  recalls: number
}

/** A model with a window. Its answers depend on its requests alone, except for what it explores next. */
export function readerOf(tree: Tree, window: number): Reader {
  const reader: Reader = {
    ...{ provider: 'scripted', id: 'reader', capabilities: { contextTokens: window } },
    ...{ meter: new Meter(), turns: 0, until: 0, recalls: 0 },
    openSession: () => ({ turn: (view) => Promise.resolve().then(() => turnOf(reader, view)) }),
  }

  function turnOf(self: Reader, view: readonly TranscriptEntry[]): ModelTurn {
    const messages = view.map(sentOf)
    const length = messages.reduce((sum, { text }) => sum + tokensOf(text), 0)
    if (length > window)
      throw new HarnessError('context_overflow', `prompt is too long: ${length} tokens > ${window} maximum`)
    const { input, cached } = self.meter.add(messages)
    const question = messages.findLast(({ role, text }) => role === 'user' && nameIn(text) !== null)
    const isAsked = question !== undefined && messages.indexOf(question) > messages.findLastIndex(isAnswer)
    const parts = isAsked ? answered(self, messages, question) : explored(self, tree)
    return turnWith(parts, { input, cached })
  }

  return reader
}

function isAnswer({ role, text }: Sent): boolean {
  return role === 'assistant' && (/^\d{6}$/.test(text) || text === UNKNOWN)
}

export const UNKNOWN = 'I do not know.'

/** Turn 3 reads the facts, any other what it finds. */
function explored(reader: Reader, tree: Tree): readonly AssistantPart[] {
  if (reader.turns >= reader.until) return [{ type: 'text', text: 'Explored.' }]
  reader.turns += 1
  const calls = reader.turns === PLANTED ? [{ name: 'read', arguments: { path: NOTES } }] : callsOf(tree, reader.turns)
  return calls.map((call, index) => ({
    ...{ type: 'tool_call', callId: `call_${reader.turns}_${index}`, name: call.name },
    arguments: JSON.stringify(call.arguments),
  }))
}

/** Answers by what the request shows; else reads the originals of its notes, the oldest first. */
function answered(reader: Reader, messages: readonly Sent[], question: Sent): readonly AssistantPart[] {
  const name = nameIn(question.text) ?? ''
  const asked = messages.lastIndexOf(question)
  if (!messages.slice(asked).some(({ role }) => role === 'tool')) reader.recalls = 0
  const found = messages.map(({ text }) => codeIn(text, name)).find((code) => code !== null)
  if (typeof found === 'string') return [{ type: 'text', text: found }]
  const next = nextPage(messages, asked)
  if (next === null || reader.recalls >= MOST_RECALLS) return [{ type: 'text', text: UNKNOWN }]
  reader.recalls += 1
  const callId = `recall_${reader.turns}_${name}_${reader.recalls}`
  return [{ type: 'tool_call', callId, name: 'recall', arguments: JSON.stringify(next) }]
}

interface Page {
  readonly handle: string
  readonly page: number
}

/** The page after the last one that was recalled; else the first page of the next handle. */
function nextPage(messages: readonly Sent[], asked: number): Page | null {
  const handles = messages
    .slice(0, asked)
    .flatMap(({ text }) => [...text.matchAll(/recall\(\{"handle":"([^"]+)"\}\)/g)].map(([, handle = '']) => handle))
  const since = messages.slice(asked)
  const last = since.findLast(({ role, text }) => role === 'assistant' && text.startsWith('recall('))
  if (last === undefined) return handles[0] === undefined ? null : { handle: handles[0], page: 1 }
  const { handle } = JSON.parse(last.text.slice('recall('.length, -1)) as Page
  const next = /Next: page (\d+)\.\]$/.exec(since.at(-1)?.text ?? '')?.[1]
  if (next !== undefined) return { handle, page: Number(next) }
  const following = handles[handles.indexOf(handle) + 1]
  return following === undefined ? null : { handle: following, page: 1 }
}

/** A model that writes summaries; its tokens are added to the meter. */
export function writerOf(meter: Meter, write: (text: string) => string): Model {
  return {
    ...{ provider: 'scripted', id: 'writer', capabilities: {} },
    openSession: () => ({
      turn: (view) => {
        const prompt = view.map(sentOf).findLast(({ role }) => role === 'user')?.text ?? ''
        const text = write(prompt)
        meter.writerInput += tokensOf(prompt)
        meter.writerOutput += tokensOf(text)
        return Promise.resolve(turnWith([{ type: 'text', text }], { input: tokensOf(prompt), cached: 0 }))
      },
    }),
  }
}

function turnWith(
  parts: readonly AssistantPart[],
  { input, cached }: { readonly input: number; readonly cached: number },
): ModelTurn {
  const finishReason = parts.some(({ type }) => type === 'tool_call') ? 'tool_calls' : 'stop'
  const usage: TokenUsage = {
    ...NO_TOKENS,
    inputTokens: input,
    outputTokens: parts.reduce((sum, part) => sum + tokensOf(JSON.stringify(part)), 0),
    cacheReadTokens: cached,
  }
  return { entry: { role: 'assistant', parts, provider: 'scripted', model: 'scripted', finishReason, usage } }
}
