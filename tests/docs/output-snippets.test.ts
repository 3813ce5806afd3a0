import { join } from 'node:path'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import { inTemporaryFolder } from '../support/folder.js'

const SNIPPETS = fileURLToPath(new URL('../../docs/snippets/output/', import.meta.url))

inTemporaryFolder({ 'notes/lamps.md': 'Ana: the lamp\narrived broken.\n' })

const place = { file: 'lamps.md', from_line: 1, to_line: 2 }
const claims = (quote: string) => ({ claims: [{ claim: 'Lamps break.', source: { ...place, quote } }] })

/** The model's answers, and the expected output. */
const PROGRAMS: Readonly<Record<string, { readonly answers: readonly object[]; readonly prints: string }>> = {
  'first.ts': {
    answers: [{ customer: 'Ana', amount: 39, reason: 'broken', note: null }],
    prints: 'Ana: 39.00 € (broken)\n',
  },
  'several.ts': { answers: [{ value: { kind: 'refund', amount: 39 } }], prints: 'Refund 39\n' },
  'validator.ts': { answers: [{ order: 'order-8' }, { order: 'order-9' }], prints: 'order-9 1\n' },
  'streaming.ts': { answers: [{ title: 'Tea', steps: ['Boil.', 'Pour.'] }], prints: 'true 2\n' },
  'evidence.ts': {
    answers: [claims('the lamp was fine'), claims('the lamp arrived broken')],
    prints: 'Lamps break. (lamps.md:1)\n',
  },
}

test.each(Object.entries(PROGRAMS))(
  'docs/output.md: %s prints the documented output',
  async (name, { answers, prints }) => {
    await using provider = await scriptedProvider()
    for (const answer of answers) provider.says(JSON.stringify(answer))
    vi.stubEnv('OPENAI_API_KEY', 'test-key')
    vi.stubEnv('OPENAI_BASE_URL', provider.url.responses)
    let printed = ''
    vi.spyOn(console, 'log').mockImplementation((...values: unknown[]) => void (printed += `${values.join(' ')}\n`))
    await import(join(SNIPPETS, name))
    expect(printed).toBe(prints)
  },
)

test('every snippet of docs/output.md is run', () => {
  expect(readdirSync(SNIPPETS).sort()).toEqual(Object.keys(PROGRAMS).sort())
})
