import { describe, expect, test } from 'vitest'
import type { Model, RunEvent, TurnOptions } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { memoryLog } from 'thinharness'
import { eventsOf, failureOf, harnessOf, kinds, ofKind, ticks, told, tool, until } from '../../harness/support.js'

/** A model that calls tool `a` in its first `turns` turns, and then is done. Counts how often it was asked. */
function working(turns: number): ScriptedModel {
  return new ScriptedModel().always(({ turn }) => (turn < turns ? { calls: [{ name: 'a' }] } : 'Done.'))
}

/** A model that only does what `turn` does. */
function modelOf(turn: (options: TurnOptions) => Promise<unknown>): Model {
  const script = new ScriptedModel().always('Done.')
  return {
    provider: 'custom',
    id: 'custom-1',
    capabilities: {},
    openSession() {
      const session = script.openSession()
      return {
        async turn(transcript, constants, options) {
          await turn(options)
          return session.turn(transcript, constants, { generation: 0, signal: options.signal })
        },
      }
    },
  }
}

describe('a slow reader', () => {
  test('makes the run wait, and gets every durable event in order', async () => {
    const model = working(300)
    const harness = harnessOf({ model, tools: [tool('a')], limits: { modelRequests: null } })
    const stream = harness.stream('Go.', { deltas: false })
    const events: RunEvent[] = []
    let stalled = 0
    for await (const event of stream) {
      if (events.length % 500 === 0) {
        await ticks(50)
        stalled = model.heard.length
        await ticks(50)
        // The run has come as far as there is room, and no further.
        expect(model.heard.length).toBe(stalled)
        expect(model.heard.length - ofKind(events, 'model_request_started').length).toBeLessThan(140)
      }
      events.push(event)
    }
    expect(events.map(({ seq }) => seq)).toEqual(Array.from({ length: 2 + 301 * 2 + 300 * 2 }, (_, index) => index + 1))
    expect((await stream.result).text).toBe('Done.')
  })

  test('of 100,000 deltas gets few events, and the whole text', async () => {
    const model = modelOf(async ({ onDelta }) => {
      for (let index = 0; index < 100_000; index++) onDelta?.({ kind: 'text_delta', text: String(index % 10) })
    })
    const stream = harnessOf({ model }).stream('Go.', { deltas: true })
    const events = await eventsOf(stream)
    const deltas = ofKind(events, 'text_delta')
    expect(deltas.length).toBeLessThanOrEqual(256)
    expect(deltas.map(({ text }) => text).join('')).toBe('0123456789'.repeat(10_000))
  })

  test.each([
    ['waits for the result at once', false],
    ['waits for the result when the run waits for a reader', true],
  ])('that has taken one event and then %s, gets it', async (_, isLate) => {
    const harness = harnessOf({ model: working(300), tools: [tool('a')], limits: { modelRequests: null } })
    const stream = harness.stream('Go.')
    const reading = stream[Symbol.asyncIterator]()
    expect((await reading.next()).value).toMatchObject({ kind: 'run_started' })
    if (isLate) await ticks(50)

    expect((await stream.result).usage.modelRequests).toBe(301)
  })

  test('that has stopped does not keep an aborted run, or the closing of its harness, from ending', async () => {
    const controller = new AbortController()
    for (const stop of ['abort', 'close'] as const) {
      const model = working(300)
      const harness = harnessOf({ model, tools: [tool('a')], limits: { modelRequests: null } })
      const stream = harness.stream('Go.', { signal: controller.signal })
      const reading = stream[Symbol.asyncIterator]()
      await reading.next()
      await ticks(50)
      const result = failureOf(stream.result)
      if (stop === 'close') await harness.close()
      else controller.abort()
      expect((await result).code).toBe('cancelled')
      // What was told is still there for it.
      let last: RunEvent | undefined
      const rest = (async () => {
        for (let next = await reading.next(); next.done !== true; next = await reading.next()) last = next.value
      })()
      await expect(rest).rejects.toMatchObject({ code: 'cancelled' })
      expect(last?.kind).toBe('run_failed')
    }
  })
})

describe('a reader that never comes', () => {
  test('is not awaited if only the result is', async () => {
    const stream = harnessOf({ model: working(300), tools: [tool('a')], limits: { modelRequests: null } }).stream(
      'Go.',
      { deltas: false },
    )
    expect((await stream.result).usage.modelRequests).toBe(301)
  })

  test('may come late, and gets the durable events all the same', async () => {
    const model = working(100)
    const stream = harnessOf({ model, tools: [tool('a')], limits: { modelRequests: null } }).stream('Go.', {
      deltas: true,
    })
    await stream.result
    const events = await eventsOf(stream)
    expect(ofKind(events, 'tool_call_completed')).toHaveLength(100)
    expect(events.at(-1)?.kind).toBe('run_completed')
  })

  test('gets the end of a run whose log has failed', async () => {
    const log = { ...memoryLog(), append: () => Promise.reject(new Error('Full.')) }
    const stream = harnessOf({ model: new ScriptedModel(), log }).stream('Go.')
    expect((await failureOf(stream.result)).code).toBe('store_failure')
    const { events, thrown } = await told(stream)
    expect(kinds(events)).toBe('run_failed')
    expect(events[0]).toMatchObject({ durable: false, seq: 0, code: 'store_failure', stopReason: 'error' })
    expect(thrown).toMatchObject({
      code: 'store_failure',
      message: expect.stringMatching(/^The log could not store an event of run `run_\w+`: Full\.$/) as string,
    })
  })
})

