import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineExtension, HarnessError, inputPort, memoryLog } from 'thinharness'
import { sqliteLog } from 'thinharness/store/sqlite'
import type { AssistantEntry, InputPort, Model, RunEvent } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { collect } from '../../support/collect.js'
import { ask } from '../../run/children/children-support.js'
import { stored } from '../../run/resume/pause-support.js'
import { failureOf, harnessOf, ofKind, tool } from '../../harness/support.js'

/** Tries to change every object that it can reach. */
function deface(value: unknown, seen = new Set<unknown>()): void {
  if (typeof value !== 'object' || value === null || seen.has(value)) return
  seen.add(value)
  for (const [key, member] of Object.entries(value)) {
    deface(member, seen)
    if (typeof member === 'string') expect(() => Object.assign(value, { [key]: 'defaced' })).toThrow(TypeError)
  }
}

test('a reader of a stream can change neither an event nor a request', async () => {
  const model = new ScriptedModel()
    .calls('look', { q: 'x' }, { text: 'I look.' })
    .calls('look', { q: 'y' })
    .says('Done.')
  const log = memoryLog()
  const look = tool('look', () => ({ rows: [{ name: 'Ann' }] }))
  const stream = harnessOf({ model, tools: [look], log }).stream('Go.', { runId: 'run_f', deltas: false })
  const events: RunEvent[] = []
  for await (const event of stream) {
    deface(event)
    events.push(event)
  }
  expect(ofKind(events, 'tool_call_completed')[0]?.value).toEqual({ rows: [{ name: 'Ann' }] })
  expect(JSON.stringify(model.heard)).not.toContain('defaced')
  expect(JSON.stringify((await stream.result).transcript)).not.toContain('defaced')
})

test("a handler's value and a model's turn stay their own", async () => {
  const value = { n: 1 }
  const parts: AssistantEntry['parts'] = [{ type: 'text', text: 'Done.' }]
  const model = new ScriptedModel().calls('look').says('Done.')
  const look = tool('look', () => value)
  for await (const event of harnessOf({ model, tools: [look] }).stream('Go.'))
    if (event.kind === 'tool_call_completed') expect(Object.isFrozen(event.value)).toBe(true)
  value.n = 2
  expect(value.n).toBe(2)
  const own = modelOf({ role: 'assistant', parts, provider: 'p', model: 'm', finishReason: 'stop', usage: {} })
  await harnessOf({ model: own }).run('Go.')
  expect([parts, ...parts].map((each) => Object.isFrozen(each))).toEqual([false, false])
})

/** A custom model that gives the same turn each time. */
function modelOf(entry: unknown): Model {
  const session = { turn: () => Promise.resolve({ entry }) }
  return { provider: 'p', id: 'm', capabilities: {}, openSession: () => session } as unknown as Model
}

const ENTRY = { role: 'assistant', parts: [], provider: 'p', model: 'm', finishReason: 'stop', usage: {} }

