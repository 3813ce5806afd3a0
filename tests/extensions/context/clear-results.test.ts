import { describe, expect, test } from 'vitest'
import { callTool, HarnessError, textOf } from 'thinharness'
import type { Extension, TranscriptEntry } from 'thinharness'
import { clearResults, recall } from 'thinharness/context'
import { eventsOf, harnessOf, ofKind, tool } from '../../harness/support.js'
import { lookingFor, randomOf, windowedModel } from './windowed-model.js'
import { isLong, times, timeLimit } from '../../support/length.js'

const limits = { modelRequests: null, toolCalls: null }

function contentOf(entry: TranscriptEntry): string {
  return entry.role === 'assistant' ? textOf(entry.parts) : JSON.stringify(entry.content)
}

/** The originals that the notes of a view name by their handles. */
function namedIn(view: readonly TranscriptEntry[]): ReadonlySet<string> {
  const named = new Set<string>()
  for (const entry of view)
    for (const [, from, to = from] of contentOf(entry).matchAll(/run_1\.e(\d+)(?:-e(\d+))?/g))
      for (let place = Number(from); place <= Number(to); place++) named.add(`e${place}`)
  return named
}

function run(use: Extension, model: ReturnType<typeof windowedModel>, look: () => unknown) {
  return harnessOf({ model, tools: [tool('look', look)], use: [use], limits }).stream('Count the stars.', {
    runId: 'run_1',
    deltas: false,
  })
}

