import { describe, expect, test } from 'vitest'
import type { Model, TranscriptEntry } from 'thinharness'
import { anthropic, openai, openrouter } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'

const MODELS: readonly (readonly [string, (provider: ScriptedProvider) => Model])[] = [
  ['openai', ({ url }) => openai('gpt-5.5', { apiKey: 'any', baseUrl: url.responses })],
  ['openai, chained', ({ url }) => openai('gpt-5.5', { apiKey: 'any', baseUrl: url.responses, chain: true })],
  ['anthropic', ({ url }) => anthropic('claude-sonnet-5', { apiKey: 'any', baseUrl: url.messages })],
  ['openrouter', ({ url }) => openrouter('x/y', { apiKey: 'any', baseUrl: url.openrouter })],
]

const STAMP = { id: 'e', at: '2026-01-01T00:00:00.000Z' }
const user = (text: string): TranscriptEntry => ({ role: 'user', ...STAMP, content: [{ type: 'text', text }] })
const notice = (text: string): TranscriptEntry => ({ ...user(text), notice: true }) as TranscriptEntry
const LOOK = { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }
const CONSTANTS = { instructions: 'Be brief.', tools: [LOOK], structuredOutput: null, settings: {} }

describe.each(MODELS)('notices with %s', (_name, make) => {
  test('PR-05 PR-07 PR-08 PR-09 PR-10 notices follow the entry they belong to, and are sent again when a run is resumed', async () => {
    await using provider = await scriptedProvider()
    const heard: string[][] = []
    provider.always(({ turn, messages }) => {
      heard.push(messages.map((message) => String('content' in message ? message.content : message.text)))
      return turn === 0 ? { text: 'I look.', calls: [{ name: 'look', callId: 'toolu_1' }] } : 'Done.'
    })
    const session = make(provider).openSession()
    const options = { generation: 0, signal: new AbortController().signal }
    const transcript = [user('Go.'), notice('One request is left.')]
    const { entry } = await session.turn(transcript, CONSTANTS, options)
    const result = {
      role: 'tool',
      ...STAMP,
      callId: 'toolu_1',
      name: 'look',
      content: '{"ok":true}',
      isError: false,
    } as const
    transcript.push({ ...entry, ...STAMP }, result, notice('No request is left.'))
    const last = await session.turn(transcript, CONSTANTS, options)
    transcript.push({ ...last.entry, ...STAMP }, notice('The answer does not fit.'))
    await session.turn(transcript, CONSTANTS, options)
    await make(provider).openSession().turn(transcript, CONSTANTS, options)

    const said = heard.map((texts) => texts.join('|').replaceAll(/\n+/g, '|'))
    const [first = '', second = '', third = '', resumed = ''] = said
    expect(first).toBe('Go.|One request is left.')
    expect(second).toBe(`${first}|I look.|{"ok":true}|No request is left.`)
    expect(third).toBe(`${second}|Done.|The answer does not fit.`)
    expect(resumed).toBe(third)
  })
})
