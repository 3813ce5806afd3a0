import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { defineTool, Harness } from 'thinharness'
import type { ContentPart, Model } from 'thinharness'
import { anthropic, fromAiSdk, openai, openaiChat, openaiCompatible } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'

let provider: ScriptedProvider
beforeEach(async () => {
  provider = await scriptedProvider()
})
afterEach(() => provider.close())

const key = { apiKey: 'any' }
const MODELS: Readonly<Record<string, (url: ScriptedProvider['url']) => Model>> = {
  Messages: ({ messages }) => anthropic('claude-sonnet-5', { ...key, baseUrl: messages }),
  Responses: ({ responses }) => openai('gpt-5.5', { ...key, baseUrl: responses }),
  'chat completions of OpenAI': ({ chat }) => openaiChat('gpt-4.1', { ...key, baseUrl: chat }),
  'chat completions of others': ({ chat }) => openaiCompatible('m', { ...key, baseUrl: chat }),
  'the AI SDK, with Messages': ({ messages }) =>
    fromAiSdk(createAnthropic({ ...key, baseURL: `${messages}/v1` })('claude-sonnet-5')),
  'the AI SDK, with Responses': ({ responses }) => fromAiSdk(createOpenAI({ ...key, baseURL: responses })('gpt-5.5')),
}

const base64 = (bytes: string): string => Buffer.from(bytes, 'latin1').toString('base64')
const PNG = base64('\x89PNG\r\n\x1a\n and more')
const JPEG = base64('\xff\xd8\xff\xe0 and more')
const WEBP = base64('RIFF\x10\0\0\0WEBPVP8 and more')
const BMP = base64('BM and more')
const image = (data: string, mediaType: string): ContentPart => ({ type: 'image', data, mediaType })

/** The last request of a run whose tool has returned `parts`, or whose prompt has them, as text. */
async function sent(model: Model, parts: readonly ContentPart[], place: 'result' | 'prompt'): Promise<string> {
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object', properties: {} },
    handler: () => ({ kind: 'succeeded', content: 'Seen.', parts }),
  })
  if (place === 'result') provider.calls('look')
  provider.says('Done.')
  const prompt = place === 'prompt' ? [{ type: 'text', text: 'Go.' } as const, ...parts] : 'Go.'
  await new Harness({ model, tools: [look], builtinTools: [] }).run(prompt)
  return JSON.stringify(provider.requests.at(-1)?.body)
}

describe.each(Object.entries(MODELS))('to %s', (_api, make) => {
  test('a picture goes under the type of its bytes, whatever its label says', async () => {
    for (const place of ['result', 'prompt'] as const) {
      for (const [data, label, type] of [
        [JPEG, 'image/png', 'image/jpeg'],
        [WEBP, 'image/png', 'image/webp'],
        [PNG, 'image/svg+xml', 'image/png'],
        [JPEG, 'image/jpg', 'image/jpeg'],
        [PNG, 'application/octet-stream', 'image/png'],
      ] as const) {
        const body = await sent(make(provider.url), [image(data, label)], place)
        expect(body).toContain(data)
        expect(body).toContain(type)
        if (label !== 'image/jpg') expect(body).not.toContain(label)
      }
    }
  })

  test('what is no picture is told in words, and the conversation goes on', async () => {
    for (const place of ['result', 'prompt'] as const) {
      for (const bad of [
        image('', 'image/png'),
        image('no base64!', 'image/png'),
        image(base64('<html>Not found</html>'), 'image/png'),
        image(`data:image/png;base64,${base64('nothing')}`, 'image/png'),
        { type: 'image', url: `data:image/png;base64,${base64('nothing')}` },
        { type: 'image', url: 'data:image/png,nothing' },
        { type: 'file', data: '', mediaType: 'application/pdf' },
        { type: 'file', data: base64('<html>Not found</html>'), mediaType: 'application/pdf' },
      ] satisfies ContentPart[]) {
        // A prompt is refused where it is given.
        if (place === 'prompt' && 'data' in bad && bad.data === 'no base64!') continue
        const body = await sent(make(provider.url), [bad], place)
        expect(body).toContain(`[Left out of this ${place === 'result' ? 'result' : 'message'}. The `)
        if ('data' in bad && bad.data !== '') expect(body).not.toContain(bad.data)
      }
    }
  })
})

describe.each(Object.entries(MODELS).filter(([api]) => !/others|AI SDK/.test(api)))('to %s', (_api, make) => {
  test('a type that the API does not take is told in words', async () => {
    for (const part of [image(BMP, 'image/bmp'), image(BMP, 'image/png'), image(base64('<svg/>'), 'image/svg+xml')]) {
      const body = await sent(make(provider.url), [part], 'result')
      expect(body).toMatch(/image\/bmp|image\/svg\+xml/)
      expect(body).not.toContain('data' in part ? part.data : '')
    }
  })
})

describe.each(Object.entries(MODELS).filter(([api]) => api.includes('Messages')))('to %s', (_api, make) => {
  test('blank texts are left out, wherever they stand', async () => {
    const picture = image(PNG, 'image/png')
    const blank = { type: 'text', text: ' \n' } as const
    const isBlank = /"(?:text|content)":"(?:\s|\\n)+"/
    expect(await sent(make(provider.url), [blank, picture], 'prompt')).not.toMatch(isBlank)
    expect(await sent(make(provider.url), [{ ...blank, text: '\n' }], 'prompt')).not.toMatch(isBlank)
    expect(await sent(make(provider.url), [blank, picture], 'result')).not.toMatch(isBlank)
    const quiet = defineTool({
      name: 'quiet',
      description: 'Says nothing.',
      parameters: { type: 'object' },
      handler: () => ' \n',
    })
    for (const harness of [
      new Harness({ model: make(provider.url), tools: [quiet], builtinTools: [] }),
      new Harness({ model: make(provider.url), tools: [quiet], builtinTools: [], instructions: ' ' }),
    ]) {
      provider.calls('quiet').says('Done.')
      await harness.run('Go.')
      expect(JSON.stringify(provider.requests.at(-1)?.body)).not.toMatch(isBlank)
    }
  })
})

test('a prompt of white space is rejected', async () => {
  const harness = new Harness({ model: MODELS['Messages']!(provider.url), builtinTools: [] })
  for (const prompt of [' \n ', '', [{ type: 'text', text: '\t' } as const]])
    await expect(harness.run(prompt)).rejects.toMatchObject({ code: 'invalid_options' })
})

test.each(Object.entries(MODELS))('a reply of white space is asked for again, by %s', async (_api, make) => {
  provider.says('\n\n').says('Here I am.')
  const harness = new Harness({ model: make(provider.url), builtinTools: [] })
  expect((await harness.run('Go.')).text).toBe('Here I am.')
})
