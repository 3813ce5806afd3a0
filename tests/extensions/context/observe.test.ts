import { describe, expect, test } from 'vitest'
import { defineExtension, memoryLog } from 'thinharness'
import type { Model } from 'thinharness'
import { observe } from 'thinharness/context'
import { eventsOf, harnessOf, ofKind, tool } from '../../harness/support.js'
import { eventsOfRun } from '../../support/collect.js'
import { lookingFor, windowedModel } from './windowed-model.js'
import type { Windowed } from './windowed-model.js'

const limits = { modelRequests: null, toolCalls: null }

/** A model that always writes this. */
function saying(text: string): Windowed {
  return windowedModel({ window: 1_000_000, reply: () => [{ type: 'text', text }] })
}

function observing(): Windowed {
  return windowedModel({
    window: 1_000_000,
    reply: (request) => [{ type: 'text', text: `2026-11-23 20:00 · part ${request} was counted` }],
  })
}

function harnessWith(model: Model, turns = 60, more: object = {}) {
  const asked = windowedModel({ window: 20_000, reply: lookingFor(turns) })
  const look = tool('look', async () => {
    // Lets the background continue.
    await new Promise((resolve) => setImmediate(resolve))
    return 'star '.repeat(300)
  })
  const use = [observe({ model, timeoutMs: 200, maxTokens: 500 })]
  return { asked, harness: harnessOf({ model: asked, tools: [look], use, limits, ...more }) }
}

async function run(model: Model, turns?: number) {
  const { asked, harness } = harnessWith(model, turns)
  const stream = harness.stream('Count the stars.', { runId: 'run_1', deltas: false })
  const events = await eventsOf(stream)
  const result = await stream.result
  return { asked, result, events, changes: ofKind(events, 'view_changed'), prepared: ofKind(events, 'view_prepared') }
}