describe('clearing results', () => {
  test('XC-01 old results become one line with a handle; the first request and recent steps stay', async () => {
    const model = windowedModel({ window: 20_000, reply: lookingFor(30) })
    const stream = run(clearResults(), model, () => 'star '.repeat(1000))
    const events = await eventsOf(stream)
    const [change] = ofKind(events, 'view_changed')
    expect(change).toMatchObject({ policy: 'clear_results', usage: null, cost: null })
    expect(change?.changes[0]).toMatchObject({
      from: 'e3',
      to: 'e3',
      shown: '[This result was removed to save space. recall({"handle":"run_1.e3"}) shows it.]',
    })
    expect(change?.tokensAfter).toBeLessThan((change?.tokensBefore ?? 0) / 1.5)
    expect(contentOf(model.view[0] as TranscriptEntry)).toContain('Count the stars.')
    expect(contentOf(model.view.at(-1) as TranscriptEntry)).toContain('star star')
    expect(model.sums.refused).toBe(0)
  })

  test('XC-02 a view changes at most about once per fifth of the window', async () => {
    const window = 20_000
    const model = windowedModel({ window, reply: lookingFor(200) })
    const events = await eventsOf(run(clearResults(), model, () => 'star '.repeat(300)))
    const changes = ofKind(events, 'view_changed')
    const read = lengthOfAll(events) / 3.2
    expect(changes.length).toBeGreaterThan(2)
    expect(changes.length).toBeLessThanOrEqual(read / (window / 5))
    for (const { changes: list } of changes) expect(list.length).toBeGreaterThan(0)
  })

  function lengthOfAll(events: readonly { readonly kind: string }[]): number {
    return JSON.stringify(events.filter(({ kind }) => kind === 'tool_call_completed' || kind === 'model_message'))
      .length
  }

  const RUNS = times(30, 10_000)
  /** The runs of a test are kept until its end, to be replayed. */
  const PER_TEST = 100

  test.each(Array.from({ length: Math.ceil(RUNS / PER_TEST) }, (_, index) => 1 + index * PER_TEST))(
    'XC-03 SB-141 no call is separated from its result, and every original is reachable (random histories from seed %i)',
    async (first) => {
      for (let seed = first; seed < first + PER_TEST && seed <= RUNS; seed++) {
        const random = randomOf(seed)
        const window = 3000 + Math.floor(random() * 20_000)
        const turns = 5 + Math.floor(random() * 60)
        const charsPerToken = 2 + random() * 3
        const isKnown = random() < 0.8
        const reply = lookingFor(turns, () => 1 + Math.floor(random() * 4))
        const model = windowedModel({ window, charsPerToken, isKnown, reply })
        const look = (): string => 'x'.repeat(Math.floor(random() ** 4 * window))
        const stream = run(clearResults(), model, look)
        await eventsOf(stream)
        const { transcript } = await stream.result
        expect(transcript.length, `seed ${seed}`).toBeGreaterThan(turns)
        const shown = new Set(model.view.map(({ id }) => id))
        const named = namedIn(model.view)
        const lost = transcript.slice(0, -1).filter(({ id }) => !shown.has(id) && !named.has(id))
        expect(lost, `seed ${seed}`).toEqual([])
        const some = transcript[Math.floor(random() * transcript.length)]
        if (some?.role === 'tool') expect(await readAll(`run_1.${some.id}`, transcript)).toBe(plain(some))
      }
    },
    timeLimit(120_000),
  )

  function plain(entry: TranscriptEntry): unknown {
    if (entry.role !== 'tool' || typeof entry.content !== 'string') return entry
    return (JSON.parse(entry.content) as { content: string }).content
  }

  async function readAll(handle: string, transcript: readonly TranscriptEntry[]): Promise<string> {
    let text = ''
    for (let page = 1; ; page++) {
      const { content } = await callTool(recall, { handle, page }, { transcript })
      text += content.replace(/\n\n\[Page \d+ of \d+\.(?: Next: page \d+\.)?\]$/, '')
      if (!content.endsWith(`Next: page ${page + 1}.]`)) return text
    }
  }

  test(
    'XC-04 a long run stays within its window, and ≥ 90 % of its input is read from the cache',
    async () => {
      const turns = times(400, 5000)
      const window = isLong ? 200_000 : 20_000
      const model = windowedModel({ window, reply: lookingFor(turns) })
      const random = randomOf(7)
      const stream = run(clearResults(), model, () => 'word '.repeat(Math.floor(random() * (window / 100))))
      await eventsOf(stream)
      const { sums } = model
      expect(sums.refused).toBe(0)
      expect(sums.requests).toBe(turns + 1)
      expect(sums.largest).toBeLessThan(window)
      expect(sums.cached / sums.input).toBeGreaterThan(0.9)
    },
    timeLimit(600_000),
  )

  test('XC-05 pinned entries stay', async () => {
    const model = windowedModel({ window: 10_000, reply: lookingFor(60) })
    const pinned = (entry: TranscriptEntry): boolean => entry.id === 'e5'
    await eventsOf(run(clearResults({ pinned }), model, () => 'star '.repeat(400)))
    const ids = model.view.map(({ id }) => id)
    expect(ids.slice(0, 4)).toEqual(['e1', 'e2-e3', 'e4', 'e5'])
    expect(contentOf(model.view[3] as TranscriptEntry)).toContain('star star')
  })

  test('XC-06 after a pause, it acts earlier', async () => {
    const model = windowedModel({ window: 20_000, reply: lookingFor(4) })
    const first = harnessOf({ model, tools: [tool('look', () => 'star '.repeat(1600))], limits })
    const { transcript } = await first.run('Look.')
    const history = transcript.map((entry) => ({ ...entry, at: '2026-01-01T00:00:00.000Z' }))
    const changes = async (use: Extension): Promise<number> => {
      const next = windowedModel({ window: 20_000, reply: lookingFor(0) })
      const events = await eventsOf(harnessOf({ model: next, use: [use] }).stream('And now?', { history }))
      return ofKind(events, 'view_changed').length
    }
    expect(await changes(clearResults())).toBe(0)
    expect(await changes(clearResults({ idleMs: 60_000 }))).toBe(1)
  })

  test.each([
    [{ at: 0 }, '`at`'],
    [{ at: 50 }, '`at`'],
    [{ idleMs: -1 }, '`idleMs`'],
    [{ when: 1 }, '`when`'],
  ])('XC-07 options of the wrong form are refused: %j', (options, message) => {
    const make = (): unknown => clearResults(options as object)
    expect(make).toThrow(HarnessError)
    expect(make).toThrow(message)
  })
})
