import { describe, expect, test } from 'vitest'
import type { StreamEvent } from 'thinharness'
import { EventQueue } from '#run/stream/queue.js'
import { ticks } from '../../harness/support.js'
import { AT, event } from '../machine/support.js'

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
  test('H-28 makes the run wait from the 256th durable event on, until it reads; nothing is dropped', async () => {
    const queue = full()
    const first = queue.push(durable(ROOM))
    const second = queue.push(durable(ROOM + 1))
    expect([await waits(first), await waits(second)]).toEqual([true, true])
    expect((await queue.take()).map(({ seq }) => seq)).toEqual(
      Array.from({ length: ROOM + 1 }, (_, index) => index + 1),
    )
    expect([await waits(first), await waits(second)]).toEqual([false, false])
  })

  test('H-28 gets deltas joined once there is no room, each part by itself, and never makes the run wait for them', async () => {
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

  test('H-28 gets only the latest progress of each call once there is no room', async () => {
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

  test('H-28 gets no delta joined over a durable event, nor over the withdrawal of those before', async () => {
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

  test('H-28 is not waited for once the run ends, and still gets everything', async () => {
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
  test('H-28 is waited for like a slow one, as long as it may come', async () => {
    const queue = new EventQueue()
    for (let seq = 1; seq < ROOM; seq++) void queue.push(durable(seq))
    expect(await waits(queue.push(durable(ROOM)))).toBe(true)
  })

  test('H-28 is not waited for where nobody has to read: durable events are kept for one to come, deltas are not', async () => {
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

  test('H-28 comes too late for nothing but deltas: an end that no log could keep is still there', async () => {
    const queue = new EventQueue()
    queue.keepUnread()
    void queue.push(delta('run_failed', null))
    queue.close()
    expect(shown(await queue.take())).toEqual(['run_failed'])
  })

  test('H-28 ever: nothing is kept', async () => {
    const queue = full()
    const waiting = queue.push(durable(ROOM))
    queue.drop()
    expect(await waits(waiting)).toBe(false)
    expect(queue.push(durable(ROOM + 1))).toBeUndefined()
    queue.close()
    expect(await queue.take()).toEqual([])
  })
})

describe('taking', () => {
  test('waits for what comes, gives all that waits at once, and nothing at the end', async () => {
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

  test('by two readers at once gives each event to one of them, and leaves none waiting for ever', async () => {
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
