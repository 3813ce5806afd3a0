import { describe, expect, test } from 'vitest'
import { defineExtension } from 'thinharness'
import type { Extension, Model } from 'thinharness'
import { clearResults, observe, summarise } from 'thinharness/context'
import { eventsOf, harnessOf, ofKind, tool } from '../../harness/support.js'
import { lookingFor, windowedModel } from './windowed-model.js'
import type { Windowed } from './windowed-model.js'

const limits = { modelRequests: null, toolCalls: null }

function writer(window: number, isKnown: boolean, charsPerToken = 3.2): Windowed {
  return windowedModel({ window, isKnown, charsPerToken, reply: () => [{ type: 'text', text: 'Stars were counted.' }] })
}

async function longRun(use: Extension, text: string) {
  const model = windowedModel({ window: 100_000, charsPerToken: 3, reply: lookingFor(60) })
  const harness = harnessOf({ model, tools: [tool('look', () => text)], use: [use], limits })
  const stream = harness.stream('Count the stars.', { runId: 'run_1', deltas: false })
  const events = await eventsOf(stream)
  await stream.result
  return { model, changes: ofKind(events, 'view_changed'), warnings: ofKind(events, 'warning') }
}

const policies: [string, (model: Model) => Extension][] = [
  ['summarise', (model) => summarise({ model })],
  ['observe', (model) => observe({ model })],
]

describe.each(policies)('the writer of %s', (name, policy) => {
  test('gets no more than its window, whatever the script', async () => {
    for (const text of ['star '.repeat(4_000), '星'.repeat(6_000)]) {
      const small = writer(32_000, true, text.startsWith('s') ? 3.2 : 1.2)
      const { changes, warnings } = await longRun(policy(small), text)
      expect(small.sums.refused).toBe(0)
      expect(JSON.stringify(changes)).toContain('Stars were counted.')
      expect(warnings).toEqual([])
    }
  })

  test('gets half as much after a refusal, if its window is unknown', async () => {
    const unknown = writer(8_000, false)
    const { changes, warnings } = await longRun(policy(unknown), 'star '.repeat(4_000))
    if (name === 'summarise') expect(unknown.sums.refused).toBeGreaterThan(0)
    expect(unknown.sums.refused).toBeLessThanOrEqual(3)
    expect(JSON.stringify(changes)).toContain('Stars were counted.')
    expect(warnings).toEqual([])
  })

  test('that writes nothing is named in a warning, and old results are cleared', async () => {
    const silent = windowedModel({ window: 100_000, reply: () => [{ type: 'text', text: ' ' }] })
    const { changes, warnings } = await longRun(policy(silent), 'star '.repeat(4_000))
    expect(JSON.stringify(changes)).toContain('removed to save space')
    expect(warnings[0]?.message).toContain(`\`${name}\`: \`scripted:windowed\` wrote nothing that can be used`)
  })
})

test('the latest notice of each name is in each request, also in the first after a change of the view', async () => {
  const tasks = defineExtension({ name: 'open', notices: () => [{ name: 'tasks', text: 'Open: count the stars.' }] })
  const model = windowedModel({ window: 6_000, reply: lookingFor(120) })
  const missing: number[] = []
  let [view, requests] = [model.view, 0]
  Object.defineProperty(model, 'view', {
    get: () => view,
    set: (next: typeof view) => {
      view = next
      requests += 1
      if (!JSON.stringify(next).includes('Open: count the stars.')) missing.push(requests)
    },
  })
  const harness = harnessOf({
    model,
    tools: [tool('look', () => 'star '.repeat(100))],
    use: [tasks, clearResults()],
    limits,
  })

  await harness.run('Count the stars.')

  expect(requests).toBeGreaterThan(100)
  expect(missing).toEqual([])
})
