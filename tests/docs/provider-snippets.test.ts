import { mkdir, writeFile } from 'node:fs/promises'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { inTemporaryFolder } from '../support/folder.js'

const SNIPPETS = fileURLToPath(new URL('../../docs/snippets/providers/', import.meta.url))

inTemporaryFolder()

/** The expected requests of a snippet, the provider's replies, and the expected output. */
interface Program {
  readonly script: (provider: ScriptedProvider) => unknown
  readonly prints: string | RegExp
  readonly before?: () => Promise<unknown>
}

const RIVERS = 'Tana, Athi, Nzoia.'

const PROGRAMS: Readonly<Record<string, Program>> = {
  'openai.ts': {
    script: (provider) =>
      provider.replies(({ api, model, body }) => {
        expect([api, model, body['reasoning'], body['store']]).toEqual([
          'responses',
          'gpt-5.5',
          { effort: 'high' },
          false,
        ])
        return { reasoning: 'Euclid.', text: 'Take them all.', usage: { outputTokens: 60, reasoningTokens: 42 } }
      }),
    prints: 'Take them all.\n42 reasoning tokens\n',
  },
  'anthropic.ts': {
    before: async () => {
      await mkdir('notes')
      await writeFile('notes/meeting.md', 'We ship in May.\n')
    },
    script: (provider) =>
      provider
        .replies(({ body }) => {
          expect(body).toMatchObject({ max_tokens: 8192, cache_control: { type: 'ephemeral', ttl: '1h' } })
          const usage = { inputTokens: 900, cacheReadTokens: 0, cacheWriteTokens: 800 }
          return { calls: [{ name: 'read', arguments: { path: 'meeting.md' } }], usage }
        })
        .says('To ship in May.', { usage: { inputTokens: 1100, cacheReadTokens: 800, cacheWriteTokens: 0 } }),
    prints: 'To ship in May.\n800 of 2000 input tokens came from the cache\n',
  },
  'gemini.ts': {
    before: async () => {
      await mkdir('notes')
      await writeFile('notes/meeting.md', 'We ship in May.\n')
    },
    script: (provider) =>
      provider
        .replies(({ api, model, body }) => {
          expect([api, model]).toEqual(['gemini', 'gemini-3-pro'])
          expect(body).toMatchObject({
            generationConfig: { thinkingConfig: { thinkingLevel: 'LOW' }, maxOutputTokens: 8192 },
          })
          return {
            calls: [{ name: 'read', arguments: { path: 'meeting.md' } }],
            usage: { reasoningTokens: 30, outputTokens: 40 },
          }
        })
        .says('To ship in May.', { usage: { outputTokens: 20, reasoningTokens: 12 } }),
    prints: 'To ship in May.\n42 reasoning tokens\n',
  },
  'openrouter.ts': {
    script: (provider) =>
      provider.replies(({ api, body }) => {
        expect([api, body['provider']]).toEqual(['openrouter', { sort: 'throughput' }])
        return RIVERS
      }),
    prints: `${RIVERS}\n`,
  },
  'local.ts': {
    script: (provider) =>
      provider.always(({ messages, streamed, body, tools }) => {
        if (JSON.stringify(messages).includes('Kenya')) return RIVERS
        if (tools.length > 0 || 'response_format' in body)
          return { fault: 'status', status: 400, message: 'Not supported.' }
        return streamed ? 'one, two, three' : 'ready'
      }),
    prints: new RegExp(
      `^answers: yes\nusage: yes\nstreaming: yes\nstreamedUsage: yes\ntools: no \\(Not supported.*\\)\n[^]*\n${RIVERS}\n$`,
    ),
  },
  'models.ts': {
    script: (provider) =>
      provider
        .replies(({ api, model, body }) => {
          expect([api, model, body['reasoning']]).toMatchObject(['responses', 'gpt-5.5', { effort: 'high' }])
          return 'Soup on Monday.'
        })
        .replies(({ api, model, heard }) => {
          expect([api, model]).toEqual(['chat', 'qwen3'])
          expect(heard).toMatchObject({ prompt: 'Make a shopping list of it:\nSoup on Monday.' })
          return '- leeks'
        }),
    prints: '- leeks\n',
  },
  'official-clients.ts': {
    script: (provider) => provider.always(({ api }) => `Hello from ${api}.`),
    prints: 'openai: Hello from responses.\nanthropic: Hello from messages.\n',
  },
  'ai-sdk.ts': {
    script: (provider) =>
      provider.replies(({ body }) => {
        expect(body['reasoning']).toMatchObject({ effort: 'low' })
        return RIVERS
      }),
    prints: `${RIVERS}\n`,
  },
  'files.ts': {
    before: async () => {
      await writeFile('drawing.png', 'a drawing')
      await writeFile('contract.pdf', '%PDF-1.7 a contract')
    },
    script: (provider) =>
      provider.replies(({ body }) => {
        expect(JSON.stringify(body)).toContain(Buffer.from('%PDF-1.7 a contract').toString('base64'))
        return 'It does.'
      }),
    prints: 'It does.\n',
  },
  'own-adapter.ts': { script: () => undefined, prints: '' },
  'conformance.ts': { script: () => undefined, prints: /^round_trip holds: .*\n[^]*abort holds: .*\n$/ },
}

test.each(Object.entries(PROGRAMS))(
  'docs/providers.md: %s prints the documented output',
  async (name, { before, script, prints }) => {
    await before?.()
    await using provider = await scriptedProvider()
    script(provider)
    const printed = vi.spyOn(console, 'log').mockImplementation(() => undefined)
    useProvider(provider)

    await import(join(SNIPPETS, name))

    const text = printed.mock.calls.map((values) => `${values.join(' ')}\n`).join('')
    if (typeof prints === 'string') expect(text).toBe(prints)
    else expect(text).toMatch(prints)
  },
)

test('every snippet of docs/providers.md is run', () => {
  expect(readdirSync(SNIPPETS).sort()).toEqual(Object.keys(PROGRAMS).sort())
})

function useProvider({ url }: ScriptedProvider): void {
  vi.stubEnv('ANTHROPIC_API_KEY', 'test-key')
  vi.stubEnv('ANTHROPIC_BASE_URL', url.messages)
  vi.stubEnv('OPENAI_API_KEY', 'test-key')
  vi.stubEnv('OPENAI_BASE_URL', url.responses)
  vi.stubEnv('GEMINI_API_KEY', 'test-key')
  vi.stubEnv('GEMINI_BASE_URL', url.gemini)
  vi.stubEnv('OPENROUTER_API_KEY', 'test-key')
  vi.stubEnv('OPENROUTER_BASE_URL', url.openrouter)
  vi.stubEnv('LOCAL_URL', url.chat)
  vi.stubEnv('THINHARNESS_LOCAL_URL', url.chat)
}
