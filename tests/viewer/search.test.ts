import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { JsonObject, LogStore } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { structuredAnswer } from '#viewer/finding/answer.js'
import { compareRuns, wordChanges } from '#viewer/finding/compare.js'
import { search } from '#viewer/finding/search.js'
import type { LogSearch, SearchHit } from '#viewer/finding/search.js'
import type { Book } from '#viewer/reading/book.js'
import { harnessOf, tool } from '../harness/support.js'
import { eventsOfRun } from '../support/collect.js'
import { rounds } from '../support/length.js'
import { bookOf } from './support.js'

function hitsOf(book: Book, query: LogSearch): SearchHit[] {
  return [...search(book, query)].filter((hit) => hit !== null)
}

type Calls = readonly (readonly [name: string, args: JsonObject])[]

function calling(calls: Calls, last = 'Done.'): ScriptedModel {
  const model = new ScriptedModel()
  for (const [name, args] of calls) model.calls(name, args)
  return model.says(last)
}

const tools = [
  tool('look', ({ at }) => `"Seen" at ${JSON.stringify(at).slice(1, -1)}:\nnothing\tnew`),
  tool('fail', () => {
    throw new Error('Out of order.')
  }),
]

async function stored(log: LogStore, runId: string, calls: Calls, last?: string): Promise<void> {
  const limits = { modelRequests: 1000 }
  await harnessOf({ log, model: calling(calls, last), tools, limits }).run('Look around.', { runId })
}

describe('search', () => {
  test('VW-18 finds texts as they are shown, in any case, and says where and how often', async () => {
    const log = memoryLog()
    await stored(
      log,
      'run_1',
      [
        ['look', { at: 'the Harbour' }],
        ['look', { at: 'home' }],
      ],
      'The harbour is empty: harbour!',
    )
    const book = await bookOf(log, { runId: 'run_1' })
    const hits = hitsOf(book, { text: 'harbour' })
    expect(hits.map(({ kind, path, count }) => [kind, path, count])).toEqual([
      ['model_message', 'entry.parts[0].arguments.at', 1],
      ['tool_call_started', 'arguments.at', 1],
      ['tool_call_completed', 'output.content', 1],
      ['model_message', 'entry.parts[0].text', 2],
    ])
    const last = hits.at(-1)
    expect(last?.around.slice(last.from, last.to)).toBe('harbour')
    // A line break and quotes, which JSON in JSON escapes twice.
    expect(hitsOf(book, { text: '"seen" at home:\nnothing\tNEW' })).toHaveLength(1)
    expect(hitsOf(book, { text: 'parentRunId' })).toEqual([])
    expect(hitsOf(book, { text: 'a.*b' })).toEqual([])
  })

  test('VW-18 can be limited to kinds, tools, agents and failures, also without a text', async () => {
    const log = memoryLog()
    await stored(log, 'run_1', [
      ['look', { at: 'sea' }],
      ['fail', { at: 'sea' }],
    ])
    const book = await bookOf(log, { runId: 'run_1' })
    const kindsOf = (query: LogSearch): string[] => hitsOf(book, query).map(({ kind, seq }) => `${kind} ${seq}`)
    expect(kindsOf({ text: 'sea', kinds: ['tool_call_started'] })).toHaveLength(2)
    expect(kindsOf({ text: 'sea', tool: 'fail' })).toHaveLength(1)
    expect(kindsOf({ text: '', tool: 'fail' })).toHaveLength(2)
    expect(kindsOf({ text: '', failed: true })).toEqual([expect.stringMatching(/^tool_call_completed /)])
    expect(kindsOf({ text: 'sea', agent: 'clerk' })).toEqual([])
    expect(kindsOf({ text: 'sea', agent: '' }).length).toBeGreaterThan(0)
    expect(kindsOf({ text: 'sea', runIds: [] })).toEqual([])
  })

  test('VW-06 parses the lines that have the text alone, and stops in between', async () => {
    const log = memoryLog()
    const calls = Array.from({ length: 300 }, (_, index) => ['look', { at: `place ${index}` }] as const)
    await stored(log, 'run_1', calls)
    const book = await bookOf(log, { runId: 'run_1' })
    book.run('run_1')
    expect(hitsOf(book, { text: 'place 299' })).toHaveLength(3)
    expect(book.parsed).toBe(3)
    expect([...search(book, { text: 'place' })].filter((hit) => hit === null).length).toBeGreaterThan(2)
  })

  test('finds every text that stands in an argument', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ minLength: 1, unit: 'grapheme' }), async (text) => {
        const event = {
          kind: 'run_started',
          runId: 'run_1',
          seq: 1,
          at: '2026-01-01T00:00:00.000Z',
          prompt: `x${text}y`,
        }
        const call = {
          ...event,
          kind: 'tool_call_started',
          seq: 2,
          prompt: null,
          arguments: JSON.stringify({ a: text }),
        }
        const book = await bookOf([event, call] as never)
        expect(hitsOf(book, { text }).map(({ seq }) => seq)).toEqual(expect.arrayContaining([1, 2]))
      }),
      rounds(200),
    )
  })
})

