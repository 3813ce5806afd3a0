import { expect, test } from 'vitest'
import type { PendingItem } from 'thinharness'
import { smallRefunds } from '../examples/support-desk/agent.js'

test('support-desk: refunds that together are no small one wait for the staff, in one reply or one after the other', () => {
  let refunded = 0
  const rule = smallRefunds({ refunded: () => refunded } as unknown as Parameters<typeof smallRefunds>[0])
  const asks = (cents: number, others: readonly string[] = []): PendingItem => ({
    ...{ kind: 'approval', callId: 'call_1', toolName: 'refund', path: ['run_1'] },
    arguments: JSON.stringify({ orderId: '1042', cents, reason: 'Broken.' }),
    otherCalls: others.map((toolName, index) => ({ callId: `call_${index + 2}`, toolName, when: 'after' as const })),
  })
  expect(rule(asks(900))).toEqual({ approved: true })
  expect(rule(asks(900, ['look_up_order']))).toEqual({ approved: true })
  expect(rule(asks(900, ['refund', 'refund', 'refund', 'refund', 'refund', 'refund']))).toBeNull()
  expect(rule(asks(6300))).toBeNull()
  refunded = 900
  expect(rule(asks(200))).toBeNull()
})
