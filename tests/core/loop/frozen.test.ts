import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineExtension, HarnessError, memoryLog } from 'thinharness'
import type { AssistantEntry, Model, RunEvent } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { collect } from '../../support/collect.js'
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
