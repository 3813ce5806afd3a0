import { describe, expect, test } from 'vitest'
import { defineExtension, memoryLog } from 'thinharness'
import type { Extension, Model } from 'thinharness'
import { summarise } from 'thinharness/context'
import { eventsOf, harnessOf, ofKind, tool } from '../../harness/support.js'
import { eventsOfRun } from '../../support/collect.js'
import { lookingFor, windowedModel } from './windowed-model.js'
import type { Windowed } from './windowed-model.js'

const limits = { modelRequests: null, toolCalls: null }
const prices = { unknown: { inputPerMillion: 1, outputPerMillion: 1 } }

/** A model that writes these texts, then the last again. */
function writing(...texts: readonly string[]): Windowed {
  return windowedModel({
    window: 1_000_000,
    reply: (request) => [{ type: 'text', text: texts[Math.min(request, texts.length - 1)] ?? '' }],
  })
}

function harnessWith(use: Extension, turns = 40, more: object = {}) {
  const model = windowedModel({ window: 20_000, reply: lookingFor(turns) })
  const harness = harnessOf({ model, tools: [tool('look', () => 'star '.repeat(300))], use: [use], limits, ...more })
  return { model, harness }
}

async function run(use: Extension, turns?: number) {
  const { model, harness } = harnessWith(use, turns)
  const stream = harness.stream('Count the stars.', { runId: 'run_1', deltas: false })
  const events = await eventsOf(stream)
  return { model, result: await stream.result, changes: ofKind(events, 'view_changed') }
}

