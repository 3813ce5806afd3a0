// `npm run bench:counting`: how far counts are off. Against the input tokens that providers reported for recorded requests
// (`--recordings <folder>`), and, for texts of several languages, against a tokenizer.
import { parseArgs } from 'node:util'
import type { TranscriptEntry } from 'thinharness'
import { countTokens } from 'thinharness/context'
import { modelOf, recordedRequests } from './recordings.js'
import type { Recorded } from './recordings.js'
import { textsByKind } from './texts.js'
import { NO_TOKENS } from '../tokens.js'

const RECORDINGS = new URL('tests/fixtures/provider-cases', import.meta.resolve('thinharness/package.json')).pathname

const { values } = parseArgs({ options: { recordings: { type: 'string', default: RECORDINGS } } })

await recordings()
await texts()

/** Without the counters of providers, which need a key: by a tokenizer or as an estimate. */
async function recordings(): Promise<void> {
  const found = new Map<string, { readonly tokens: number; readonly error: number }[]>()
  for (const recorded of await recordedRequests(values.recordings)) {
    for (const [kind, entries] of [
      ['first', recorded.entries],
      ['next', reported(recorded)],
    ] as const) {
      if (entries === null) continue
      const { tokens, by } = await counted({ ...recorded, entries })
      const key = `${recorded.provider} | ${by === 'estimate' && kind === 'next' ? 'estimate, the request before is known' : by}`
      found.set(key, [...(found.get(key) ?? []), { tokens: recorded.tokens, error: tokens - recorded.tokens }])
    }
  }
  console.log(
    'Recorded requests\n\n| provider | by | requests | tokens, median | error in tokens, median | 9 of 10 within | of all tokens |',
  )
  console.log('| --- | --- | ---: | ---: | ---: | ---: | ---: |')
  for (const [key, list] of [...found].toSorted(([, one], [, other]) => other.length - one.length)) {
    const errors = list.map(({ error }) => Math.abs(error))
    const sum = (of: (one: (typeof list)[number]) => number): number => list.reduce((all, one) => all + of(one), 0)
    const numbers = [
      list.length,
      at(
        list.map(({ tokens }) => tokens),
        0.5,
      ),
      at(errors, 0.5),
      at(errors, 0.9),
    ]
    const whole = percent(sum(({ error }) => error) / sum(({ tokens }) => tokens))
    console.log(`| ${key} | ${numbers.map(String).join(' | ')} | ${whole} |`)
  }
}

/** The conversation with the length of the request before, as its reply reported it. */
function reported({ entries, before }: Recorded): readonly TranscriptEntry[] | null {
  const last = entries.findLastIndex(({ role }) => role === 'assistant')
  if (before === null || last < 0) return null
  return entries.map((entry, index) =>
    index === last && entry.role === 'assistant' ? { ...entry, usage: { ...entry.usage, inputTokens: before } } : entry,
  )
}

async function counted({ model, entries, instructions, tools }: Recorded): ReturnType<typeof countTokens> {
  return countTokens(model, entries, { instructions, tools, ask: false })
}

/** A conversation whose first half the provider has counted, and one that nobody has counted. */
async function texts(): Promise<void> {
  console.log('\nTexts, against `o200k_base`\n\n| text | tokens | estimate | estimate, once the first half is known |')
  console.log('| --- | ---: | ---: | ---: |')
  for (const [kind, text] of await textsByKind()) {
    const half = Math.floor(text.length / 2)
    const [first, second] = [message('e1', text.slice(0, half)), message('e3', text.slice(half))]
    const exact = async (entries: readonly TranscriptEntry[]): Promise<number> =>
      (await countTokens(modelOf('openai', 'gpt-5'), entries, { ask: false })).tokens
    const estimated = async (entries: readonly TranscriptEntry[]): Promise<number> =>
      (await countTokens(modelOf('other', 'other'), entries)).tokens
    const all = [first, reply(await exact([first])), second]
    const tokens = await exact(all)
    const blind = (await estimated([first, second])) / (await exact([first, second])) - 1
    const known = (await estimated(all)) / tokens - 1
    console.log(`| ${kind} | ${tokens.toLocaleString('en')} | ${percent(blind)} | ${percent(known)} |`)
  }
}

function message(id: string, text: string): TranscriptEntry {
  return { id, at: '2026-11-24T00:00:00.000Z', role: 'user', content: [{ type: 'text', text: text.toWellFormed() }] }
}

function reply(inputTokens: number): TranscriptEntry {
  return {
    ...{ id: 'e2', at: '2026-11-24T00:00:00.000Z', role: 'assistant', parts: [{ type: 'text', text: 'Go on.' }] },
    ...{
      provider: 'other',
      model: 'other',
      finishReason: 'stop',
      usage: { ...NO_TOKENS, inputTokens, outputTokens: 1 },
    },
  }
}

/** The value below which this share of the values is. */
function at(list: readonly number[], share: number): number {
  const sorted = list.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

function percent(share: number): string {
  return `${share < 0 ? '−' : ''}${Math.abs(share * 100).toFixed(0)} %`
}
