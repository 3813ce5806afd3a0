import { expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { History, TranscriptEntry } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { failureOf, harnessOf, tool } from './support.js'

/** A run of two replies, the first of which calls a tool; its log has it as `run_1`. */
async function firstRun() {
  const model = new ScriptedModel().calls('look').says('It is red.').says('Go on.')
  const log = memoryLog()
  const harness = harnessOf({ model, tools: [tool('look')], log })
  const first = await harness.run('Which color?', { runId: 'run_1' })
  return { harness, first, log }
}

const roles = (transcript: readonly TranscriptEntry[]): string => transcript.map(({ role }) => role).join(' ')

test.each<[string, (first: Awaited<ReturnType<typeof firstRun>>['first']) => History, string]>([
  ['entries', ({ transcript }) => transcript, 'user assistant tool assistant user assistant'],
  ['some of its entries', ({ transcript }) => transcript.slice(3), 'assistant user assistant'],
  ['a state', ({ resumeState }) => resumeState ?? [], 'user assistant tool assistant user assistant'],
  ['a run of the log', () => ({ runId: 'run_1' }), 'user assistant tool assistant user assistant'],
  ['a run up to its prompt', () => ({ runId: 'run_1', after: 'e1' }), 'user user assistant'],
  ['a run up to a call', () => ({ runId: 'run_1', after: 'e2' }), 'user assistant tool user assistant'],
  ['a run up to a result', () => ({ runId: 'run_1', after: 'e3' }), 'user assistant tool user assistant'],
])(
  'CV-01 a conversation is continued by its entries, a state or a reference (%s)',
  async (_name, historyOf, expected) => {
    const { harness, first } = await firstRun()
    const second = await harness.run('And?', { history: historyOf(first) })
    expect(roles(second.transcript)).toBe(expected)
    expect(second.transcript.map(({ id }) => id)).toEqual(second.transcript.map((_entry, index) => `e${index + 1}`))
  },
)

test('CV-02 no history is a new conversation', async () => {
  const { harness } = await firstRun()
  for (const history of [undefined, null, []]) {
    const model = new ScriptedModel().says('Hello.')
    expect(roles((await harness.run('Hi.', { history, model })).transcript)).toBe('user assistant')
  }
})

test.each<[string, unknown, string, RegExp]>([
  ['an unknown run', { runId: 'run_9' }, 'run_not_found', /no run `run_9`/],
  ['an unknown entry', { runId: 'run_1', after: 'e9' }, 'invalid_state', /`run_1` has no entry `e9`/],
  ['an entry of another type', { runId: 'run_1', after: 3 }, 'invalid_state', /`after` must be the id of an entry/],
  ['entries of another shape', [{ role: 'user', content: 'Hi.' }], 'invalid_state', /^history: Expected `\[0\]/],
  ['a string', 'run_1', 'invalid_state', /^history: /],
])('CV-03 an invalid history is rejected (%s)', async (_name, history, code, message) => {
  const { harness } = await firstRun()
  const failed = await failureOf(harness.run('And?', { history: history as History }))
  expect(failed.code).toBe(code)
  expect(failed.message).toMatch(message)
})

test('CV-04 entries with an open call are rejected', async () => {
  const { harness, first } = await firstRun()
  const failed = await failureOf(harness.run('And?', { history: first.transcript.slice(0, 2) }))
  expect(failed.message).toBe('history: call `call_1` has no result, or is there twice.')
})

test('CV-05 a run that is waiting for answers cannot be continued by its id', async () => {
  const log = memoryLog()
  const model = new ScriptedModel().calls('pay')
  const harness = harnessOf({ model, tools: [tool('pay', undefined, { requiresApproval: true })], log })
  await harness.run('Pay.', { runId: 'run_p' })
  const failed = await failureOf(harness.run('And?', { history: { runId: 'run_p' } }))
  expect(failed.message).toBe('history: run `run_p` is waiting for answers: call `harness.resume` with them instead.')
})

test('CV-06 a message array as a prompt is rejected with a hint at `history`', async () => {
  const { harness } = await firstRun()
  const messages = [{ role: 'user', content: 'Hi.' }] as unknown as string
  expect((await failureOf(harness.run(messages))).message).toMatch(
    /got a list\. Pass an earlier conversation as `history`/,
  )
})
