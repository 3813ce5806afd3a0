import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { ModelTurn } from '#core/model-session.js'
import { responsesFormat } from '#providers/openai/request.js'
import { openai } from '#providers/openai/index.js'
import { nativeDataOf } from '#providers/openai/output-items.js'
import { UNREPORTED_USAGE, toolCallsOf } from '#contracts/entry.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import {
  answerOf,
  atRandom,
  byteByByte,
  bytesOf,
  expectAnswer,
  fetchOf,
  PROVIDER_CASES,
  providerCases,
  whole,
} from '../../support/provider-cases.js'
import type { Cut, ProviderCase } from '../../support/provider-cases.js'
import { expectValidRequest } from '../../support/request-schemas.js'
import { NO_CONSTANTS, told } from './replies.js'
import type { Fields } from './replies.js'

const cases = ['openai-responses', 'compat-responses'].flatMap(providerCases)

describe('recorded replies', () => {
  test.each(cases.map((each) => [each.file, each] as const))('%s', async (_file, each) => {
    const cuts: Cut[] = each.stream ? [whole, byteByByte, atRandom(1), atRandom(2)] : [whole]
    for (const cut of cuts) {
      const model = openai('gpt-5.5', { apiKey: 'k', maxRetries: 0, fetch: fetchOf(each, cut) })
      const answer = await answerOf(model, each)

      expectAnswer(each, answer)
      if (answer.turn !== undefined) expectMore(each, answer.turn)
      if (answer.turn !== undefined && each.stream) {
        expect(told(answer.deltas, 'reasoning_delta')).toBe(thoughtsOf(answer.turn).join(''))
      }
    }
  })
})

/** The part of `expect` for this API only. */
function expectMore({ expect: wanted }: ProviderCase, turn: ModelTurn): void {
  const { refusal, finishRaw, otherBlocks, toolCalls } = wanted
  const reasoning = wanted.reasoning as readonly { summaries: string[]; content: string[] }[]
  expect(turn.nativeFinishReason).toBe(finishRaw)
  expect(thoughtsOf(turn)).toEqual(reasoning.map(({ summaries, content }) => [...summaries, ...content].join('\n\n')))
  expect(toolCallsOf(turn.entry.parts).map(({ callId }) => callId)).toEqual(toolCalls.map(({ id }) => id))
  const opaque = turn.entry.parts.flatMap((part) => {
    const native = part.type === 'opaque' || part.type === 'hosted' ? nativeDataOf(part) : undefined
    return native?.kind === 'item' ? [native.item['type']] : []
  })
  expect(opaque).toEqual((otherBlocks as readonly Fields[]).map(({ type }) => type))
  if (refusal !== null) expect(JSON.stringify(turn.entry.parts)).toContain(JSON.stringify(refusal))
}

function thoughtsOf({ entry }: ModelTurn): string[] {
  return entry.parts.flatMap((part) => (part.type === 'reasoning' ? [part.text] : []))
}

interface Exchange {
  readonly request: { readonly body: { readonly model: string; readonly input: readonly Fields[] } }
  readonly response: ProviderCase['response']
}

const FOLDER = `${PROVIDER_CASES}conversations/`
const conversations = readdirSync(FOLDER)
  .filter((name) => name.includes('responses'))
  .map((name) => [name, conversation(name)] as const)

function conversation(name: string): readonly Exchange[] {
  const { exchanges } = JSON.parse(readFileSync(FOLDER + name, 'utf8')) as { exchanges: readonly Exchange[] }
  return exchanges
}

describe('RF-04 recorded conversations are encoded as their clients sent them', () => {
  test.each(conversations)('%s', (_name, exchanges) => {
    let transcript: TranscriptEntry[] = []
    let said = 0
    for (const { request, response } of exchanges) {
      const { model, input } = request.body
      const news = input.filter(isOfClient)
      transcript = [...transcript, ...news.slice(said).map(entryOf)]
      said = news.length
      const format = responsesFormat(model)
      const sent = format.encode(transcript, NO_CONSTANTS)

      expect(sent.map(meaning)).toEqual(input.map(meaning))
      expectValidRequest('openai-responses', { model, input: sent })
      transcript = [...transcript, replyOf(model, response)]
    }
  })
})

function isOfClient(item: Fields): boolean {
  return item['role'] === 'user' || item['type'] === 'function_call_output'
}

const STAMP = { id: 'e1', at: '2026-01-01T00:00:00.000Z' }

function entryOf(item: Fields): TranscriptEntry {
  if (item['type'] === 'function_call_output') {
    const { call_id: callId, output } = item as { call_id: string; output: string }
    return { role: 'tool', ...STAMP, callId, name: 'tool', content: output, isError: false }
  }
  return { role: 'user', ...STAMP, content: [{ type: 'text', text: textIn(item['content']) }] }
}

function replyOf(model: string, response: ProviderCase['response']): TranscriptEntry {
  const options = { callIdFor: String, onDelta: undefined }
  const format = responsesFormat(model)
  const own = { role: 'assistant', ...STAMP, provider: 'openai', model, usage: UNREPORTED_USAGE } as const
  if (response.sse === undefined) {
    const { parts, finishReason } = format.decode(response.body, options)
    return { ...own, parts, finishReason }
  }
  const fold = format.fold(options)
  for (const line of response.sse.split(/\r?\n/)) {
    if (line.startsWith('data: {')) fold.add({ event: null, data: JSON.parse(line.slice(6)) as unknown })
  }
  const { parts, finishReason } = fold.end()
  return { ...own, parts, finishReason }
}

/**
 * An item without what says the same in another way: ids and states of items, which a server that stores nothing makes
 * no use of; `type: message`; a message of plain text for its only text block; empty lists; and quotation marks, which
 * one recorder has straightened.
 */
function meaning(item: Fields): unknown {
  const told = Object.entries(item)
    .filter(([name, value]) => !['id', 'status'].includes(name) && !(Array.isArray(value) && value.length === 0))
    .filter(([name, value]) => !(name === 'type' && value === 'message'))
    .map(([name, value]) => [name, name === 'content' && item['type'] !== 'reasoning' ? textIn(value) : value])
  return Object.fromEntries(told)
}

function textIn(content: unknown): string {
  const text = typeof content === 'string' ? content : onlyText(content as readonly Fields[])
  return text.replaceAll(/[‘’]/g, "'").replaceAll(/[“”]/g, '"')
}

function onlyText(blocks: readonly Fields[]): string {
  expect(blocks).toHaveLength(1)
  expect(['input_text', 'output_text', undefined]).toContain(blocks[0]?.['type'])
  return blocks[0]?.['text'] as string
}

test('recordings of each kind exist', () => {
  expect(cases.length).toBeGreaterThan(40)
  expect(cases.filter((each) => bytesOf(each).length === 0)).toHaveLength(1)
  expect(conversations.length).toBeGreaterThan(4)
})
