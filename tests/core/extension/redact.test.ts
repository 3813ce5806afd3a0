import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineExtension, memoryLog } from 'thinharness'
import type { Model, ModelDelta, RunEvent, StreamEvent } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, harnessOf, ofKind, tool, told } from '../../harness/support.js'
import { delegateTool, playing } from '../../run/children/children-support.js'
import { collect, eventsOfRun } from '../../support/collect.js'

const SECRET = 'hunter2'

const hiding = defineExtension({
  name: 'hiding',
  redact: (event) => JSON.parse(JSON.stringify(event).replaceAll(SECRET, '[hidden]')) as StreamEvent,
})

test('XT-22 readers, traces and results are redacted; the log and the model are not', async () => {
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
  const result = await stream.result
  expect([result.text, result.output]).toEqual(['It is [hidden].', 'It is [hidden].'])
  expect(ofKind(events, 'model_message').at(-1)?.text).toBe('It is [hidden].')
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

const masking = defineExtension({
  name: 'masking',
  redact: (event) => JSON.parse(JSON.stringify(event).replaceAll(/sk-[A-Z0-9]{4,}/g, '[key]')) as StreamEvent,
})

/** The same model, whose replies arrive character by character. */
function byCharacter(model: ScriptedModel): Model {
  return {
    provider: 'scripted',
    capabilities: model.capabilities,
    id: 'scripted-1',
    openSession() {
      const session = model.openSession()
      return {
        turn(transcript, constants, { onDelta, ...options }) {
          const pieces = (delta: ModelDelta): void => {
            for (const text of delta.text) onDelta?.({ ...delta, text })
          }
          return session.turn(transcript, constants, { ...options, ...(onDelta && { onDelta: pieces }) })
        },
      }
    },
  }
}

test('a key that arrives in pieces is not shown, in a text, in thoughts and in arguments', async () => {
  const words = 'My key is sk-SECRET1.'
  const model = new ScriptedModel().calls('look', { words }, { text: words, reasoning: words }).says(words)
  const harness = harnessOf({ model: byCharacter(model), tools: [tool('look')], use: [masking] })
  const stream = harness.stream('Go.', { metadata: { redacted: true } })
  const events = await eventsOf(stream)
  const pieces = events.flatMap((event) => ('text' in event && !event.durable ? [[event.kind, event.text]] : []))
  const shown = 'My key is [key].'
  expect(pieces).toEqual([
    ['reasoning_delta', shown],
    ['text_delta', shown],
    ['tool_input_delta', JSON.stringify({ words: shown })],
    ['text_delta', shown],
  ])
  expect((await stream.result).text).toBe(shown)
})

test('a structured answer is redacted in its members, and not shown while it arrives', async () => {
  const model = new ScriptedModel().answers({ key: 'sk-SECRET1', others: ['sk-SECRET2'] })
  const outputType = z.object({ key: z.string(), others: z.array(z.string()) })
  const stream = harnessOf({ model: byCharacter(model), outputType, use: [masking] }).stream('Go.')
  const events = await eventsOf(stream)
  expect(JSON.stringify(events)).not.toContain('sk-')
  expect((await stream.result).output).toEqual({ key: '[key]', others: ['[key]'] })
})

test('a run that started another one reads what that one said', async () => {
  const model = playing({ go: [['delegate'], 'Done.'], a: [`${SECRET}.`] })
  const harness = harnessOf({ model, tools: [delegateTool('delegate', { a: [] })], use: [hiding] })
  await harness.run('go', { metadata: { redacted: true } })
  expect(JSON.stringify(model.requests.at(-1)?.entries)).toContain(SECRET)
})
