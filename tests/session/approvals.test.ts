import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from 'thinharness'
import type { LogStore } from 'thinharness'
import { policy } from 'thinharness/policy'
import { askUser, submitPlan } from 'thinharness/session'
import type { Chat } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../harness/support.js'
import { allStores, sessionsOf } from './support.js'

async function done(chat: Pick<Chat, 'send'>, prompt = 'Go.'): Promise<string> {
  return (await (await chat.send(prompt)).done).status
}

/** Names of calls with their states, in the order of the model. */
function callsOf(chat: Pick<Chat, 'snapshot'>): readonly string[] {
  return chat.snapshot.runs.flatMap(({ calls }) => Object.values(calls).map((call) => `${call.callId} ${call.status}`))
}

function paying(ran: unknown[]): ReturnType<typeof defineTool> {
  return defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({ to: z.string() }),
    requiresApproval: true,
    handler: ({ to }) => {
      ran.push(to)
      return `Paid ${to}.`
    },
  })
}

function pays(...names: readonly string[]): { readonly calls: { name: string; arguments: { to: string } }[] } {
  return { calls: names.map((to) => ({ name: 'pay', arguments: { to } })) }
}

describe.each(await allStores())('answers of people in the %s log', (_name, open: () => LogStore) => {
  test('SB-84 SB-89 a declined call does not run, also after a restart; the model reads the reason', async () => {
    const [log, ran] = [open(), [] as unknown[]]
    const model = new ScriptedModel().replies(pays('ann', 'bob')).says('As you wish.')
    const harness = harnessOf({ model, tools: [paying(ran)] })
    const first = sessionsOf({ log, harness })
    const before = await first.open('t1')
    await done(before)
    await before.answer([{ callId: 'call_1', approved: false, reason: 'Too much.' }], { by: 'ann' })
    await first.close()
    const chat = await sessionsOf({ log, harness }).open('t1')
    expect(chat.pending.map(({ callId }) => callId)).toEqual(['call_2'])
    await chat.answer([{ callId: 'call_2', approved: true }])
    await chat.whenIdle()
    expect(ran).toEqual(['bob'])
    expect(callsOf(chat)).toEqual(['call_1 failed', 'call_2 completed'])
    const heard = JSON.stringify(model.requests[1]?.heard)
    expect(heard).toContain('Too much.')
    expect(heard.indexOf('Too much.')).toBeLessThan(heard.indexOf('Paid bob.'))
  })

  test('SB-87 the first answer to an item counts, whichever session gives it; the call runs once', async () => {
    const [log, ran] = [open(), [] as unknown[]]
    const harness = harnessOf({ model: new ScriptedModel().replies(pays('ann')).says('Paid.'), tools: [paying(ran)] })
    const one = await sessionsOf({ log, harness }).open('t1')
    await done(one)
    const other = await sessionsOf({ log, harness }).open('t1')
    const answers = await Promise.all([
      one.answer([{ callId: 'call_1', approved: true }]),
      other.answer([{ callId: 'call_1', approved: true }]),
    ])
    expect(answers.flat().map(({ status }) => status)).toHaveLength(2)
    expect(answers.flat().filter(({ status }) => status === 'accepted')).toHaveLength(1)
    await one.whenIdle()
    expect(ran).toEqual(['ann'])
  })

  test('SB-88 an approval that is remembered for a category releases the other call of it, and later ones', async () => {
    const [log, ran] = [open(), [] as string[]]
    const edit = (name: string) =>
      tool(name, () => void ran.push(name), { annotations: { readOnly: false, openWorld: false } })
    const model = new ScriptedModel()
      .callsAll([{ name: 'first' }, { name: 'second' }])
      .says('Done.')
      .calls('third')
      .says('Done.')
    const tools = [edit('first'), edit('second'), edit('third')]
    const chat = await sessionsOf({
      log,
      harness: harnessOf({ model, tools }),
      policy: policy([], { default: 'ask' }),
    }).open('t1')
    expect(await done(chat)).toBe('paused')
    await chat.answer([{ callId: 'call_1', approved: true, remember: 'category' }])
    await chat.whenIdle()
    expect(ran).toEqual(['first', 'second'])
    expect(chat.snapshot.runs[0]?.calls[1]?.answers).toMatchObject([{ by: 'policy' }])
    expect(chat.grants).toMatchObject([{ category: expect.any(String) as string, decision: 'allow', grant: true }])
    expect(await done(chat, 'More.')).toBe('completed')
    expect(ran).toEqual(['first', 'second', 'third'])
  })

  test('SB-90 edited arguments that do not fit are refused, and the item stays; both versions are on record', async () => {
    const ran: unknown[] = []
    const harness = harnessOf({ model: new ScriptedModel().replies(pays('ann')).says('Paid.'), tools: [paying(ran)] })
    const chat = await sessionsOf({ log: open(), harness }).open('t1')
    await done(chat)
    await expect(chat.answer([{ callId: 'call_1', approved: true, editedArguments: { to: 7 } }])).rejects.toMatchObject(
      { code: 'invalid_answer' },
    )
    expect([chat.phase, chat.pending.length, ran]).toEqual(['waiting', 1, []])
    await chat.answer([{ callId: 'call_1', approved: true, editedArguments: { to: 'eve' } }])
    await chat.whenIdle()
    expect(ran).toEqual(['eve'])
    const call = chat.snapshot.runs[0]?.calls[0]
    expect(call?.arguments).toBe('{"to":"eve"}')
    expect(JSON.stringify(chat.snapshot.runs[0]?.entries[0])).toContain('ann')
    expect(call?.answers).toMatchObject([{ answer: { editedArguments: { to: 'eve' } } }])
  })

  test('SB-91 items that wait are there after a restart; work that had ended is not done again', async () => {
    const [log, ran] = [open(), [] as unknown[]]
    const ask = tool('ask', (_args, context) => context.ask({ q: 'Sure?' }, z.string()))
    const noted = tool('note', () => void ran.push('noted'))
    const model = new ScriptedModel().callsAll([{ name: 'note' }, { name: 'ask' }, { name: 'ask' }]).says('Thanks.')
    const harness = harnessOf({ model, tools: [ask, noted] })
    const first = sessionsOf({ log, harness })
    await done(await first.open('t1'))
    await first.close()
    const chat = await sessionsOf({ log, harness }).open('t1')
    expect([chat.phase, chat.pending.map(({ callId }) => callId)]).toEqual(['waiting', ['call_2', 'call_3']])
    await chat.answer(chat.pending.map(({ callId }) => ({ callId, answer: 'Yes.' })))
    await chat.whenIdle()
    expect([ran, callsOf(chat)]).toEqual([['noted'], ['call_1 completed', 'call_2 completed', 'call_3 completed']])
    expect(model.requests).toHaveLength(2)
  })

  test('SB-94 SB-115 two questions of one step are both shown; each stays until it is answered, in any order', async () => {
    const model = new ScriptedModel()
      .callsAll([
        { name: 'ask_user', arguments: { question: 'Where?' } },
        { name: 'ask_user', arguments: { question: 'When?' } },
      ])
      .says('Thanks.')
    const chat = await sessionsOf({ log: open(), harness: harnessOf({ model, tools: [askUser()] }) }).open('t1')
    await done(chat)
    expect(chat.pending.map(({ callId }) => callId)).toEqual(['call_1', 'call_2'])
    await chat.answer([{ callId: 'call_2', answer: 'Tonight.' }])
    expect(chat.pending.map(({ callId }) => callId)).toEqual(['call_1'])
    expect(chat.snapshot.pending.map(({ callId }) => callId)).toEqual(['call_1'])
    await chat.answer([{ callId: 'call_1', answer: 'Here.' }])
    await chat.whenIdle()
    expect([chat.phase, chat.snapshot.pending]).toEqual(['idle', []])
    const heard = JSON.stringify(model.requests[1]?.heard)
    expect(heard.indexOf('Here.')).toBeLessThan(heard.indexOf('Tonight.'))
  })

  test('SB-104 a rule that allows everything, given with an answer, releases the approvals that wait', async () => {
    const ran: unknown[] = []
    const model = new ScriptedModel().replies(pays('ann', 'bob', 'eve')).says('Paid.')
    const harness = harnessOf({ model, tools: [paying(ran)] })
    const chat = await sessionsOf({ log: open(), harness }).open('t1')
    await done(chat)
    expect(chat.pending).toHaveLength(3)
    const remember = { decision: 'allow', tool: '*' } as const
    await chat.answer([{ callId: 'call_2', approved: true, remember }])
    await chat.whenIdle()
    expect([ran.toSorted(), chat.pending]).toEqual([['ann', 'bob', 'eve'], []])
  })
})

