import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { Harness, defineTool, fileLog, memoryLog } from 'thinharness'
import { anthropic, openai, openaiCompatible } from 'thinharness/providers'
import { temporaryFolder } from '../support/folder.js'
import type { Model, RunLog } from 'thinharness'

const TURNS = 24
const place = temporaryFolder()

/** The result of a turn's call: two digits, so that all turns have the same length. */
const resultOf = (turn: number): string => `result-of-turn-${String(turn).padStart(2, '0')} ${'x'.repeat(500)}`

/** What was encoded in a turn: the characters, and how often its new result was. */
interface Encoded {
  readonly characters: number
  readonly ofResult: number
}

type Replies = (turn: number) => object

const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }
const tokens = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
const idOf = (turn: number): string => `call_${String(turn).padStart(2, '0')}`

const responses: Replies = (turn) => {
  const call = { type: 'function_call', id: `fc_${turn}`, call_id: idOf(turn), name: 'look', arguments: '{}' }
  const said = { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] }
  const output = [turn < TURNS ? call : said]
  return { id: `resp_${turn}`, object: 'response', status: 'completed', model: 'm', output, usage }
}

const chat: Replies = (turn) => {
  const called = { id: idOf(turn), type: 'function', function: { name: 'look', arguments: '{}' } }
  const message =
    turn < TURNS ? { role: 'assistant', content: null, tool_calls: [called] } : { role: 'assistant', content: 'Done.' }
  const choice = { index: 0, message, finish_reason: turn < TURNS ? 'tool_calls' : 'stop' }
  return { id: `chat_${turn}`, object: 'chat.completion', model: 'm', choices: [choice], usage: tokens }
}

const messages: Replies = (turn) => {
  const call = { type: 'tool_use', id: idOf(turn), name: 'look', input: {} }
  const content = [turn < TURNS ? call : { type: 'text', text: 'Done.' }]
  const stop_reason = turn < TURNS ? 'tool_use' : 'end_turn'
  return { id: `msg_${turn}`, type: 'message', role: 'assistant', model: 'm', content, stop_reason, usage }
}

type Make = (fetch: typeof globalThis.fetch) => Model

/** Runs all turns. The port of the provider, its `fetch`, ends one turn and begins the next. */
async function encodedBy(replies: Replies, make: Make, log: RunLog): Promise<readonly Encoded[]> {
  const turns: Encoded[] = []
  let [turn, characters, ofResult] = [0, 0, 0]
  const { stringify } = JSON
  const spy = vi.spyOn(JSON, 'stringify').mockImplementation((...given: Parameters<typeof stringify>) => {
    const text = stringify(...given) as string | undefined
    characters += text?.length ?? 0
    if (text?.includes(resultOf(turn)) === true) ofResult += 1
    return text as string
  })
  const fetch = (): Promise<Response> => {
    turns.push({ characters, ofResult })
    turn += 1
    ;[characters, ofResult] = [0, 0]
    return Promise.resolve(new Response(stringify(replies(turn)), { headers: { 'content-type': 'application/json' } }))
  }
  const look = defineTool({
    ...{ name: 'look', description: 'Looks something up.' },
    parameters: { type: 'object', properties: {}, additionalProperties: false },
    handler: () => resultOf(turn),
  })
  try {
    const { text } = await new Harness({ model: make(fetch), builtinTools: [], tools: [look], log }).run('Look.')
    expect(text).toBe('Done.')
  } finally {
    spy.mockRestore()
  }
  expect(turns).toHaveLength(TURNS)
  return turns
}

test.each<[string, Replies, Make]>([
  ['Responses', responses, (fetch) => openai('m', { apiKey: 'k', fetch })],
  ['chat completions', chat, (fetch) => openaiCompatible('m', { baseUrl: 'http://127.0.0.1:9', fetch })],
  ['Messages', messages, (fetch) => anthropic('m', { apiKey: 'k', fetch })],
])('a turn encodes its new entries, and nothing of the conversation before them (%s)', async (_api, replies, make) => {
  const turns = await encodedBy(replies, make, memoryLog())
  // The first request has the constants; the second has one turn behind it.
  const [, , third, ...later] = turns
  // Once as the text that the model reads, and that once as an item of the request.
  expect(turns.slice(1).map(({ ofResult }) => ofResult)).toEqual(Array.from({ length: TURNS - 1 }, () => 2))
  for (const { characters } of later) expect(Math.abs(characters - (third?.characters ?? 0))).toBeLessThanOrEqual(40)
})

test('with a log in files a new result is encoded once more, for its event', async () => {
  const make: Make = (fetch) => openai('m', { apiKey: 'k', fetch })
  const turns = await encodedBy(responses, make, fileLog(join(place, 'log')))
  expect(turns.slice(1).map(({ ofResult }) => ofResult)).toEqual(Array.from({ length: TURNS - 1 }, () => 3))
})
