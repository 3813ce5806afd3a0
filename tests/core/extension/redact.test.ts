import { expect, test } from 'vitest'
import { defineExtension, memoryLog } from 'thinharness'
import type { RunEvent, StreamEvent } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, harnessOf, tool, told } from '../../harness/support.js'
import { delegateTool, playing } from '../../run/children/children-support.js'
import { collect, eventsOfRun } from '../../support/collect.js'

const SECRET = 'hunter2'

const hiding = defineExtension({
  name: 'hiding',
  redact: (event) => JSON.parse(JSON.stringify(event).replaceAll(SECRET, '[hidden]')) as StreamEvent,
})

test('XT-22 readers and traces get redacted events; the log, the model and the result do not', async () => {
  const log = memoryLog()
  const traced: RunEvent[] = []
  const tracing = [{ startRun: () => ({ event: (event: RunEvent) => void traced.push(event) }) }]
  const model = new ScriptedModel().calls('login', {}).says(`It is ${SECRET}.`)
  const harness = harnessOf({ model, tools: [tool('login', () => SECRET)], use: [hiding], log, tracing })
  const stream = harness.stream('Go.', { runId: 'run_1', metadata: { redacted: true } })
  const events = await eventsOf(stream)
  expect(JSON.stringify([events, traced])).not.toContain(SECRET)
  const last = events.at(-1)
  expect(last?.kind === 'run_completed' && last.result.text).toBe('It is [hidden].')
  expect((await stream.result).text).toBe(`It is ${SECRET}.`)
  expect(JSON.stringify(model.requests.at(-1)?.entries)).toContain(SECRET)
  const stored = await eventsOfRun(log, 'run_1')
  expect(JSON.stringify(stored)).toContain(SECRET)
})

test('XT-23 events of child runs are redacted too', async () => {
  const model = playing({ go: [['delegate'], 'Done.'], a: [`${SECRET}.`] })
  const harness = harnessOf({ model, tools: [delegateTool('delegate', { a: [] })], use: [hiding] })
  const events = await eventsOf(harness.stream('go'))
  expect(JSON.stringify(events)).not.toContain(SECRET)
  expect(JSON.stringify(events)).toContain('[hidden]')
})

test('XT-24 a redaction that fails ends the run, and the event is not shown', async () => {
  const use = [
    defineExtension({
      name: 'broken',
      redact: (event) => {
        if (JSON.stringify(event).includes(SECRET)) throw new Error(SECRET)
        return event
      },
    }),
  ]
  const model = new ScriptedModel().calls('login', {}).says('Done.')
  const harness = harnessOf({ model, tools: [tool('login', () => SECRET)], use })
  const { events } = await told(harness.stream('Go.', { metadata: { redacted: true } }))
  expect(JSON.stringify(events)).not.toContain(SECRET)
  expect(events.at(-1)).toMatchObject({ kind: 'run_failed', code: 'hook_failed' })
  const again = harnessOf({ model: new ScriptedModel().says(SECRET), use })
  expect((await failureOf(again.run('Go.', { metadata: { redacted: true } }))).code).toBe('hook_failed')
})

test('XT-25 events that are followed are redacted', async () => {
  const model = new ScriptedModel().says(`It is ${SECRET}.`)
  const harness = harnessOf({ model, use: [hiding] })
  const { runId } = await harness.run('Go.', { metadata: { redacted: true } })
  const events = await collect(harness.follow(runId))
  expect(JSON.stringify(events)).not.toContain(SECRET)
  expect(events.at(-1)?.kind).toBe('run_completed')
})