describe('two runs side by side', () => {
  test('VW-20 begin with what they have in common, and then go by tool and arguments', async () => {
    const log = memoryLog()
    await stored(
      log,
      'run_1',
      [
        ['look', { at: 'a' }],
        ['look', { at: 'b' }],
        ['fail', { at: 'c' }],
        ['look', { at: 'd' }],
      ],
      'One.',
    )
    await stored(
      log,
      'run_2',
      [
        ['look', { at: 'a' }],
        ['look', { at: 'x' }],
        ['look', { at: 'd' }],
      ],
      'Two.',
    )
    const book = await bookOf(log, { runId: 'run_1', compare: 'run_2' })
    expect(book.header).toMatchObject({ root: 'run_1', compare: 'run_2' })
    const rows = compareRuns(book, 'run_1', 'run_2')
    expect(rows.map(({ kind, left, right, differs }) => [kind, left?.index, right?.index, differs])).toEqual([
      ['same', 1, 1, []],
      ['changed', 2, 2, ['calls', 'results']],
      ['removed', 3, undefined, []],
      ['same', 4, 3, []],
      ['changed', 5, 4, ['text']],
    ])
    expect(compareRuns(book, 'run_1', 'run_9')).toEqual([])
  })

  test('VW-20 of a run and its fork have the turns before the fork in common', async () => {
    const log = memoryLog()
    await stored(log, 'run_1', [
      ['look', { at: 'a' }],
      ['look', { at: 'b' }],
      ['look', { at: 'c' }],
    ])
    const events = await eventsOfRun(log, 'run_1')
    const other = harnessOf({ log, model: calling([['look', { at: 'z' }]]), tools })
    await other.fork(events, { afterTurn: 2, prompt: 'Elsewhere.' }, { runId: 'run_2' })
    await harnessOf({ log, model: calling([['look', { at: 'z' }]]), tools }).fork(
      events,
      { afterTurn: 2 },
      { runId: 'run_3' },
    )
    const book = await bookOf(log)
    for (const fork of ['run_2', 'run_3'])
      expect(
        compareRuns(book, 'run_1', fork).map(({ kind, left, right }) => [kind, left?.index, right?.index]),
      ).toEqual([
        ['common', 1, undefined],
        ['common', 2, undefined],
        ['changed', 3, 1],
        ['same', 4, 2],
      ])
  })

  test('rows have each turn of both runs once, in order, whatever these are', async () => {
    const runs = fc.array(
      fc.tuple(fc.constantFrom('look', 'fail'), fc.record({ at: fc.constantFrom('a', 'b', 'c') })),
      { maxLength: 6 },
    )
    await fc.assert(
      fc.asyncProperty(runs, runs, async (one, other) => {
        const log = memoryLog()
        await stored(log, 'run_1', one)
        await stored(log, 'run_2', other)
        const rows = compareRuns(await bookOf(log), 'run_1', 'run_2')
        const indexes = (side: 'left' | 'right'): number[] => rows.flatMap((row) => row[side]?.index ?? [])
        expect(indexes('left')).toEqual(Array.from({ length: one.length + 1 }, (_, index) => index + 1))
        expect(indexes('right')).toEqual(Array.from({ length: other.length + 1 }, (_, index) => index + 1))
        if (JSON.stringify(one) === JSON.stringify(other)) expect(rows.every(({ kind }) => kind === 'same')).toBe(true)
      }),
      rounds(15),
    )
  })

  test('VW-20 say in words what was added and removed, and both texts can be read from it', () => {
    expect(wordChanges('a red box', 'a blue box')).toEqual([
      { text: 'a ', kind: 'same' },
      { text: 'red', kind: 'removed' },
      { text: 'blue', kind: 'added' },
      { text: ' box', kind: 'same' },
    ])
    fc.assert(
      fc.property(fc.string(), fc.string(), (one, other) => {
        const changes = wordChanges(one, other)
        const without = (kind: string): string =>
          changes.flatMap((change) => (change.kind === kind ? [] : change.text)).join('')
        expect([without('added'), without('removed')]).toEqual([one, other])
      }),
      rounds(200),
    )
    expect(wordChanges('a '.repeat(9000), 'b '.repeat(9000)).map(({ kind }) => kind)).toEqual(['removed', 'added'])
  })
})

describe('a structured answer', () => {
  test('VW-17 has its evidence with the place that it quotes', async () => {
    const log = memoryLog()
    const quote = { type: 'object', properties: { quote: { type: 'string' }, call_id: { type: 'string' } } }
    const file = {
      type: 'object',
      properties: { quote: { type: 'string' }, file: { type: 'string' }, from_line: { type: 'integer' } },
    }
    const outputType = {
      type: 'object',
      properties: { total: { type: 'number' }, from: quote, also: { type: 'array', items: file } },
    }
    const answer = {
      total: 7,
      from: { quote: 'nothing', call_id: 'call_1' },
      also: [
        { quote: 'at the pier', file: 'a.txt', from_line: 2 },
        { quote: 'nowhere to be found', file: 'a.txt', from_line: 3 },
      ],
    }
    const model = calling(
      [
        ['look', { at: 'home' }],
        ['look', { at: 'the pier' }],
      ],
      JSON.stringify(answer),
    )
    const harness = harnessOf({ log, model, tools, outputType, outputMode: 'prompted' })
    const { runId, output } = await harness.run('Look.')
    expect(output).toEqual(answer)
    const book = await bookOf(log, { runId })
    const found = structuredAnswer(book, runId)
    expect(found).toMatchObject({ value: answer, runId })
    const ends = [...(book.run(runId)?.calls.values() ?? [])].map(({ endSeq }) => ({ runId, seq: endSeq }))
    expect(found?.evidence).toEqual([
      { path: '.from', quote: 'nothing', source: 'call call_1', place: ends[0] },
      { path: '.also[0]', quote: 'at the pier', source: 'a.txt, line 2', place: ends[1] },
      { path: '.also[1]', quote: 'nowhere to be found', source: 'a.txt, line 3', place: null },
    ])
  })

  test('is none for a run that answered with a text', async () => {
    const log = memoryLog()
    await stored(log, 'run_1', [])
    expect(structuredAnswer(await bookOf(log), 'run_1')).toBeNull()
  })
})