test('SB-95 answering a question raises no approval, whatever the policy asks about', async () => {
  const model = new ScriptedModel().calls('ask_user', { question: 'Where?' }).says('Thanks.')
  const harness = harnessOf({ model, tools: [askUser()] })
  const chat = await sessionsOf({ harness, policy: policy([{ decision: 'ask' }], { default: 'ask' }) }).open()
  await done(chat)
  expect(chat.pending.map(({ kind }) => kind)).toEqual(['question'])
  await chat.answer([{ callId: 'call_1', answer: 'Here.' }])
  await chat.whenIdle()
  expect(chat.snapshot.runs[0]?.status).toBe('completed')
})

test.each([[false], [0], ['']])('SB-96 the answer %j reaches the handler', async (answer) => {
  const got: unknown[] = []
  const ask = tool('ask', async (_args, context) => {
    got.push(await context.ask({ q: 'Which?' }, z.union([z.boolean(), z.number(), z.string()])))
  })
  const model = new ScriptedModel().calls('ask').says('Thanks.')
  const chat = await sessionsOf({ harness: harnessOf({ model, tools: [ask] }) }).open()
  await done(chat)
  await chat.answer([{ callId: 'call_1', answer }])
  await chat.whenIdle()
  expect(got).toEqual([answer])
})

