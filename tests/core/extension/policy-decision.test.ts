import { describe, expect, test } from 'vitest'
import { defineExtension } from 'thinharness'
import type { Decision, Extension, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, harnessOf, ofKind, tool } from '../../harness/support.js'

const policies = (...decisions: (Decision | null)[]): Extension[] =>
  decisions.map((decision, index) => defineExtension({ name: `p${index + 1}`, policy: () => decision }))

async function call(use: readonly Extension[], requiresApproval: ToolSpec['requiresApproval'] = false) {
  const ran: unknown[] = []
  const model = new ScriptedModel().calls('pay', { amount: 5 }).always('Done.')
  const tools = [tool('pay', (args) => void ran.push(args), { requiresApproval })]
  const stream = harnessOf({ model, tools, use }).stream('Go.')
  const events = await eventsOf(stream)
  return { ran: ran.length, asked: ofKind(events, 'approval_requested').length, events }
}

describe('policies', () => {
  test.each<[string, (Decision | null)[], ToolSpec['requiresApproval'], { ran: number; asked: number }]>([
    ['the strictest wins: deny', ['allow', 'deny', 'ask'], false, { ran: 0, asked: 0 }],
    ['the strictest wins: ask', ['allow', 'ask', null], false, { ran: 0, asked: 1 }],
    ['allow runs a call whose tool asks', ['allow'], true, { ran: 1, asked: 0 }],
    ['allow does not run a call whose tool always asks', ['allow'], 'always', { ran: 0, asked: 1 }],
    ['a tool always asks without policies too', [], 'always', { ran: 0, asked: 1 }],
    ['a tool that always asks can be denied', ['deny'], 'always', { ran: 0, asked: 0 }],
    ['without an opinion the tool decides', [null], true, { ran: 0, asked: 1 }],
    ['an object says why', [{ decision: 'deny', reason: 'No.', rule: 'r1' }], false, { ran: 0, asked: 0 }],
  ])('%s', async (_name, decisions, requiresApproval, expected) => {
    expect(await call(policies(...decisions), requiresApproval)).toMatchObject(expected)
  })

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('Oops.')
      },
    ],
    ['gives no decision', () => 'maybe'],
    ['has a misspelt member', () => ({ decison: 'allow' })],
  ])('XT-11 a policy that fails or returns no decision stops the call (%s)', async (_name, policy) => {
    expect(await call([{ name: 'odd', policy: policy as () => Decision }])).toMatchObject({ ran: 0 })
  })

  test('XT-12 they get the arguments that will run, the tool and the run', async () => {
    const seen: unknown[] = []
    const use = defineExtension({
      name: 'seeing',
      policy: ({ name, args }, spec, { runId, transcript }) => {
        seen.push([name, args, spec.description, runId.startsWith('run_'), transcript.length])
        return 'allow'
      },
      hooks: [{ event: 'before_tool_call', handler: () => ({ args: { amount: 7 } }) }],
    })
    expect((await call([use])).ran).toBe(1)
    expect(seen).toEqual([['pay', { amount: 7 }, 'The tool pay.', true, 2]])
  })
})