test.each<[string, unknown, RegExp]>([
  ['another role', { ...ENTRY, role: 'user' }, /`entry.role`/],
  ['parts that are text', { ...ENTRY, parts: 'Done.' }, /`entry.parts` must be a list/],
  ['a part without a type', { ...ENTRY, parts: [{}] }, /`entry.parts\[0\].type`/],
  ['a call without arguments', { ...ENTRY, parts: [{ type: 'tool_call', callId: 'c', name: 'x' }] }, /\.arguments`/],
  ['no usage', { ...ENTRY, usage: undefined }, /`entry.usage`/],
])('a custom model that returns %s fails the run with a word about it', async (_name, entry, message) => {
  const failed = await failureOf(harnessOf({ model: modelOf(entry) }).run('Go.'))
  expect(failed).toBeInstanceOf(HarnessError)
  expect(failed.code).toBe('provider_error')
  expect(failed.message).toMatch(message)
  expect(failed.message).toContain('`p:m`')
})

test('notices, views, policies, wraps and hooks cannot change what a run sends, stores or returns', async () => {
  const tried: string[] = []
  const deny = (who: string, change: () => unknown): void => {
    tried.push(who)
    expect(change, who).toThrow(TypeError)
  }
  const changes = (who: string, shown: { readonly transcript: readonly unknown[]; readonly usage?: object }): void => {
    const [entry] = shown.transcript as { content: { text: string }[] }[]
    deny(who, () => (entry!.content[0]!.text = 'defaced'))
    deny(who, () => (shown.transcript as unknown[]).push({ role: 'user', content: 'defaced' }))
    deny(who, () => Object.assign(shown.transcript, { length: 0 }))
    if (shown.usage !== undefined) deny(who, () => Object.assign(shown.usage!, { modelRequests: 99 }))
    for (const each of shown.transcript as { content: object }[])
      if (Array.isArray(each.content)) deny(who, () => (each.content = []))
  }
  const extension = defineExtension({
    name: 'vandal',
    notices: (context) => (changes('notices', context), [{ name: 'hello', text: 'Hello.' }]),
    view: (context) => (changes('view', context), changes('shown view', { transcript: context.view }), null),
    policy: (_call, _spec, context) => (changes('policy', context), null),
    wrapModelCall: (call, next) => (changes('wrap', call), next(call)),
    hooks: [
      {
        event: 'run_end',
        handler: ({ result }) => {
          deny('run_end', () => Object.assign(result!, { text: 'defaced' }))
          deny('run_end', () => Object.assign(result!.output as object, { answer: 'defaced' }))
          deny('run_end', () => Object.assign(result!.toolCallRecords[0]!, { output: 'defaced' }))
          deny('run_end', () => Object.assign(result!.usage, { modelRequests: 99 }))
        },
      },
    ],
  })
  const model = new ScriptedModel().calls('look').replies({ text: '{"answer":"Done."}' })
  const log = memoryLog()
  const harness = harnessOf({
    ...{ model, tools: [tool('look')], use: [extension], log },
    ...{ outputType: z.object({ answer: z.string() }), outputMode: 'prompted' as const },
  })
  const result = await harness.run('Go.', { runId: 'run_v' })
  expect(result.output).toEqual({ answer: 'Done.' })
  expect(new Set(tried)).toEqual(new Set(['notices', 'view', 'shown view', 'policy', 'wrap', 'run_end']))
  expect(JSON.stringify([model.heard, result, await collect(log.read({ kind: 'run', id: 'run_v' }))])).not.toContain(
    'defaced',
  )
  expect(result.usage.modelRequests).toBe(2)
  // The caller's own is the caller's own.
  expect(Object.assign(result.output, { answer: 'Mine.' })).toEqual({ answer: 'Mine.' })
})

/** Notes the messages to a model that somebody could still change. */
function noting(model: ScriptedModel, open: unknown[]): Model {
  return {
    ...{ provider: model.provider, id: model.id, capabilities: model.capabilities },
    openSession() {
      const session = model.openSession()
      const note = (value: unknown, of: unknown): void => {
        if (typeof value !== 'object' || value === null) return
        if (!Object.isFrozen(value)) open.push(of)
        for (const member of Object.values(value)) note(member, of)
      }
      return {
        turn(transcript, constants, options) {
          for (const entry of transcript) note(entry, entry)
          return session.turn(transcript, constants, options)
        },
      }
    },
  }
}

function inputWith(text: string): InputPort {
  const input = inputPort()
  void input.send([{ type: 'text', text }])
  return input
}

test('nobody can change a message to the model once it is made: prompts, results, steering, notices, histories and views', async () => {
  const open: unknown[] = []
  await using log = sqliteLog(':memory:')
  const shorten = defineExtension({
    name: 'shorten',
    notices: () => [{ name: 'hello', text: 'Hello.' }],
    view: ({ transcript, generation, view }) =>
      generation > 0 || view.length < 4
        ? null
        : { changes: [{ from: transcript[0]!.id, to: transcript[1]!.id, shown: [{ type: 'text', text: 'Short.' }] }] },
  })
  const harness = (model: ScriptedModel) =>
    harnessOf({ model: noting(model, open), tools: [ask, tool('look', () => ({ n: 1 }))], use: [shorten], log })
  const first = await harness(new ScriptedModel().calls('look').calls('look').says('Done.')).run(
    [{ type: 'text', text: 'Go.' }],
    { input: inputWith('Also this.'), runId: 'run_1' },
  )
  expect(ofKind(await collect(log.read({ kind: 'run', id: 'run_1' })), 'view_changed')).toHaveLength(1)
  await harness(new ScriptedModel().says('Done.')).run('On.', { history: { runId: 'run_1' } })
  const asking = new ScriptedModel().calls('ask').says('Done.')
  const paused = await harness(asking).run('Ask.', { history: { runId: 'run_1' }, input: inputWith('And this.') })
  expect(paused.status).toBe('paused')
  const answers = paused.pending.map(({ callId }) => ({ callId, answer: 'that' }))
  await harness(new ScriptedModel().says('Done.')).resumeRun(paused.runId, answers)
  const state = stored(paused)
  await harness(new ScriptedModel().says('Done.')).resume(state, answers, { log: memoryLog() })
  const plain = JSON.parse(JSON.stringify(first.transcript)) as typeof first.transcript
  await harness(new ScriptedModel().says('Done.')).run('On.', { history: plain })
  expect(open).toEqual([])
})