test('SB-99 a call may ask twice: each answer comes to its question', async () => {
  const got: unknown[] = []
  const ask = tool('ask', async (_args, context) => {
    const day = await context.ask({ q: 'Which day?' }, z.string())
    const hour = await context.ask({ q: `Which hour of ${day}?` }, z.number())
    got.push([day, hour])
  })
  const model = new ScriptedModel().calls('ask').says('Thanks.')
  const chat = await sessionsOf({ harness: harnessOf({ model, tools: [ask] }) }).open()
  await done(chat)
  await chat.answer([{ callId: 'call_1', answer: 'Monday' }])
  await chat.whenIdle()
  expect(chat.pending[0]?.payload).toEqual({ q: 'Which hour of Monday?' })
  await chat.answer([{ callId: 'call_1', answer: 9 }])
  await chat.whenIdle()
  expect(got).toEqual([['Monday', 9]])
})

test('SB-103 a plan is carried out under the mode that it named when it was submitted', async () => {
  const planning = new ScriptedModel().calls('submit_plan', { plan: '1. Build.' })
  const building = new ScriptedModel().says('Built.')
  const log = sessionsOf({ harness: harnessOf({}) }).log
  const build = harnessOf({ model: building })
  const first = sessionsOf({
    log,
    modes: { plan: harnessOf({ model: planning, use: [submitPlan({ then: 'build' })] }), build },
  })
  await done(await first.open('t1'))
  await first.close()
  const other = harnessOf({ model: new ScriptedModel() })
  const plan = harnessOf({ model: planning, use: [submitPlan({ then: 'other' })] })
  const chat = await sessionsOf({ log, modes: { other, plan, build }, defaultMode: 'plan' }).open('t1')
  expect(chat.pending[0]?.payload).toMatchObject({ then: 'build' })
  await chat.answer([{ callId: 'call_1', answer: { action: 'approved' } }])
  await chat.whenIdle()
  expect(chat.snapshot.runs).toMatchObject([{ mode: 'build', status: 'completed' }])
  expect(building.requests).toHaveLength(1)
})
