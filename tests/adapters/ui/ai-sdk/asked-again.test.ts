import { expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { toUIMessages } from 'thinharness/ui'
import type { AnyRunEvent } from 'thinharness/ui'
import { eventsOfRun } from '../../../support/collect.js'
import { harnessOf, tool } from '../../../harness/support.js'
import { checkMessages } from './clients.js'

test.each([6, 7] as const)(
  'UI-37 UI-38 a child run that asks again, after an answer that it has not used, leaves a valid message: dialect %s',
  async (dialect) => {
    const pay = tool('pay', () => 'paid', { requiresApproval: true })
    const log = memoryLog()
    const harness = harnessOf({ model: new ScriptedModel().calls('pay'), tools: [pay], log })
    await harness.run('Pay.', { runId: 'run_1' })
    const stored: readonly AnyRunEvent[] = await eventsOfRun(log, 'run_1')
    const id = 'call_1/1/call_2'
    const requested = stored.find(({ kind }) => kind === 'approval_requested')
    const paused = stored.at(-1)
    if (requested?.kind !== 'approval_requested' || paused?.kind !== 'run_completed') throw new Error('Not paused.')
    const { kind: _requested, items, ...base } = requested
    const asks = { ...base, kind: 'approval_requested', items: items.map((item) => ({ ...item, callId: id })) } as const
    const answered = { ...base, kind: 'answer_received', callId: id, answer: { callId: id, approved: true } } as const
    const rounds = [asks, paused, answered, paused, asks, paused, answered] as readonly AnyRunEvent[]
    const events = stored
      .slice(0, stored.indexOf(requested))
      .concat(rounds)
      .map((event, index): AnyRunEvent => ({ ...event, seq: index + 1 }))
    const messages = toUIMessages(events, { dialect })
    await checkMessages(dialect, messages)
    const part = messages.at(-1)?.parts.find((each) => 'toolCallId' in each && each.toolCallId === id)
    expect(part).toMatchObject({ state: 'approval-responded', approval: { approved: true } })
    expect(part).not.toHaveProperty('output')
  },
)
