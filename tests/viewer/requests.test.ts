import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { defineExtension, memoryLog } from 'thinharness'
import type { Extension, Harness, TranscriptEntry } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { requestAt } from '#viewer/finding/request.js'
import type { Book } from '#viewer/reading/book.js'
import { harnessOf, tool } from '../harness/support.js'
import { bookOf } from './support.js'

const CORPUS = join(import.meta.dirname, '../corpus/v3')
const KEPT = readdirSync(CORPUS).filter((name) => name.endsWith('.jsonl'))

/** Keeps what went to the model, request by request. */
function watching(sent: (readonly TranscriptEntry[])[]): Extension {
  return defineExtension({
    name: 'watching',
    wrapModelCall: (call, next) => {
      sent.push([...call.transcript])
      return next(call)
    },
  })
}

/** Shows old results in a short form, now and then. */
const clearing = defineExtension({
  name: 'clearing',
  view: ({ view }) => {
    const results = view.filter((entry) => entry.role === 'tool' && entry.content !== 'cleared')
    if (results.length < 3) return null
    return { changes: results.slice(0, 2).map(({ id }) => ({ from: id, to: id, shown: 'cleared' })) }
  },
})

function stepping(turns: number): ScriptedModel {
  const model = new ScriptedModel()
  for (let turn = 0; turn < turns; turn++) model.calls('step', { turn })
  return model.says('Done.')
}

function requestsIn(book: Book, runId: string): (readonly TranscriptEntry[])[] {
  const turns = book.run(runId)?.turns ?? []
  return turns.map(({ index }) => requestAt(book, runId, index)?.entries ?? [])
}

describe('what the model saw', () => {
  test('VW-12 is at every turn exactly what was sent, with notices and a view that changes', async () => {
    const sent: (readonly TranscriptEntry[])[] = []
    const log = memoryLog()
    const harness = harnessOf({
      ...{ log, model: stepping(8), tools: [tool('step', ({ turn }) => `result ${Number(turn)}`)] },
      ...{ use: [watching(sent), clearing], limits: { modelRequests: 10 } },
    })
    const { runId } = await harness.run('Go.')
    const book = await bookOf(log, { runId })
    expect(sent).toHaveLength(9)
    expect(requestsIn(book, runId)).toEqual(sent)
    // Backwards, and in no order.
    for (const turn of [9, 1, 5, 2, 8]) expect(requestAt(book, runId, turn)?.entries).toEqual(sent[turn - 1])
  })

  test('VW-12 says what is new, and where the request differs from the one before', async () => {
    const log = memoryLog()
    const harness = harnessOf({ log, model: stepping(4), tools: [tool('step')], use: [clearing] })
    const { runId } = await harness.run('Go.')
    const book = await bookOf(log, { runId })
    const requests = [1, 2, 3, 4].map((turn) => requestAt(book, runId, turn))
    expect(requests.map((request) => [request?.newFrom, request?.difference])).toEqual([
      [0, null],
      [1, null],
      [3, null],
      [2, { entry: 2, path: '.content' }],
    ])
    expect(requests[0]?.tools).toMatchObject({ step: expect.any(String) as string })
    expect(requests[3]).toMatchObject({ changed: [], problem: null })
    expect(requestAt(book, runId, 99)).toBeNull()
  })

  test('VW-12 of a run that goes on has the conversation before it, by reference or not', async () => {
    const sent: (readonly TranscriptEntry[])[] = []
    const log = memoryLog()
    const make = (): Harness => harnessOf({ log, model: stepping(1), tools: [tool('step')], use: [watching(sent)] })
    const first = await make().run('One.', { runId: 'run_1' })
    await make().run('Two.', { runId: 'run_2', history: first.resumeState ?? [] })
    const [alone, together] = [await bookOf(log, { runId: 'run_2' }), await bookOf(log)]
    expect(requestsIn(alone, 'run_2')).toEqual(sent.slice(2))
    expect(requestsIn(together, 'run_2')).toEqual(sent.slice(2))
    // The conversation is not repeated in a page that has both runs.
    expect(together.bytesOf('run_2').length).toBeLessThan(alone.bytesOf('run_2').length)
    expect(together.run('run_2')?.history).toBeNull()
    expect(alone.run('run_2')?.history).toBe(4)
  })

  test.each(KEPT)('follows the stored log %s to its end', async (name) => {
    const book = await bookOf(readFileSync(join(CORPUS, name), 'utf8'))
    for (const runId of book.runIds)
      for (const { index } of book.run(runId)?.turns ?? []) {
        const request = requestAt(book, runId, index)
        // The run of this log was continued from a stored state, behind its first request.
        if (request === null) expect([name, index]).toEqual(['resumed_elsewhere.jsonl', 1])
        else expect(request.entries.at(-1)?.role).not.toBe('assistant')
        expect(request?.problem ?? null).toBeNull()
      }
    expect(book.runIds.flatMap((runId) => book.run(runId)?.damage ?? [])).toEqual([])
  })
})
