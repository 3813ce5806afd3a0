import { expect, onTestFinished, test } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { LogStore } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { createHub } from 'thinharness/ui'
import type { AnyRunEvent } from 'thinharness/ui'
import { harnessOf, tool } from '../../harness/support.js'
import { gate } from '../../session/support.js'
import { collect } from '../../support/collect.js'
import { temporaryFolder } from '../../support/folder.js'

/** A run whose reply waits in its middle until `release`. */
function halfReply(log: LogStore = memoryLog()) {
  const { opened, open: release } = gate()
  const { opened: reached, open: reach } = gate()
  const model = new ScriptedModel().replies(async (request) => {
    request.options.onDelta?.({ kind: 'text_delta', text: 'One ' })
    request.options.onDelta?.({ kind: 'text_delta', text: 'two ' })
    reach()
    await opened
    return 'One two three.'
  })
  const harness = harnessOf({ model, log })
  onTestFinished(() => harness.close())
  const hub = createHub({ log })
  const begin = (): Promise<void> => hub.start(harness.stream('Count.', { runId: 'r1' }))
  return { log, hub, begin, release, reached, harness }
}

const kinds = (events: readonly AnyRunEvent[]): string[] => events.map(({ kind }) => kind)
const textOf = (events: readonly AnyRunEvent[]): string =>
  events.map((event) => (event.kind === 'text_delta' ? event.text : '')).join('')

test('SS-01 SS-02 SS-03 a hub reads a run to its end without a reader; a later follower gets the stored events', async () => {
  const { hub, begin, release, harness } = halfReply()
  await begin()
  release()
  while (hub.isLive('r1')) await new Promise((resolve) => setImmediate(resolve))
  const events = await collect(hub.follow('r1'))
  expect(kinds(events)).toEqual(['run_started', 'model_request_started', 'model_message', 'run_completed'])
  expect(kinds(await collect(hub.follow('r1', { after: 3 })))).toEqual(['run_completed'])
  expect(await collect(hub.follow('r1', { after: 4 }))).toEqual([])
  await expect(collect(hub.follow('r2'))).rejects.toMatchObject({ code: 'run_not_found' })
  await harness.close()
})

test('SS-05 SS-06 SS-10 a reader in the middle of a reply gets each character once, in the events that all readers share', async () => {
  const { hub, begin, release, reached } = halfReply()
  await begin()
  await reached
  const first = collect(hub.follow('r1'))
  const second = collect(hub.follow('r1', { after: 2 }))
  const without = collect(hub.follow('r1', { deltas: false }))
  await new Promise((resolve) => setImmediate(resolve))
  release()
  const [all, rest] = [await first, await second]
  // The scripted model streams its reply as well.
  expect(textOf(all)).toBe('One two One two three.')
  expect(textOf(rest)).toBe(textOf(all))
  expect(kinds(await without)).toEqual(['run_started', 'model_request_started', 'model_message', 'run_completed'])
  expect(all.at(-1)).toBe(rest.at(-1))
})

test('SS-04 following ends at a pause, and continues with the cursor', async () => {
  const log = memoryLog()
  const model = new ScriptedModel().calls('pay').says('Paid.')
  const harness = harnessOf({ model, tools: [tool('pay', () => 'paid', { requiresApproval: true })], log })
  const hub = createHub({ log })
  await hub.start(harness.stream('Pay.', { runId: 'r1' }))
  const until = await collect(hub.follow('r1'))
  expect(until.at(-1)).toMatchObject({ kind: 'run_completed', pending: ['call_1'] })
  const pause = until.at(-1)?.seq ?? 0
  await hub.start(harness.streamResume('r1', [{ callId: 'call_1', approved: true }]))
  const rest = await collect(hub.follow('r1', { after: pause, beyond: pause }))
  expect(kinds(rest)[0]).toBe('run_started')
  expect(rest.at(-1)).toMatchObject({ kind: 'run_completed', pending: [] })
})

test('RQ-13 a stretch that is refused rejects, and its readers receive nothing of it', async () => {
  const log = memoryLog()
  const model = new ScriptedModel().calls('pay').says('Paid.')
  const harness = harnessOf({ model, tools: [tool('pay', () => 'paid', { requiresApproval: true })], log })
  const hub = createHub({ log })
  await harness.run('Pay.', { runId: 'r1' })
  await expect(hub.start(harness.streamResume('r1', [{ callId: 'other', approved: true }]))).rejects.toMatchObject({
    code: 'invalid_answer',
  })
  expect((await collect(hub.follow('r1'))).at(-1)).toMatchObject({ kind: 'run_completed' })
})

test('CO-05 SS-08 SS-09 a run of another process is followed by its log; one whose owner has left it ends without an end', async () => {
  const folder = temporaryFolder()
  const { harness, begin, reached, release } = halfReply(fileLog(folder))
  await begin()
  await reached
  const elsewhere = createHub({ log: fileLog(folder) })
  expect(elsewhere.isLive('r1')).toBe(false)
  const events = collect(elsewhere.follow('r1'))
  await new Promise((resolve) => setImmediate(resolve))
  const closing = harness.close({ runs: 'leave', timeoutMs: 1 })
  release()
  await closing
  expect(kinds(await events)).toEqual(['run_started', 'model_request_started'])
})

test('CO-04 a hub cancels a run that it has started; its readers get the end', async () => {
  const { hub, begin, reached, release } = halfReply()
  await begin()
  await reached
  const events = collect(hub.follow('r1'))
  await new Promise((resolve) => setImmediate(resolve))
  const cancelled = hub.cancel('r1')
  release()
  expect(await cancelled).toBe(true)
  expect((await events).at(-1)).toMatchObject({ kind: 'run_failed', stopReason: 'cancelled' })
  expect(await hub.cancel('r1')).toBe(false)
})

test('XL-04 XL-12 SS-24 a reader that never reads holds nothing up, and gets the rest from the log when too much waits', async () => {
  const log = memoryLog()
  const model = new ScriptedModel()
  for (let turn = 0; turn < 40; turn++) model.calls('look')
  model.says('Done.')
  const harness = harnessOf({ model, tools: [tool('look', () => 'x'.repeat(5000))], log })
  onTestFinished(() => harness.close())
  const hub = createHub({ log, maxWaitingBytes: 20_000 })
  await hub.start(harness.stream('Go.', { runId: 'r1' }))
  const slow = hub.batches('r1')
  const first = await slow.next()
  expect(first.done).toBe(false)
  while (hub.isLive('r1')) await new Promise((resolve) => setImmediate(resolve))
  const seen = [...(first.value ?? [])]
  for (let next = await slow.next(); next.done !== true; next = await slow.next()) seen.push(...next.value)
  expect(seen.filter(({ durable }) => durable)).toEqual(await collect(hub.follow('r1')))
  expect(seen.at(-1)).toMatchObject({ kind: 'run_completed' })
})
