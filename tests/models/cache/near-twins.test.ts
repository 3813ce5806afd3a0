import { NO_TOKENS } from '#contracts/entry.js'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import type { Model, ModelSession, TranscriptEntry } from 'thinharness'
import { cached, memoryCache } from 'thinharness/models'
import type { CachedOptions } from 'thinharness/models'

interface Pair {
  readonly id: string
  readonly kind: string
  readonly a: string
  readonly b: string
}

function pairsIn(name: 'twins' | 'same'): readonly Pair[] {
  const file = join(import.meta.dirname, '../../data/near-twins', `${name}.jsonl.gz`)
  const lines = gunzipSync(readFileSync(file)).toString('utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line) as Pair)
}

const constants = { instructions: 'Answer.', tools: [], structuredOutput: null, settings: {} }
const options = { signal: new AbortController().signal, generation: 0 }

function answers(id: string, textFor: (view: readonly TranscriptEntry[]) => string): Model {
  const usage = { ...NO_TOKENS, inputTokens: 1, outputTokens: 1 }
  const turn: ModelSession['turn'] = (view) =>
    Promise.resolve({
      entry: {
        ...{ role: 'assistant', provider: 'test', model: id, finishReason: 'stop', usage },
        parts: [{ type: 'text', text: textFor(view) }],
      },
    })
  return { provider: 'test', id, capabilities: {}, openSession: () => ({ turn }) }
}

async function isHit(model: Model, text: string): Promise<boolean> {
  const view: TranscriptEntry[] = [{ id: 'e1', at: '', role: 'user', content: [{ type: 'text', text }] }]
  return (await model.openSession().turn(view, constants, options)).cached === true
}

/** How many of the pairs have a hit for `b` after `a` was answered, with a cache of its own for each. */
async function hits(pairs: readonly Pair[], beside: Omit<CachedOptions, 'store'>): Promise<readonly Pair[]> {
  const found: Pair[] = []
  for (const pair of pairs) {
    const model = cached(
      answers('main', () => 'An answer.'),
      { store: memoryCache(), ...beside },
    )
    await isHit(model, pair.a)
    if (await isHit(model, pair.b)) found.push(pair)
  }
  return found
}

const [twins, same] = [pairsIn('twins'), pairsIn('same')]

test('no question gets the answer of its twin, by bytes and normalised; the same question in another form mostly does', async () => {
  expect([twins.length, same.length]).toEqual([2500, 500])
  expect(await hits(twins, {})).toEqual([])
  expect(await hits(twins, { normalise: true })).toEqual([])
  expect(await hits(same, {})).toEqual([])
  const right = await hits(same, { normalise: true })
  expect(right.length / same.length).toBeGreaterThanOrEqual(0.87)
})

test('all of them in one cache have no wrong hit either', async () => {
  const asked: string[] = []
  const model = cached(
    answers('main', (view) => JSON.stringify(view[0])),
    { store: memoryCache({ entries: 100_000 }), normalise: true },
  )
  for (const { a, b } of twins.slice(0, 800)) for (const text of [a, b]) if (await isHit(model, text)) asked.push(text)
  expect(asked.filter((text) => !twins.some(({ a }) => a === text))).toEqual([])
})

/** Words are all that a vector has: twins are as near as they can be. */
const embed = Object.assign(
  (texts: readonly string[]) =>
    Promise.resolve(
      texts.map((text) => {
        const vector = Array.from({ length: 256 }, () => 0)
        for (const word of text.toLowerCase().match(/\w+/g) ?? []) {
          let hash = 7
          for (const sign of word) hash = (hash * 31 + sign.charCodeAt(0)) % 256
          vector[hash] = (vector[hash] ?? 0) + 1
        }
        return vector
      }),
    ),
  { model: 'words' },
)

test('with `semantic` the wrong hits are exactly those that the confirming model gets wrong', async () => {
  let state = 42
  const random = (): number => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648
  const said: { readonly one: string; readonly other: string; readonly choice: string }[] = []
  const confirm = answers('confirm', ([entry]) => {
    const [part] = entry?.role === 'user' ? entry.content : []
    const { context } = JSON.parse(part?.type === 'text' ? part.text : '{}') as {
      context: { one: string; other: string }
    }
    const choice = random() < 0.5 ? 'yes' : 'no'
    said.push({ ...context, choice })
    return JSON.stringify({ choice })
  })
  const wrong = await hits(twins, { normalise: true, semantic: { embed, threshold: 0.9, confirm } })
  const confirmed = said.filter(({ choice }) => choice === 'yes')
  expect(wrong.map(({ a, b }) => ({ one: a, other: b }))).toEqual(confirmed.map(({ one, other }) => ({ one, other })))
  // Numbers, units and names keep nearly all of them apart before anybody is asked.
  expect(said.length).toBeGreaterThan(10)
  expect(said.length).toBeLessThan(100)
  const always = answers('confirm', () => '{"choice":"yes"}')
  const right = await hits(same, { normalise: true, semantic: { embed, threshold: 0.9, confirm: always } })
  expect(right.length).toBeGreaterThan(440)
})
