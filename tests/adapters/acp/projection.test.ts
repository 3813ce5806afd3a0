import { expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { DurableEvent } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { AcpProjection } from '#adapters/acp/projection.js'
import { harnessOf, tool } from '../../harness/support.js'

test('AC-26 the projection makes updates of events alone: no connection, no request, and the same each time', async () => {
  const log = memoryLog()
  const model = new ScriptedModel().calls('look', { path: 'a' }).says('Done.')
  const harness = harnessOf({ model, tools: [tool('look', () => 'seen')], log })
  const { runId } = await harness.run('Go.')
  const events: DurableEvent[] = []
  for await (const event of log.read({ kind: 'run', id: runId })) events.push(event)
  const updates = () => {
    const projection = new AcpProjection({
      ...{ root: '/work', deltas: 'live', notices: false },
      ...{ toolOf: () => undefined, window: () => null, isOwn: () => false },
    })
    return events.flatMap((event) => projection.next(event))
  }
  expect(updates().map(({ sessionUpdate }) => sessionUpdate)).toEqual([
    ...['session_info_update', 'user_message_chunk', 'tool_call', 'tool_call_update', 'tool_call_update'],
    'agent_message_chunk',
  ])
  expect(updates()).toEqual(updates())
})
