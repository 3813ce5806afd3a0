import { expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { ContentPart, ResumeState } from 'thinharness'
import { anthropic, gemini, openai, openaiCompatible } from 'thinharness/providers'
import { ScriptedModel } from 'thinharness/testing'
import { tool } from '../harness/support.js'
import { ToolResult } from 'thinharness'
import { expectValidRequest } from '../support/request-schemas.js'
import type { JsonObject } from '#util/json.js'

const MODELS = { anthropic, openai, gemini, chat: openaiCompatible }
type Kind = keyof typeof MODELS
const stored = (provider: string, more: object = {}): ContentPart => ({ type: 'file', id: 'file_1', provider, ...more })
const LEFT_OUT = '[Left out of this message. The file `a.pdf`, stored by `anthropic`. Other models cannot read it.]'

/** The body of the request to a model with these parts as a prompt. */
async function bodyOf(kind: Kind, content: readonly ContentPart[]): Promise<JsonObject> {
  let body = ''
  const fetch = (async (_url: unknown, init?: RequestInit) => {
    body = await new Response(init?.body).text()
    return Response.json({ error: { message: 'Enough.' } }, { status: 400 })
  }) as typeof globalThis.fetch
  const options = { apiKey: 'k', fetch, baseUrl: 'https://models.example.com/v1' }
  const ids = { anthropic: 'claude-sonnet-5', openai: 'gpt-5.5', gemini: 'gemini-3-pro', chat: 'some-model' }
  const model = MODELS[kind](ids[kind], options)
  await new Harness({ model, builtinTools: [] }).run(content).catch(() => undefined)
  const sent = JSON.parse(body) as JsonObject
  if (kind === 'anthropic') expectValidRequest('anthropic-messages', sent, { version: '2023-06-01' })
  if (kind === 'openai') expectValidRequest('openai-responses', sent)
  if (kind === 'chat') expectValidRequest('openai-chat', sent)
  return sent
}

test.each<[Kind, ContentPart, object]>([
  ['anthropic', stored('anthropic'), { type: 'document', source: { type: 'file', file_id: 'file_1' } }],
  [
    'anthropic',
    stored('anthropic', { mediaType: 'image/png' }),
    { type: 'image', source: { type: 'file', file_id: 'file_1' } },
  ],
  ['openai', stored('openai', { name: 'a.pdf' }), { type: 'input_file', file_id: 'file_1' }],
  ['openai', stored('openai', { mediaType: 'image/png' }), { type: 'input_image', file_id: 'file_1', detail: 'auto' }],
])('%s gets a file that it has stored by its id: %j', async (kind, part, block) => {
  const body = await bodyOf(kind, [{ type: 'text', text: 'Read.' }, part])
  const [message] = (body['messages'] ?? body['input']) as readonly { readonly content: readonly object[] }[]
  expect(message?.content[1]).toEqual(block)
})

test.each<[Kind]>([['openai'], ['chat'], ['gemini']])(
  '%s reads that a file of another provider was left out',
  async (kind) => {
    const text = JSON.stringify(
      await bodyOf(kind, [{ type: 'text', text: 'Read.' }, stored('anthropic', { name: 'a.pdf' })]),
    )
    expect(text).toContain(LEFT_OUT)
    expect(text).not.toContain('file_1')
  },
)

test('a tool can return one, and a stored run with one is continued', async () => {
  const scan = tool(
    'scan',
    () => new ToolResult({ content: 'Scanned.', parts: [{ type: 'file', id: 'file_1', provider: 'openai' }] }),
    { requiresApproval: true },
  )
  const script = (): ScriptedModel =>
    new ScriptedModel().always(({ turn }) => (turn === 0 ? { calls: [{ name: 'scan' }] } : 'Done.'))
  const paused = await new Harness({ model: script(), builtinTools: [], tools: [scan] }).run([
    { type: 'text', text: 'Go.' },
    stored('openai'),
  ])
  const state = JSON.parse(JSON.stringify(paused.resumeState)) as ResumeState
  const { callId = '' } = paused.pending[0] ?? {}
  const result = await new Harness({ model: script(), builtinTools: [], tools: [scan] }).resume(state, [
    { callId, approved: true },
  ])
  expect(result.text).toBe('Done.')
  expect(result.transcript[0]).toMatchObject({
    content: [{ type: 'text' }, { type: 'file', id: 'file_1', provider: 'openai' }],
  })
  expect(JSON.stringify(result.transcript[2])).toContain('"id":"file_1"')
})