describe('summaries', () => {
  test('XC-19 a summary replaces all but the recent steps; it names the handle of its range', async () => {
    const writer = writing('The user wants the stars counted. So far: 12.')
    const { model, changes } = await run(summarise({ model: writer }))
    const [change] = changes
    expect(change).toMatchObject({ policy: 'summarise', changes: [{ from: 'e2' }] })
    expect(change?.changes).toHaveLength(1)
    const to = change?.changes[0]?.to ?? ''
    expect(change?.changes[0]?.shown).toBe(
      `[Summary of the conversation up to here, written to save space. recall({"handle":"run_1.e2-${to}"}) shows the originals.]\n\nThe user wants the stars counted. So far: 12.`,
    )
    expect(model.view[0]?.id).toBe('e1')
    expect(model.sums.refused).toBe(0)
    expect(JSON.stringify(writer.view)).toContain('result of look')
  })

  test('XC-20 a later summary is written from the earlier one, and replaces it', async () => {
    const writer = writing('First summary.', 'Second summary.')
    const { model, changes } = await run(summarise({ model: writer }), 80)
    expect(changes.length).toBeGreaterThan(1)
    expect(JSON.stringify(writer.view)).toContain('earlier summary')
    const shown = JSON.stringify(model.view)
    expect(shown.split('Second summary.')).toHaveLength(2)
    expect(shown).not.toContain('First summary.')
  })

  const failing: Model = {
    ...{ provider: 'scripted', id: 'down', capabilities: {} },
    openSession: () => ({ turn: () => Promise.reject(new Error('Down.')) }),
  }
  const silent: Model = {
    ...{ provider: 'scripted', id: 'slow', capabilities: {} },
    openSession: () => ({ turn: () => new Promise(() => undefined) }),
  }

  test.each<[string, Model]>([
    ['is down', failing],
    ['is slow', silent],
    ['writes nothing', writing('')],
    ['writes ten times too much', writing(Array.from({ length: 8000 }, (_none, word) => `word${word}`).join(' '))],
    ['repeats a line', writing('The user wants stars.\n'.repeat(40))],
    ['repeats a word', writing('stars '.repeat(400))],
  ])('XC-21 the run continues with cleared results if the model %s', async (_name, model) => {
    const before = performance.now()
    const { model: asked, result, changes } = await run(summarise({ model, timeoutMs: 40, maxTokens: 500 }))
    expect(result.text).toBe('Done.')
    expect(asked.sums.refused).toBe(0)
    expect(changes[0]?.changes[0]?.shown).toContain('This result was removed')
    expect(performance.now() - before).toBeLessThan(50_000)
    if ('sums' in model) expect((model as Windowed).sums.requests).toBeLessThanOrEqual(2 * changes.length)
  })

  test('XC-22 a text without sense is asked for once more', async () => {
    const writer = writing('', 'A summary.')
    const { changes } = await run(summarise({ model: writer }))
    expect(changes[0]?.changes[0]?.shown).toContain('A summary.')
  })

  test('XC-23 its tokens and cost are those of the run, by policy in `view_changed`', async () => {
    const writer = writing('A summary.')
    const { result, changes } = await run(summarise({ model: writer, prices }))
    const used = changes.reduce((sum, { usage }) => sum + (usage?.inputTokens ?? 0), 0)
    expect(used).toBeGreaterThan(500)
    expect(changes[0]?.cost).toBeGreaterThan(0)
    const own = result.transcript.reduce(
      (sum, entry) => sum + (entry.role === 'assistant' ? (entry.usage.inputTokens ?? 0) : 0),
      0,
    )
    expect(result.usage.inputTokens).toBe(own + used)
    expect(result.usage.modelRequests).toBe(41)
  })

  test('XC-24 it stays within the cost limit of the run: its maximum cost is reserved', async () => {
    const writer = writing('A summary.')
    const cheap = { ...limits, costUsd: 1 }
    const dear = { models: { 'scripted:windowed': { inputPerMillion: 0.01, outputPerMillion: 0.01 } } }
    const outOfReach = { unknown: { inputPerMillion: 100_000, outputPerMillion: 100_000 } }
    const costly = { ...writer, id: 'costly' }
    const { harness } = harnessWith(summarise({ model: costly, prices: outOfReach }), 40, {
      limits: cheap,
      prices: dear,
    })
    const result = await harness.run('Go.')
    expect(result.text).toBe('Done.')
    expect(writer.sums.requests).toBe(0)
    expect(result.usage.costUsd).toBeLessThan(1)
  })

  test('XC-25 replay, recovery and forks have the same view, byte for byte', async () => {
    const log = memoryLog()
    const sent: string[] = []
    const watching = (views: string[]): Extension =>
      defineExtension({
        name: 'watching',
        wrapModelCall: (call, next) => {
          views.push(JSON.stringify(call.transcript))
          return next(call)
        },
      })
    const { harness } = harnessWith(summarise({ model: writing('A summary.') }), 40, { log })
    await harness.run('Go.', { runId: 'run_1', use: [watching(sent)] })
    const events = await eventsOfRun(log, 'run_1')
    expect((await harness.replay(events)).text).toBe('Done.')
    for (const [index, { kind }] of events.entries()) {
      if (kind !== 'view_changed') continue
      const partial = memoryLog()
      await partial.append({ kind: 'run', id: 'run_1' }, events.slice(0, index + 1))
      const answered = events.slice(0, index).filter((event) => event.kind === 'model_message').length
      const model = windowedModel({ window: 20_000, reply: (request) => lookingFor(40)(request + answered) })
      const use = [summarise({ model: writing('Never asked.') })]
      const views: string[] = []
      const rest = harnessOf({ model, use, log: partial, tools: [tool('look', () => 'star')], limits })
      await rest.recover('run_1', { use: [watching(views)] })
      expect(views[0]).toBe(sent[answered])
      const forked: string[] = []
      await rest.fork(events, { afterTurn: answered + 1 }, { use: [watching(forked)] })
      expect(forked[0]?.startsWith(String(sent[answered]).slice(0, -1))).toBe(true)
    }
  })

  test('XC-26 a run that continues the conversation begins with its view', async () => {
    const log = memoryLog()
    const { harness } = harnessWith(summarise({ model: writing('A summary.') }), 30, { log })
    await harness.run('Go.', { runId: 'run_1' })
    const next = harnessWith(summarise({ model: writing('Unused.') }), 0, { log })
    await next.harness.run('And now?', { history: { runId: 'run_1' } })
    expect(JSON.stringify(next.model.view)).toContain('A summary.')
    expect(next.model.view.length).toBeLessThan(40)
  })
})
