import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { inTemporaryFolder } from '../support/folder.js'

const SNIPPETS = fileURLToPath(new URL('../../docs/snippets/budgets/', import.meta.url))

inTemporaryFolder({ 'notes/a.md': 'Invoices are due on 2026-12-01.\n' })

const usage = { inputTokens: 1000, outputTokens: 100, cacheReadTokens: 0, cacheWriteTokens: 0 }
const search = { calls: [{ name: 'search', arguments: { query: 'due' } }], usage }

const PROGRAMS: Readonly<Record<string, [(provider: ScriptedProvider) => unknown, string]>> = {
  'money.ts': [
    (provider) => provider.replies(search).says('One does.', { usage }),
    "One does.\n$0.006 [ 'anthropic:claude-sonnet-5' ]",
  ],
  'answer.ts': [
    (provider) =>
      provider.calls('search', { query: 'due' }).replies(({ body }) => {
        expect(body['tool_choice']).toEqual({ type: 'none' })
        return 'One does.'
      }),
    'One does.\n1 tool call',
  ],
  'prices.ts': [(provider) => provider.says('Hello.', { usage }), '$0.00014'],
  'price-again.ts': [
    (provider) => provider.replies(search).says('One does.', { usage }),
    'It cost $0.006; on gpt-5 it would have cost $0.0045.',
  ],
  'batch.ts': [
    (provider) => provider.says('billing', { usage }).says('shipping', { usage }),
    '1 billing\n2 shipping\n$0.006 of $5',
  ],
  'stall.ts': [
    (provider) => {
      for (let turn = 0; turn < 4; turn++) provider.calls('search', { query: 'due' })
      provider.says('One does.')
    },
    `stall: The last 2 turns have brought nothing new: the same calls, or calls like them, with the same results. Do something else, or answer with what you have.
stall: The last calls have brought nothing new. Answer now with what you have, without tools.
One does.`,
  ],
}

test.each(Object.entries(PROGRAMS))(
  'docs/budgets.md: %s prints the documented output',
  async (name, [script, prints]) => {
    await using provider = await scriptedProvider()
    script(provider)
    vi.stubEnv('ANTHROPIC_API_KEY', 'test-key')
    vi.stubEnv('ANTHROPIC_BASE_URL', provider.url.messages)
    vi.stubEnv('THINHARNESS_LOCAL_URL', provider.url.chat)
    const printed: string[] = []
    vi.spyOn(console, 'log').mockImplementation((...args: unknown[]) => {
      printed.push(
        args.map((arg) => (typeof arg === 'string' ? arg : `[ '${(arg as string[]).join("', '")}' ]`)).join(' '),
      )
    })
    await import(join(SNIPPETS, name))
    expect(printed.join('\n')).toBe(prints)
  },
)

test('every snippet of docs/budgets.md is run', () => {
  expect(readdirSync(SNIPPETS).sort()).toEqual(Object.keys(PROGRAMS).sort())
})
