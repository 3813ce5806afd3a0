import { describe, expect, test } from 'vitest'
import type { StreamEvent } from 'thinharness'
import { EventQueue } from '#core/stream/queue.js'
import { ticks } from '../../harness/support.js'
import { AT, event } from '../state/support.js'

const ROOM = 256

function durable(seq: number): StreamEvent {
  return event('hook_failed', seq, { hookEvent: 'run_start', message: `${seq}` }) as StreamEvent
}

function delta(kind: StreamEvent['kind'], text: string | null, beside: object = {}): StreamEvent {
  const base = {
    runId: 'run_t',
    seq: 1,
    at: AT,
    durable: false,
    parentRunId: null,
    parentToolCallId: null,
    agentName: null,
  }
  return { kind, ...base, ...(text !== null && { text }), ...beside } as unknown as StreamEvent
}

/** A queue with a reader that does not read, filled to the brim. */
function full(): EventQueue {
  const queue = new EventQueue()
  queue.startReading()
  for (let seq = 1; seq < ROOM; seq++) expect(queue.push(durable(seq))).toBeUndefined()
  return queue
}

function shown(events: readonly StreamEvent[]): unknown[] {
  return events.map((each) => ('text' in each ? `${each.kind} ${each.text}` : each.kind))
}

async function waits(promise: Promise<void> | undefined): Promise<boolean> {
  let resolved = promise === undefined
  void promise?.then(() => (resolved = true))
  await ticks(2)
  return !resolved
}

describe('a slow reader', () => {
  test('makes the run wait from the 256th durable event on; nothing is dropped', async () => {
    const queue = full()
    const first = queue.push(durable(ROOM))
    const second = queue.push(durable(ROOM + 1))
    expect([await waits(first), await waits(second)]).toEqual([true, true])
    expect((await queue.take()).map(({ seq }) => seq)).toEqual(
      Array.from({ length: ROOM + 1 }, (_, index) => index + 1),
    )
    expect([await waits(first), await waits(second)]).toEqual([false, false])
  })

  test('gets joined deltas once there is no room, each part separately, and never makes the run wait for them', async () => {
    const queue = full()
    void queue.push(durable(ROOM))
    for (let index = 0; index < 10_000; index++) {
      expect(queue.push(delta('text_delta', 't'))).toBeUndefined()
      void queue.push(delta('reasoning_delta', 'r'))
      void queue.push(delta('tool_input_delta', 'a', { callId: 'a' }))
      void queue.push(delta('tool_input_delta', 'b', { callId: 'b' }))
    }
    const taken = (await queue.take()).slice(ROOM)
    expect(taken.map((each) => ('text' in each ? [each.kind, each.text.length, each.text[0]] : []))).toEqual([
      ['text_delta', 10_000, 't'],
      ['reasoning_delta', 10_000, 'r'],
      ['tool_input_delta', 10_000, 'a'],
      ['tool_input_delta', 10_000, 'b'],
    ])
  })

  test('gets only the latest progress of each call once there is no room', async () => {
    const queue = full()
    void queue.push(durable(ROOM))
    for (const update of [1, 2, 3]) {
      for (const callId of ['x', 'y']) void queue.push(delta('tool_progress', null, { callId, toolName: 'a', update }))
    }
    expect((await queue.take()).slice(ROOM)).toMatchObject([
      { kind: 'tool_progress', callId: 'x', update: 3 },
      { kind: 'tool_progress', callId: 'y', update: 3 },
    ])
  })

  test('gets no delta joined across a durable event or a withdrawal', async () => {
    const queue = full()
    void queue.push(durable(ROOM))
    void queue.push(delta('text_delta', 'one'))
    void queue.push(durable(ROOM + 1))
    void queue.push(delta('text_delta', 'wrong'))
    void queue.push(delta('deltas_withdrawn', null, { attempt: 1 }))
    void queue.push(delta('text_delta', 'ri'))
    void queue.push(delta('text_delta', 'ght'))
    expect(shown((await queue.take()).slice(ROOM))).toEqual([
      'text_delta one',
      'hook_failed',
      'text_delta wrong',
      'deltas_withdrawn',
      'text_delta right',
    ])
  })

  test('is not awaited once the run ends, and still gets everything', async () => {
    const queue = full()
    const pushed = queue.push(durable(ROOM))
    expect(await waits(pushed)).toBe(true)
    queue.stopWaiting()
    expect(await waits(pushed)).toBe(false)
    expect(queue.push(durable(ROOM + 1))).toBeUndefined()
    expect(await queue.take()).toHaveLength(ROOM + 1)
  })
})

describe('no reader', () => {
  test('is awaited like a slow one, as long as it may still come', async () => {
    const queue = new EventQueue()
    for (let seq = 1; seq < ROOM; seq++) void queue.push(durable(seq))
    expect(await waits(queue.push(durable(ROOM)))).toBe(true)
  })

  test('is not awaited if reading is optional: durable events are kept for it, deltas are not', async () => {
    const queue = new EventQueue()
    void queue.push(delta('text_delta', 'before'))
    queue.keepUnread()
    for (let seq = 1; seq <= 2 * ROOM; seq++) expect(queue.push(durable(seq))).toBeUndefined()
    void queue.push(delta('text_delta', 'behind'))
    queue.startReading()
    const taken = await queue.take()
    expect(taken).toHaveLength(2 * ROOM + 1)
    expect(taken.filter((each) => !each.durable)).toHaveLength(1)
  })

  test('arrives too late only for deltas: an end that no log could store is still available', async () => {
    const queue = new EventQueue()
    queue.keepUnread()
    void queue.push(delta('run_failed', null))
    queue.close()
    expect(shown(await queue.take())).toEqual(['run_failed'])
  })

  test('at all: nothing is kept', async () => {
    const queue = full()
    const waiting = queue.push(durable(ROOM))
    queue.drop()
    expect(await waits(waiting)).toBe(false)
    expect(queue.push(durable(ROOM + 1))).toBeUndefined()
    queue.close()
    expect(await queue.take()).toEqual([])
  })
})

describe('reading the queue', () => {
  test('waits for new events, returns all waiting ones at once, and nothing at the end', async () => {
    const queue = new EventQueue()
    queue.startReading()
    const taking = queue.take()
    void queue.push(durable(1))
    void queue.push(durable(2))
    expect(await taking).toHaveLength(2)
    const last = queue.take()
    queue.close()
    expect(await last).toEqual([])
    expect(queue.push(durable(3))).toBeUndefined()
    expect(await queue.take()).toEqual([])
  })

  test('by two readers delivers each event to one of them, and leaves none waiting forever', async () => {
    const queue = new EventQueue()
    queue.startReading()
    const both = Promise.all([queue.take(), queue.take()])
    void queue.push(durable(1))
    await ticks(2)
    void queue.push(durable(2))
    queue.close()
    expect((await both).flat().map(({ seq }) => seq)).toEqual([1, 2])
  })
})