describe('reading', () => {
  test('ST-01 `batches()` yields the same events, all waiting ones at once', async () => {
    const run = async (): Promise<readonly [RunEvent[], number]> => {
      const model = modelOf(async ({ onDelta }) => {
        for (let index = 0; index < 50; index++) onDelta?.({ kind: 'text_delta', text: 'x' })
      })
      const events: RunEvent[] = []
      let count = 0
      for await (const batch of harnessOf({ model }).stream('Go.', { deltas: true }).batches()) {
        events.push(...batch)
        count += 1
      }
      return [events, count]
    }
    const [events, count] = await run()
    expect(kinds(events)).toBe(
      `run_started model_request_started ${Array.from({ length: 50 }, () => 'text_delta').join(' ')} model_message run_completed`,
    )
    expect(count).toBeLessThan(10)
  })

  test('ST-08 `batches()` fails after the last event like the iteration', async () => {
    using model = new ScriptedModel().fails('Down.')
    const events: RunEvent[] = []
    const reading = (async () => {
      for await (const batch of harnessOf({ model }).stream('Go.').batches()) events.push(...batch)
    })()
    await expect(reading).rejects.toMatchObject({ code: 'provider_error' })
    expect(events.at(-1)?.kind).toBe('run_failed')
  })

  test('ST-01 several concurrent `next()` are answered in order, each event once', async () => {
    const stream = harnessOf({ model: working(3), tools: [tool('a')] }).stream('Go.', { deltas: false })
    const reading = stream[Symbol.asyncIterator]()
    const results = await Promise.all(Array.from({ length: 20 }, () => reading.next()))
    const seqs = results.flatMap((result) => (result.done === true ? [] : [result.value.seq]))
    expect(seqs).toEqual(Array.from({ length: 16 }, (_, index) => index + 1))
    expect(results.slice(16).every(({ done }) => done === true)).toBe(true)
    expect(await reading.next()).toEqual({ done: true, value: undefined })
  })

  test('ST-01 several `next()` for waiting events yield each of them, and later events follow', async () => {
    const stream = harnessOf({ model: working(0) }).stream('Go.', { deltas: false })
    await ticks(20)
    const reading = stream[Symbol.asyncIterator]()
    const first = reading.next()
    const [second, third] = [reading.next(), reading.next()]
    const fourth = first.then(() => reading.next())
    const results = await Promise.all([first, second, third, fourth])
    expect(results.map((result) => (result.done === true ? null : result.value.seq))).toEqual([1, 2, 3, 4])
    expect(await reading.next()).toEqual({ done: true, value: undefined })
  })

  test('ST-01 nothing is emitted after the end, even if the run still waits for its reader', async () => {
    let say: TurnOptions['onDelta']
    const script = working(63)
    const model: Model = {
      provider: 'custom',
      id: 'custom-1',
      capabilities: {},
      openSession() {
        const session = script.openSession()
        return {
          turn(transcript, constants, options) {
            say = options.onDelta
            return session.turn(transcript, constants, { generation: 0, signal: options.signal })
          },
        }
      },
    }
    const harness = harnessOf({ model, tools: [tool('a')], limits: { modelRequests: null } })
    const stream = harness.stream('Go.', { deltas: true })
    await until(() => script.heard.length === 64)
    await ticks(20)
    // The 256 events that there is room for are the whole run.
    say?.({ kind: 'text_delta', text: 'Too late.' })
    const events = await eventsOf(stream)
    expect(events).toHaveLength(256)
    expect(events.at(-1)?.kind).toBe('run_completed')
  })

  test('ST-11 `close()` cancels, waits for the clean-up, never rejects, and may be repeated or called on an ended run', async () => {
    let cleanedUp = false
    const slow = tool('a', async (_args, { signal }) => {
      await until(() => signal.aborted)
      await ticks(5)
      cleanedUp = true
    })
    const harness = harnessOf({ model: working(1), tools: [slow] })
    const stream = harness.stream('Go.')
    for await (const event of stream) {
      if (event.kind !== 'tool_call_started') continue
      await stream.close()
      expect(cleanedUp).toBe(true)
    }
    await Promise.all([stream.close(), stream.close()])
    expect((await failureOf(stream.result)).cause).toMatchObject({
      code: 'cancelled',
      message: 'The stream was closed by its reader.',
    })

    const ended = harnessOf({ model: working(0) }).stream('Go.')
    expect(kinds(await eventsOf(ended))).toContain('run_completed')
    await ended.close()
    expect((await ended.result).text).toBe('Done.')
  })

  test('ST-11 `return()` of the iteration cancels; leaving it at the last event does not', async () => {
    const stream = harnessOf({ model: working(5), tools: [tool('a')] }).stream('Go.')
    const reading = stream[Symbol.asyncIterator]()
    await reading.next()
    expect(await reading.return?.()).toEqual({ done: true, value: undefined })
    expect(await reading.next()).toEqual({ done: true, value: undefined })
    expect((await failureOf(stream.result)).code).toBe('cancelled')

    const whole = harnessOf({ model: working(1), tools: [tool('a')] }).stream('Go.')
    for await (const event of whole) if (event.kind === 'run_completed') break
    expect((await whole.result).text).toBe('Done.')
  })

  test('ST-11 an unused stream fails without an unhandled rejection', async () => {
    const unhandled: unknown[] = []
    const listen = (reason: unknown): void => void unhandled.push(reason)
    process.on('unhandledRejection', listen)
    try {
      using model = new ScriptedModel().fails('Down.')
      harnessOf({ model }).stream('Go.')
      await until(() => model.heard.length === 1)
      await ticks(20)
      expect(unhandled).toEqual([])
    } finally {
      process.off('unhandledRejection', listen)
    }
  })
})
