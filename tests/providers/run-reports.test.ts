import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, test } from 'vitest'
import { defineTool, Harness } from 'thinharness'
import type { Model, ModelSession, RequestConstants, RunEvent, TranscriptEntry } from 'thinharness'
import { anthropic, fromAiSdk, openai, openaiChat, openaiCompatible, openrouter } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { collect } from '../support/collect.js'

type Url = ScriptedProvider['url']

/**
 * Each adapter, and the path in its requests of the text of the first prompt and of the instructions: the first that
 * differs with them, which may be the key under which the provider caches them.
 */
const MODELS: readonly (readonly [string, (url: Url) => Model, prompt: string, instructions: string])[] = [
  ['openai', ({ responses }) => openai('gpt-5.5', at(responses)), '$.input[0].content', '$.instructions'],
  ['openaiChat', ({ chat }) => openaiChat('m', at(chat)), '$.messages[1].content', '$.prompt_cache_key'],
  ['openaiCompatible', ({ chat }) => openaiCompatible('m', at(chat)), '$.messages[1].content', '$.messages[0].content'],
  ['openrouter', ({ openrouter: url }) => openrouter('x/y', at(url)), '$.messages[1].content', '$.messages[0].content'],
  [
    'anthropic',
    ({ messages }) => anthropic('claude-sonnet-5', at(messages)),
    '$.messages[0].content',
    '$.system[0].text',
  ],
  [
    'AI SDK, OpenAI',
    ({ responses }) => fromAiSdk(createOpenAI({ apiKey: 'any', baseURL: responses })('gpt-5.5')),
    '$.prompt[1].content[0].text',
    '$.prompt[0].content',
  ],
  [
    'AI SDK, Anthropic',
    ({ messages }) => fromAiSdk(createAnthropic({ apiKey: 'any', baseURL: `${messages}/v1` })('claude-sonnet-5')),
    '$.prompt[1].content[0].text',
    '$.prompt[0].content',
  ],
]

function at(baseUrl: string): { apiKey: string; baseUrl: string; maxRetries: number } {
  return { apiKey: 'any', baseUrl, maxRetries: 0 }
}

type Asked = readonly [readonly TranscriptEntry[], RequestConstants]

/** A model for which somebody changes what it is asked, from the second turn on. */
function meddledWith(model: Model, change: (...asked: Asked) => Asked): Model {
  return {
    ...{ provider: model.provider, id: model.id, capabilities: model.capabilities },
    openSession: (): ModelSession => {
      const session = model.openSession()
      let turns = 0
      return {
        turn: (transcript, constants, options) =>
          session.turn(
            ...(turns++ === 0 ? ([transcript, constants] as const) : change(transcript, constants)),
            options,
          ),
      }
    },
  }
}

async function eventsOf(provider: ScriptedProvider, model: Model): Promise<readonly RunEvent[]> {
  provider.calls('look').calls('look').says('Done.')
  const look = defineTool({ name: 'look', description: 'Looks.', parameters: { type: 'object' }, handler: () => 'ok' })
  await using harness = new Harness({ model, tools: [look], builtinTools: [], instructions: 'Be brief.' })
  const events = await collect(harness.stream('Go.'))
  return events
}

function told(events: readonly RunEvent[], kind: RunEvent['kind']): readonly RunEvent[] {
  return events.filter((event) => event.kind === kind)
}

describe.each(MODELS)('a run with %s', (_name, make, prompt, instructions) => {
  test('nothing is reported about the cache while the beginning of its requests stays the same', async () => {
    await using provider = await scriptedProvider()
    const events = await eventsOf(provider, make(provider.url))
    expect(told(events, 'cache_bust')).toEqual([])
    expect(told(events, 'transcript_repaired')).toEqual([])
  })

  test('a prompt that changed later is reported once, with its path and the cause', async () => {
    await using provider = await scriptedProvider()
    const changed: TranscriptEntry = { role: 'user', id: 'e1', at: '', content: [{ type: 'text', text: 'Went.' }] }
    const model = meddledWith(make(provider.url), ([, ...rest], constants) => [[changed, ...rest], constants])
    const busts = told(await eventsOf(provider, model), 'cache_bust')
    expect(busts).toMatchObject([{ path: prompt, cause: 'entry_changed', durable: true }])
  })

  test('instructions that changed later are reported', async () => {
    await using provider = await scriptedProvider()
    const later = new WeakMap<RequestConstants, RequestConstants>()
    const model = meddledWith(make(provider.url), (transcript, constants) => {
      const changed = later.get(constants) ?? { ...constants, instructions: 'Be long.' }
      later.set(constants, changed)
      return [transcript, changed]
    })
    const busts = told(await eventsOf(provider, model), 'cache_bust')
    expect(busts).toMatchObject([{ path: instructions, cause: 'constants_changed' }])
  })

  test('repairs of a broken history are reported', async () => {
    await using provider = await scriptedProvider()
    const stray: TranscriptEntry = {
      role: 'tool',
      id: 'e0',
      at: '',
      callId: 'c0',
      name: 'look',
      content: '',
      isError: true,
    }
    const inner = make(provider.url)
    const model: Model = {
      ...{ provider: inner.provider, id: inner.id, capabilities: inner.capabilities },
      openSession: () => {
        const session = inner.openSession()
        return { turn: (transcript, ...asked) => session.turn([stray, ...transcript], ...asked) }
      },
    }
    const repairs = told(await eventsOf(provider, model), 'transcript_repaired')
    expect(repairs[0]).toMatchObject({ problem: 'orphan_result', callId: 'c0', durable: true })
  })
})