describe('observations', () => {
  test('XC-32 SB-137 SB-140 parts are written in the background and shown in large steps, as one log', async () => {
    const { asked, changes, prepared, events } = await run(observing())
    expect(asked.sums.refused).toBe(0)
    expect(prepared.length).toBeGreaterThan(changes.length)
    expect(prepared[0]).toMatchObject({ policy: 'observe', from: 'e1', cost: null })
    expect(prepared[0]?.usage?.inputTokens).toBeGreaterThan(100)
    const kinds = events.map(({ kind }) => kind)
    expect(kinds.indexOf('view_prepared')).toBeLessThan(kinds.indexOf('view_changed'))
    const [first, second] = changes
    expect(first?.changes[0]?.shown).toMatch(/^\[Log of the conversation up to here.*run_1\.e2-e\d+"\}\)/)
    expect(first?.changes[0]?.shown).toContain('· part 0 was counted\n2026-11-23 20:00 · part 1 was counted')
    // The later log begins with the earlier one.
    expect(second?.changes[0]).toMatchObject({ from: 'e2' })
    expect(second?.changes[0]?.shown).toContain('· part 0 was counted\n2026-11-23 20:00 · part 1 was counted')
  })

  test('XC-33 its tokens are those of the run', async () => {
    const { result, changes, prepared } = await run(observing())
    const used = [...changes, ...prepared].reduce((sum, { usage }) => sum + (usage?.inputTokens ?? 0), 0)
    const own = result.transcript.reduce(
      (sum, entry) => sum + (entry.role === 'assistant' ? (entry.usage.inputTokens ?? 0) : 0),
      0,
    )
    expect(result.usage.inputTokens).toBe(own + used)
  })

  test('XC-53 an observation that is stored while the run ends counts too', async () => {
    const moments = async (count: number): Promise<void> => {
      for (let moment = 0; moment < count; moment++) await new Promise((resolve) => setImmediate(resolve))
    }
    let late = 0
    for (let wait = 0; wait < 40; wait++) {
      const log = memoryLog()
      const append = log.append.bind(log)
      log.append = async (...event) => {
        await moments(2)
        await append(...event)
      }
      const writer = observing()
      const waiting: Model = {
        ...{ provider: writer.provider, id: writer.id, capabilities: {} },
        openSession: () => {
          const session = writer.openSession()
          return {
            turn: async (...asked) => {
              await moments(wait)
              return session.turn(...asked)
            },
          }
        },
      }
      const { harness } = harnessWith(waiting, 9, { log })
      const result = await harness.run('Count the stars.', { runId: 'run_1' })
      const events = await eventsOfRun(log, 'run_1')
      const prepared = ofKind(events, 'view_prepared')
      const used = prepared.reduce((sum, { usage }) => sum + (usage?.inputTokens ?? 0), 0)
      const own = ofKind(events, 'model_message').reduce((sum, { entry }) => sum + (entry.usage.inputTokens ?? 0), 0)
      expect(result.usage.inputTokens, `after ${wait} moments`).toBe(own + used)
      expect((await harness.replay(events)).usage).toEqual(result.usage)
      if (events.at(-2)?.kind === 'view_prepared') late += 1
    }
    expect(late).toBeGreaterThan(0)
  })

  test.each<[string, Model]>([
    [
      'is down',
      {
        ...{ provider: 'scripted', id: 'down', capabilities: {} },
        openSession: () => ({ turn: () => Promise.reject(new Error('Down.')) }),
      },
    ],
    [
      'is slow',
      {
        ...{ provider: 'scripted', id: 'slow', capabilities: {} },
        openSession: () => ({ turn: () => new Promise(() => undefined) }),
      },
    ],
    ['repeats a line', saying('again\n'.repeat(50))],
    ['repeats a word', saying('again '.repeat(400))],
    ['writes nothing', saying('')],
    ['writes ten times too much', saying(Array.from({ length: 8000 }, (_none, word) => `word${word}`).join(' '))],
  ])('XC-34 SB-138 the run continues with cleared results if the model %s', async (_name, model) => {
    const before = performance.now()
    const { asked, result, changes, prepared } = await run(model, 40)
    expect(result.text).toBe('Done.')
    expect(asked.sums.refused).toBe(0)
    expect(changes[0]?.changes[0]?.shown).toContain('This result was removed')
    expect(performance.now() - before).toBeLessThan(50_000)
    // Each part is tried twice, and a part that failed is tried again when it has doubled.
    if ('sums' in model) {
      const { requests, input } = (model as Windowed).sums
      expect(requests).toBeLessThanOrEqual(2 * (prepared.length + changes.length))
      expect(input).toBeLessThan(asked.sums.input / 4)
    }
  })

  /** It measures a time, which a busy machine may lengthen. */
  test(
    'XC-52 a request waits for observations no longer than `timeoutMs`, however many are missing',
    { retry: 2 },
    async () => {
      const waits: number[] = []
      const silent: Model = {
        ...{ provider: 'scripted', id: 'slow', capabilities: {} },
        openSession: () => ({ turn: () => new Promise(() => undefined) }),
      }
      const timeoutMs = 1000
      const policy = observe({ model: silent, timeoutMs, maxTokens: 500 })
      const watched = defineExtension({
        ...policy,
        forRun: async (extension) => {
          const members = (await policy.forRun?.(extension)) ?? {}
          return {
            ...members,
            view: async (context) => {
              const before = performance.now()
              const proposal = await members.view?.(context)
              waits.push(performance.now() - before)
              return proposal ?? null
            },
          }
        },
      })
      const asked = windowedModel({ window: 20_000, reply: lookingFor(30) })
      const look = tool('look', async () => {
        await new Promise((resolve) => setImmediate(resolve))
        return 'star '.repeat(300)
      })
      await harnessOf({ model: asked, tools: [look], use: [watched], limits }).run('Go.')
      const longest = Math.max(...waits)
      expect(longest).toBeGreaterThan(timeoutMs / 2)
      // One that waited once for each missing observation would take at least twice as long.
      expect(longest).toBeLessThan(timeoutMs * 2)
    },
  )

  test('XC-35 it can be replayed, and a run that was killed continues with its parts', async () => {
    const log = memoryLog()
    const { harness } = harnessWith(observing(), 60, { log })
    await harness.run('Count the stars.', { runId: 'run_1' })
    const events = await eventsOfRun(log, 'run_1')
    expect((await harness.replay(events)).text).toBe('Done.')
    const cut = events.findIndex(({ kind }) => kind === 'view_changed')
    const partial = memoryLog()
    await partial.append({ kind: 'run', id: 'run_1' }, events.slice(0, cut))
    const never: Model = {
      ...{ provider: 'scripted', id: 'down', capabilities: {} },
      openSession: () => ({ turn: () => Promise.reject(new Error('Down.')) }),
    }
    const rest = harnessWith(never, 0, { log: partial })
    await rest.harness.recover('run_1')
    expect(JSON.stringify(rest.asked.view)).toContain('· part 0 was counted')
  })

  test('XC-36 a run that ends waits for no observation', async () => {
    const slow: Model = {
      ...{ provider: 'scripted', id: 'slow', capabilities: {} },
      openSession: () => ({ turn: () => new Promise(() => undefined) }),
    }
    const asked = windowedModel({ window: 20_000, reply: lookingFor(8) })
    const look = tool('look', () => 'star '.repeat(600))
    const use = [observe({ model: slow, timeoutMs: 600_000 })]
    await harnessOf({ model: asked, tools: [look], use, limits }).run('Go.')
    expect(asked.sums.requests).toBe(9)
  })
})
