import { expect, test } from 'vitest'
import { memoryLog, ToolResult } from 'thinharness'
import type { Hook, JsonValue } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, harnessOf, ofKind, tool } from '../../../harness/support.js'
import { eventsOfRun } from '../../../support/collect.js'

async function valueOf(returned: unknown, hooks: Hook[] = []): Promise<{ value?: JsonValue }> {
  const model = new ScriptedModel().calls('look').says('Done.')
  const log = memoryLog()
  const harness = harnessOf({ model, tools: [tool('look', () => returned)], hooks, log })
  const [live] = ofKind(await eventsOf(harness.stream('Go.', { runId: 'run_v' })), 'tool_call_completed')
  const kept = await eventsOfRun(log, 'run_v')
  expect(ofKind(kept, 'tool_call_completed')[0]?.value).toEqual(live?.value)
  return live ?? {}
}

test('the value that a tool returned is in its event, as JSON, in its original order', async () => {
  const { value } = await valueOf({ b: new Date(0), a: [1, undefined] })
  expect(JSON.stringify(value)).toBe('{"b":"1970-01-01T00:00:00.000Z","a":[1,null]}')
})

test.each([
  ['a number', 3, 3],
  ['null', null, null],
  ['a result that says more', new ToolResult({ content: { rows: 2 }, metadata: { took_ms: 1 } }), { rows: 2 }],
])('%s is a value too', async (_name, returned, expected) => {
  expect((await valueOf(returned)).value).toEqual(expected)
})

test.each([
  ['a string', 'text'],
  ['nothing', undefined],
  ['a failure', new ToolResult({ ok: false, content: { no: 1 } })],
  ['a value whose text was shortened', { rows: 'x'.repeat(300_000) }],
])('%s has no value besides its text', async (_name, returned) => {
  expect(await valueOf(returned)).not.toHaveProperty('value')
})

test('a value that a hook replaced is left out', async () => {
  const hook: Hook = {
    event: 'after_tool_call',
    handler: () => ({ envelope: { ok: true, content: '5', metadata: {} } }),
  }
  expect(await valueOf(4, [hook])).not.toHaveProperty('value')
})

test('a handler can change its value afterwards', async () => {
  const returned = { n: 1 }
  const live = await valueOf(returned)
  returned.n = 2
  expect(live.value).toEqual({ n: 1 })
})
