import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test, vi } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { inTemporaryFolder } from '../support/folder.js'

const BEGAN_IN = process.cwd()
let printed: string

inTemporaryFolder()
beforeEach(async () => {
  await mkdir('notes')
  printed = ''
  vi.spyOn(console, 'log').mockImplementation((...values: unknown[]) => void (printed += `${values.join(' ')}\n`))
})

async function asked(snippet: string, script: (provider: ScriptedProvider) => void): Promise<string> {
  await using provider = await scriptedProvider()
  script(provider)
  vi.stubEnv('ANTHROPIC_API_KEY', 'test-key')
  vi.stubEnv('ANTHROPIC_BASE_URL', provider.url.messages)
  await import(join(BEGAN_IN, 'docs/snippets', snippet))
  return printed
}

test('docs/subagents.md: tasks are delegated, one to a fork', async () => {
  const text = await asked('subagents/delegate.ts', (provider) =>
    provider
      .calls('subagent', { task: 'Count the notes with a deadline.', agent: 'counter' })
      .calls('final_result', { count: 3 })
      .calls('subagent', { task: 'Is three right?', agent: 'second-opinion' })
      .replies(({ messages }) => {
        expect(JSON.stringify(messages)).toContain('How many notes')
        return 'It is.'
      })
      .says('Three.'),
  )
  expect(text).toBe('counter: {"count":3}\nsecond-opinion: "It is."\nThree. (3 requests, 2 by subagents)\n')
})

test('docs/subagents.md: answers of a subagent are validated against the stock', async () => {
  const text = await asked('subagents/checked.ts', (provider) =>
    provider
      .calls('subagent', { task: 'What gives light?', agent: 'clerk' })
      .calls('final_result', { value: { article: 'candle' } })
      .replies(({ messages }) => {
        expect(JSON.stringify(messages)).toContain('There is no candle.')
        return { calls: [{ name: 'final_result', arguments: { value: { article: 'lamp' } } }] }
      })
      .says('We have four lamps.'),
  )
  expect(text).toBe('We have four lamps. (1 task delegated)\n')
})

test('docs/subagents.md: answers to prompts are written to a file', async () => {
  await writeFile('notes/prompts.json', '["Rain.","Bread."]')
  const text = await asked('subagents/parallel.ts', (provider) =>
    provider.always(({ turn, messages, tools }) => {
      const said = JSON.stringify(messages)
      if (tools.includes('parallel_llm')) {
        const source = { kind: 'file', path: 'prompts.json' }
        return turn === 0
          ? { calls: [{ name: 'parallel_llm', arguments: { source, output_file: 'topics.json' } }] }
          : 'They are in topics.json.'
      }
      const answer = { topic: said.includes('Rain') ? 'weather' : 'food' }
      return tools.includes('final_result')
        ? { calls: [{ name: 'final_result', arguments: answer }] }
        : JSON.stringify(answer)
    }),
  )
  expect(text).toBe('They are in topics.json.\n')
  expect(JSON.parse(await readFile('notes/topics.json', 'utf8'))).toMatchObject({
    succeeded: 2,
    results: [{ result: { topic: 'weather' } }, { result: { topic: 'food' } }],
  })
})

test('docs/hooks.md: a hook protects a file and redacts keys', async () => {
  await writeFile('notes/keys.md', 'sk-secret\n')
  const text = await asked('hooks/policy.ts', (provider) =>
    provider
      .calls('write', { path: '.env', content: '' })
      .calls('read', { path: 'keys.md' })
      .replies(({ heard }) => {
        expect(JSON.stringify(heard)).toContain('[key]')
        return 'Tidy.'
      }),
  )
  expect(text).toBe('Tidy. 1 call cancelled, 0 hooks failed\n')
})

test('docs/hooks.md: middleware logs requests and caches results', async () => {
  await writeFile('notes/a.md', 'A.\n')
  const usage = { outputTokens: 7 }
  const text = await asked('hooks/middleware.ts', (provider) =>
    provider
      .calls('read', { path: 'a.md' }, { usage })
      .calls('read', { path: 'a.md' }, { usage })
      .says('A.', { usage }),
  )
  expect(text).toBe('start: 7 tokens of any\ntool_outputs: 7 tokens of any\ntool_outputs: 7 tokens of any\nA.\n')
})
