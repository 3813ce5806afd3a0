import { describe, expect, test } from 'vitest'
import { explain, fromJson, grant, grantFor, policy } from 'thinharness/policy'
import type { Rule } from 'thinharness/policy'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, harnessOf, ofKind, tool } from '../harness/support.js'

async function call(use: readonly ReturnType<typeof policy>[], requiresApproval = false) {
  const ran: unknown[] = []
  const model = new ScriptedModel().calls('pay', { amount: 5 }).always('Done.')
  const tools = [tool('pay', (args) => void ran.push(args), { requiresApproval })]
  const events = await eventsOf(harnessOf({ model, tools, use }).stream('Go.'))
  return { ran: ran.length, asked: ofKind(events, 'approval_requested').length, events }
}

describe('policies of rules', () => {
  test('a policy is a value for `use`', async () => {
    expect(await call([policy([{ decision: 'deny', tool: 'p*' }])])).toMatchObject({ ran: 0, asked: 0 })
    expect(await call([policy([{ decision: 'ask', tool: 'pay' }])])).toMatchObject({ ran: 0, asked: 1 })
    expect(await call([policy([{ decision: 'allow', tool: 'pay' }])], true)).toMatchObject({ ran: 1, asked: 0 })
  })

  test('a grant answers what the rules ask, and lifts no deny', async () => {
    const asking = policy([{ decision: 'ask', tool: 'pay' }])
    const denying = policy([{ decision: 'deny', tool: 'pay' }])
    expect(await call([asking.extend([grant({ tool: 'pay' })])])).toMatchObject({ ran: 1, asked: 0 })
    expect(await call([denying.extend([grant({ tool: 'pay' })])])).toMatchObject({ ran: 0, asked: 0 })
  })

  test('`explain` names the rule, as it was given', () => {
    const rules: Rule[] = [
      { decision: 'allow', category: 'read' },
      { decision: 'deny', tool: 'read' },
    ]
    expect(explain(rules, { tool: 'read' })).toEqual({ decision: 'deny', rule: rules[1], step: 'deny' })
    expect(explain(rules, { tool: 'list' })).toEqual({ decision: 'allow', rule: rules[0], step: 'rule' })
    expect(explain(rules, { tool: 'pay' })).toEqual({ decision: null, rule: null, step: 'none' })
  })

  test('rules from JSON are checked, with the index and the field', () => {
    expect(fromJson('[{"decision":"ask","tool":["a","b"]}]')).toEqual([{ decision: 'ask', tool: ['a', 'b'] }])
    expect(() => fromJson('[{"decision":"allow"},{"decision":"maybe"}]')).toThrow('`[1].decision` of the rules')
  })

  test('grants for a call', () => {
    expect(grantFor({ tool: 'write' }, 'tool')).toEqual({ decision: 'allow', tool: 'write', grant: true })
    expect(grantFor({ tool: 'write' }, 'category')).toEqual({ decision: 'allow', category: 'edit', grant: true })
    expect(grantFor({ tool: 'pay' }, 'category')).toBeNull()
  })
})
