import { describe, expect, test } from 'vitest'
import { Budget, defineExtension, HarnessError } from 'thinharness'
import { clearResults } from 'thinharness/context'
import { Sessions } from 'thinharness/session'
import { harnessOf, ofKind, told, tool } from '../../harness/support.js'
import { lookingFor, randomOf, windowedModel } from './windowed-model.js'
import type { WindowedOptions } from './windowed-model.js'

const limits = { modelRequests: null, toolCalls: null }

function run(options: WindowedOptions, { result, prompt = 'Go.' }: { result: string; prompt?: string }) {
  const model = windowedModel(options)
  const harness = harnessOf({ model, tools: [tool('look', () => result)], use: [clearResults()], limits })
  return { model, stream: harness.stream(prompt, { runId: 'run_1', deltas: false }) }
}

describe('a request that the provider refuses as too long', () => {
  test('XC-09 leads to a shorter view and a repeated request, reported once', async () => {
    const { model, stream } = run(
      { window: 8000, isKnown: false, reply: lookingFor(10) },
      { result: 'star '.repeat(800) },
    )
    const { events, thrown } = await told(stream)
    expect(thrown).toBeUndefined()
    expect((await stream.result).text).toBe('Done.')
    expect(model.sums.refused).toBeGreaterThan(0)
    const retries = ofKind(events, 'transport_retry')
    expect(retries).toHaveLength(model.sums.refused)
    expect(retries[0]).toMatchObject({ attempt: 1, delayMs: 0, status: 400, withdrawn: false })
    expect(ofKind(events, 'view_changed')).toHaveLength(model.sums.refused)
    expect(ofKind(events, 'model_request_started')).toHaveLength(11)
    expect((await stream.result).usage.modelRequests).toBe(11)
  })

  test('XC-10 is repeated at most three times, then it is `context_overflow`, which names the largest entries', async () => {
    const prompt = 'moon '.repeat(4000)
    const { model, stream } = run(
      { window: 3000, isKnown: false, reply: lookingFor(10) },
      { result: 'star '.repeat(300), prompt },
    )
    const { thrown } = await told(stream)
    expect(thrown).toBeInstanceOf(HarnessError)
    expect(thrown).toMatchObject({ code: 'context_overflow', status: 400, retryable: false })
    expect((thrown as Error).message).toContain('Largest entries: `e1` (message, 20000 characters)')
    expect(model.sums.refused).toBeLessThanOrEqual(4)
  })

  test('XC-10 names the largest entries without any policy too', async () => {
    const model = windowedModel({ window: 3000, reply: lookingFor(10) })
    const harness = harnessOf({ model, tools: [tool('look', () => 'star '.repeat(1000))], limits })
    await expect(harness.run('Go.')).rejects.toThrow(/Largest entries: `e\d` \(result of `look`, \d+ characters\), /)
  })

  test('XC-11 a policy that does not make it shorter is not asked again and again', async () => {
    let asked = 0
    const idle = defineExtension({
      name: 'idle',
      view: ({ refusals }) => {
        if (refusals > 0) asked += 1
        return null
      },
    })
    const model = windowedModel({ window: 1000, reply: lookingFor(3) })
    const harness = harnessOf({ model, tools: [tool('look', () => 'star '.repeat(1000))], use: [idle] })
    await expect(harness.run('Go.')).rejects.toMatchObject({ code: 'context_overflow' })
    expect([asked, model.sums.refused]).toEqual([1, 1])
  })

  test('XC-12 refused requests cost nothing', async () => {
    const budget = new Budget({ costUsd: 1 })
    const model = windowedModel({ window: 3000, reply: lookingFor(10) })
    const harness = harnessOf({
      ...{ model, budget, limits, tools: [tool('look', () => 'star '.repeat(1000))] },
      prices: { unknown: { inputPerMillion: 1, outputPerMillion: 1 } },
    })
    await expect(harness.run('Go.')).rejects.toMatchObject({ code: 'context_overflow' })
    expect(budget.spent).toBeLessThan(0.01)
  })
})

test('a chat of ids and hashes is shortened by what the provider counted in the run before: no request is refused', async () => {
  const random = randomOf(7)
  const hash = (): string => Array.from({ length: 40 }, () => Math.floor(random() * 16).toString(16)).join('')
  const said = (): string => Array.from({ length: 12 }, hash).join(' ')
  const model = windowedModel({ window: 8000, charsPerToken: 1.7, reply: () => [{ type: 'text', text: said() }] })
  await using sessions = new Sessions({ harness: harnessOf({ model, use: [clearResults()] }) })
  const chat = await sessions.open()
  for (let round = 0; round < 24; round += 1) await (await chat.send(said())).done
  expect([model.sums.refused, model.sums.requests]).toEqual([0, 24])
})

test('a chat of people who say much is shortened again and again: its oldest words are reachable by a handle', async () => {
  const random = randomOf(11)
  const hash = (): string => Array.from({ length: 40 }, () => Math.floor(random() * 16).toString(16)).join('')
  const said = (): string => Array.from({ length: 12 }, hash).join(' ')
  const model = windowedModel({ window: 8000, charsPerToken: 1.7, reply: () => [{ type: 'text', text: hash() }] })
  await using sessions = new Sessions({ harness: harnessOf({ model, use: [clearResults()] }) })
  const chat = await sessions.open()
  for (let round = 0; round < 90; round += 1) expect((await (await chat.send(said())).done).status).toBe('completed')
  expect(model.sums.refused).toBeLessThan(10)
})
