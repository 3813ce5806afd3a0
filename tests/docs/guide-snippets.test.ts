import { readdirSync } from 'node:fs'
import { Harness } from 'thinharness'
import { ScriptedModel, scriptedProvider } from 'thinharness/testing'
import { describe, expect, test, vi } from 'vitest'
import { continued } from '../../docs/snippets/coming-from-the-ai-sdk/history.js'
import { answer } from '../../docs/snippets/errors/handle.js'
import { laws } from '../../docs/snippets/writing-a-store/contract.js'
import { KeyValueLog } from '../../docs/snippets/writing-a-store/store.js'
import type { Database } from '../../docs/snippets/writing-a-store/store.js'

const SNIPPETS = new URL('../../docs/snippets/', import.meta.url)

function memoryDatabase(): Database {
  const rows = new Map<string, { readonly value: string; readonly version: number }>()
  return {
    get: (key) => Promise.resolve(rows.get(key) ?? null),
    set: (key, value, version) => {
      if ((rows.get(key)?.version ?? 0) !== version) return Promise.resolve(false)
      rows.set(key, { value, version: version + 1 })
      return Promise.resolve(true)
    },
  }
}

describe('docs/writing-a-store.md: the log keeps the contract', () => {
  for (const { name, says, check } of laws(memoryDatabase)) test(`${name}: ${says}`, check, 60_000)
})

test('docs/writing-a-store.md: another process has the result of a run', async () => {
  const database = memoryDatabase()
  const first = new Harness({ model: new ScriptedModel().says('Hi.'), log: new KeyValueLog(database) })
  await first.run('Hello?', { runId: 'r1' })
  const second = new Harness({ model: new ScriptedModel(), log: new KeyValueLog(database) })
  expect((await second.run('Hello?', { runId: 'r1', ifExists: 'continue' })).text).toBe('Hi.')
})

test.each(['lookup', 'structured', 'by-prompt', 'question'])('docs/testing.md: %s.ts passes', async (name) => {
  await import(new URL(`testing/${name}.ts`, SNIPPETS).pathname)
})

test('docs/testing.md: provider.ts passes', { timeout: 60_000 }, async () => {
  await import('../../docs/snippets/testing/provider.js')
})

test('docs/coming-from-the-ai-sdk.md: ported.ts prints the answer', async () => {
  await using provider = await scriptedProvider()
  provider.calls('weather', { city: 'Nairobi' }).says('Yes, 21 degrees.')
  vi.stubEnv('OPENAI_API_KEY', 'test-key')
  vi.stubEnv('OPENAI_BASE_URL', provider.url.responses)
  const log = vi.spyOn(console, 'log').mockImplementation(() => undefined)
  await import('../../docs/snippets/coming-from-the-ai-sdk/ported.js')
  expect(log.mock.calls).toEqual([['Yes, 21 degrees.', 2]])
  log.mockRestore()
  vi.unstubAllEnvs()
})

test('docs/coming-from-the-ai-sdk.md: history.ts continues stored messages', async () => {
  const model = new ScriptedModel().says('Again.')
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Hi.' },
    { role: 'assistant', content: 'Hello.' },
  ]
  const result = await continued(new Harness({ model }), messages, 'And?')
  expect(result.transcript).toHaveLength(4)
})

test('docs/errors.md: handle.ts answers with a sentence', async () => {
  const ask = (model: ScriptedModel, limits = {}): Promise<string> =>
    answer(new Harness({ model, limits }), 'Hi.', 'r1')
  expect(await ask(new ScriptedModel().says('Hi.'))).toBe('Hi.')
  expect(await ask(new ScriptedModel().fails('No such model.'))).toBe('The model failed: No such model.')
  expect(await ask(new ScriptedModel(), { modelRequests: 0 })).toBe('I had to stop after 0 requests.')
})

test('every snippet of these pages is run', () => {
  const files = ['coming-from-the-ai-sdk', 'errors', 'testing', 'writing-a-store'].flatMap((page) =>
    readdirSync(new URL(page, SNIPPETS)),
  )
  expect(files.sort()).toEqual(
    [
      'by-prompt',
      'contract',
      'handle',
      'history',
      'lookup',
      'ported',
      'provider',
      'question',
      'store',
      'structured',
    ].map((name) => `${name}.ts`),
  )
})
