import { Harness } from 'thinharness'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { afterEach, expect, test, vi } from 'vitest'
import { continued } from '../../docs/snippets/coming-from-openai-agents/session.js'
import { inTemporaryFolder } from '../support/folder.js'

inTemporaryFolder()
afterEach(() => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

/** Captures what a program prints with the scripted provider. */
function listen({ url }: ScriptedProvider): () => string {
  vi.stubEnv('OPENAI_API_KEY', 'test-key')
  vi.stubEnv('OPENAI_BASE_URL', url.responses)
  const log = vi.spyOn(console, 'log').mockImplementation(() => undefined)
  return () => log.mock.calls.map((values) => values.join(' ')).join('\n')
}

test('docs/coming-from-openai-agents.md: refund.ts waits for the approval and answers', async () => {
  await using provider = await scriptedProvider()
  provider.calls('refund', { orderId: '7' }).says('Order 7 is refunded.')
  const printed = listen(provider)
  await import('../../docs/snippets/coming-from-openai-agents/refund.js')
  expect(printed()).toBe('Order 7 is refunded.')
})

test('docs/coming-from-openai-agents.md: session.ts continues a conversation with its calls', async () => {
  await using provider = await scriptedProvider()
  provider.says('Tomorrow.')
  listen(provider)
  await using harness = new Harness({ model: 'openai:gpt-5.5' })
  const items = [
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Where is order 7?' }] },
    { type: 'reasoning', content: [{ type: 'input_text', text: 'I look it up.' }] },
    { type: 'function_call', callId: 'c1', name: 'look_up', arguments: '{"id":"7"}', status: 'completed' },
    {
      type: 'function_call_result',
      callId: 'c1',
      name: 'look_up',
      status: 'completed',
      output: { type: 'text', text: 'In transit.' },
    },
    {
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'On its way.' }],
    },
  ]
  expect((await continued(harness, items, 'When does it arrive?')).text).toBe('Tomorrow.')
  const sent = JSON.stringify(provider.requests)
  expect(['Where is order 7?', 'In transit.', 'On its way.'].every((text) => sent.includes(text))).toBe(true)
})

test('docs/coming-from-langgraph.md: thread.ts books the room after the approval', async () => {
  await using provider = await scriptedProvider()
  provider.calls('book_room', { hotel: 'Norfolk', nights: 2 }).says('Your room at the Norfolk is booked.')
  const printed = listen(provider)
  await import('../../docs/snippets/coming-from-langgraph/thread.js')
  expect(printed()).toBe('Your room at the Norfolk is booked.')
})
