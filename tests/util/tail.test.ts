import { expect, test } from 'vitest'
import { LiveEvents, tail } from '#util/queue/tail.js'
import type { TailReader } from '#util/queue/tail.js'
import { collect } from '../support/collect.js'

interface TestEvent {
  readonly kind: string
  readonly runId: string
  readonly seq: number
  readonly durable: boolean
  readonly text: string
}

/** A log of one run, and a reader of it from its beginning. */
class Run implements TailReader<TestEvent> {
  readonly live = new LiveEvents<TestEvent>()
  readonly #log: TestEvent[] = []
  #seq = 0

  store(kind: string, text = ''): void {
    const event = { kind, runId: 'r1', seq: this.#log.length + 1, durable: true, text }
    this.#log.push(event)
    this.live.push(event)
  }

  emit(text: string): void {
    this.live.push({ kind: 'text_delta', runId: 'r1', seq: this.#log.length, durable: false, text })
  }

  async *stored() {
    await Promise.resolve()
    for (const event of this.#log.slice(this.#seq)) yield this.take([event])
  }

  take(events: readonly TestEvent[]): readonly TestEvent[] {
    return events.filter(({ durable, seq }) => {
      if (!durable) return seq === this.#seq
      const isNew = seq > this.#seq
      this.#seq = Math.max(seq, this.#seq)
      return isNew
    })
  }
}

const told = (events: readonly TestEvent[]): string => events.map(({ kind, text }) => text || kind).join(' ')

async function nextOf(batches: AsyncGenerator<readonly TestEvent[], void>): Promise<readonly TestEvent[]> {
  const next = await batches.next()
  return next.done === true ? [] : next.value
}

/** Takes one batch, and the rest after `work`. */
async function readAround(batches: AsyncGenerator<readonly TestEvent[], void>, work: () => void): Promise<string> {
  const first = await nextOf(batches)
  work()
  return told([...first, ...(await collect(batches)).flat()])
}

test('a reader gets the stored events, the reply that is arriving, and what follows, each once', async () => {
  const run = new Run()
  run.store('model_request_started')
  run.emit('one')
  run.emit(' two')
  const reading = readAround(tail(run, undefined), () => {
    run.emit(' three')
    run.store('model_message')
    run.live.close()
  })
  expect(await reading).toBe('model_request_started one two  three model_message')
})

test('a reader who is too slow gets no further deltas of the present reply, every stored event, and the next reply whole', async () => {
  const run = new Run()
  run.store('model_request_started')
  const batches = tail(run, undefined, 1000)
  const seen = [...(await nextOf(batches))]
  run.emit('one')
  seen.push(...(await nextOf(batches)))
  run.emit(' two')
  for (let count = 0; count < 20; count++) run.store('warning', 'x'.repeat(100))
  run.emit('three')
  seen.push(...(await nextOf(batches)))
  run.store('model_message')
  run.store('model_request_started')
  run.emit('four')
  run.live.close()
  const text = told([...seen, ...(await collect(batches)).flat()])
  expect(text.replaceAll('x'.repeat(100), 'x')).toBe(
    `model_request_started one ${'x '.repeat(20)}model_message model_request_started four`,
  )
})

test('an error of what follows reaches the reader after the events before it; a signal ends the reading', async () => {
  const run = new Run()
  run.store('model_request_started')
  const failing: TailReader<TestEvent> = {
    live: null,
    stored: () => run.stored(),
    take: (events) => run.take(events),
    async *follow() {
      await Promise.resolve()
      yield { kind: 'model_message', runId: 'r1', seq: 2, durable: true, text: '' }
      throw new Error('Down.')
    },
  }
  const seen: TestEvent[] = []
  const reading = (async () => {
    for await (const batch of tail(failing, undefined)) seen.push(...batch)
  })()
  await expect(reading).rejects.toThrow('Down.')
  expect(told(seen)).toBe('model_request_started model_message')
  const over = new AbortController()
  setTimeout(() => over.abort(), 5)
  expect(await collect(tail(new Run(), over.signal))).toEqual([])
})
