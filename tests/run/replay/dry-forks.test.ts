import { describe, expect, test } from 'vitest'
import { defineTool, Harness, memoryLog } from 'thinharness'
import type { DurableEvent, HarnessOptions, LogStore } from 'thinharness'
import { codeExecution, webSearch } from 'thinharness/providers'
import { ScriptedModel } from 'thinharness/testing'

/** Whatever is paid for real. */
function shop(log: LogStore): { readonly paid: unknown[]; readonly harness: (more?: HarnessOptions) => Harness } {
  const paid: unknown[] = []
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: { type: 'object', properties: { amount: { type: 'integer' } } },
    requiresApproval: ({ amount }) => amount === 2,
    handler: ({ amount }) => {
      paid.push(amount)
      return `paid ${JSON.stringify(amount)}`
    },
  })
  const answer = ({ transcript }: { readonly transcript: readonly { readonly role: string }[] }) => {
    const results = transcript.filter(({ role }) => role === 'tool').length
    return results < 3 ? { calls: [{ name: 'pay', arguments: { amount: results + 1 } }] } : 'Done.'
  }
  return {
    paid,
    harness: (more = {}) => new Harness({ model: new ScriptedModel().always(answer), tools: [pay], log, ...more }),
  }
}

async function eventsOf(log: LogStore, id: string): Promise<DurableEvent[]> {
  const events: DurableEvent[] = []
  for await (const event of log.read({ kind: 'run', id })) events.push(event)
  return events
}

const FORKS = {
  dry: { effects: 'dry' },
  recorded: { effects: 'recorded' },
  mocks: { mocks: { pay: () => 'said so' } },
} as const

describe.each(Object.entries(FORKS))('a fork with %s effects', (_name, effects) => {
  test('pays nothing when it goes on after a person has allowed a call', async () => {
    const log = memoryLog()
    const { paid, harness } = shop(log)
    await using first = harness()
    const begun = await first.run('Go.', { runId: 'run_a' })
    const [item] = begun.status === 'paused' ? begun.pending : []
    await first.resume('run_a', [{ callId: item?.callId ?? '', approved: true }])
    expect(paid).toEqual([1, 2, 3])
    const fork = await first.fork(
      await eventsOf(log, 'run_a'),
      { afterTurn: 0, prompt: 'Go.' },
      { runId: 'run_b', ...effects },
    )
    const [asked] = fork.status === 'paused' ? fork.pending : []
    const done = await first.resume('run_b', [{ callId: asked?.callId ?? '', approved: true }])
    expect(done.text).toBe('Done.')
    expect(paid).toEqual([1, 2, 3])
  })

  test('pays nothing when another process recovers or retries it', async () => {
    const log = memoryLog()
    const { paid, harness } = shop(log)
    await using first = harness()
    await first.run('Go.', { runId: 'run_a' })
    expect(paid).toEqual([1])
    let fail = true
    const model = new ScriptedModel().always(({ transcript }) => {
      const results = transcript.filter(({ role }) => role === 'tool').length
      if (results === 1 && fail) throw new Error('The process ends here.')
      return results < 2 ? { calls: [{ name: 'pay', arguments: { amount: 5 + results } }] } : 'Done.'
    })
    await using second = harness({ model })
    const events = await eventsOf(log, 'run_a')
    await expect(second.fork(events, { afterTurn: 0, prompt: 'Go.' }, { runId: 'run_b', ...effects })).rejects.toThrow()
    fail = false
    const done = await second.retry('run_b')
    expect(done.text).toBe('Done.')
    expect(paid).toEqual([1])
  })
})

test('a fork without effects has no tool that its provider executes, unless that only reads', async () => {
  const log = memoryLog()
  const offered: string[][] = []
  const model = new ScriptedModel({ capabilities: { hostedTools: ['web_search', 'code_execution'] } }).always(
    ({ constants }) => {
      offered.push(constants.tools.map(({ name }) => name))
      return 'Done.'
    },
  )
  await using harness = new Harness({ model, tools: [webSearch(), codeExecution()], log })
  await harness.run('Go.', { runId: 'run_a' })
  const events = await eventsOf(log, 'run_a')
  await harness.fork(events, { afterTurn: 0, prompt: 'Go.' }, { effects: 'dry' })
  await harness.fork(events, { afterTurn: 0, prompt: 'Go.' }, { effects: 'recorded' })
  expect(offered).toEqual([['web_search', 'code_execution'], ['web_search'], ['web_search']])
})

test('a fork with live effects pays when it goes on', async () => {
  const log = memoryLog()
  const { paid, harness } = shop(log)
  await using first = harness()
  await first.run('Go.', { runId: 'run_a' })
  const fork = await first.fork(await eventsOf(log, 'run_a'), { afterTurn: 0, prompt: 'Go.' }, { runId: 'run_b' })
  const [asked] = fork.status === 'paused' ? fork.pending : []
  await first.resume('run_b', [{ callId: asked?.callId ?? '', approved: true }])
  expect(paid).toEqual([1, 1, 2, 3])
})
