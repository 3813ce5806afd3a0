import { join } from 'node:path'
import { memoryLog } from 'thinharness'
import { expect, test, vi } from 'vitest'
import { policy } from 'thinharness/policy'
import { askUser, requestAccess, submitPlan, tasks } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { bash, fileTools } from 'thinharness/tools'
import { harnessOf, tool } from '../harness/support.js'
import { temporaryFolder } from '../support/folder.js'
import { sessionsOf } from './support.js'

test('SB-101 an approved plan is carried out by the same run, under the next mode', async () => {
  const first = new ScriptedModel().calls('submit_plan', { plan: '1. Build.' })
  const second = new ScriptedModel().says('Built.').says('More.')
  const modes = {
    plan: harnessOf({ model: first, use: [submitPlan({ then: 'build' })] }),
    build: harnessOf({ model: second, instructions: 'Build.' }),
  }
  const chat = await sessionsOf({ modes, defaultMode: 'plan' }).open()
  const sent = await chat.send('Go.')
  const { runId } = await sent.done
  const [item] = chat.pending
  expect(item?.payload).toEqual({ kind: 'plan', title: 'Plan', plan: '1. Build.', then: 'build' })
  await chat.answer([{ callId: item?.callId ?? '', answer: { action: 'approved' } }], { by: 'ann' })
  await chat.whenIdle()
  expect(chat.snapshot.runs).toMatchObject([{ runId, mode: 'build', status: 'completed' }])
  expect(chat.snapshot.thread.mode).toBe('build')
  expect([first.requests.length, second.requests.length]).toEqual([1, 1])
})

test('SB-102 a plan that is rejected with feedback is revised; without any, the run makes no further request', async () => {
  const model = new ScriptedModel().calls('submit_plan', { plan: 'A' }).calls('submit_plan', { plan: 'B' })
  const chat = await sessionsOf({ harness: harnessOf({ model, tools: [submitPlan()] }) }).open()
  await (
    await chat.send('Go.')
  ).done
  await chat.answer([{ callId: chat.pending[0]?.callId ?? '', answer: { action: 'rejected', feedback: 'No.' } }])
  await chat.whenIdle()
  expect(chat.pending[0]?.payload).toMatchObject({ plan: 'B' })
  await chat.answer([{ callId: chat.pending[0]?.callId ?? '', answer: { action: 'rejected' } }])
  await chat.whenIdle()
  expect([chat.phase, model.requests.length]).toEqual(['idle', 2])
})

test('SB-88 a remembered approval releases the other item, holds for later runs, and can be taken back', async () => {
  const ran: string[] = []
  const pay = tool('pay', () => void ran.push('pay'), { requiresApproval: true })
  const model = new ScriptedModel()
    .replies({
      calls: [
        { name: 'pay', arguments: {} },
        { name: 'pay', arguments: {} },
      ],
    })
    .says('Paid.')
    .calls('pay')
    .says('Again.')
    .calls('pay')
  const chat = await sessionsOf({ harness: harnessOf({ model, tools: [pay] }) }).open()
  await (
    await chat.send('Pay.')
  ).done
  const [first, second] = chat.pending
  await chat.answer([{ callId: first?.callId ?? '', approved: true, remember: 'tool' }], { by: 'ann' })
  await chat.whenIdle()
  expect(ran).toHaveLength(2)
  expect(chat.snapshot.runs[0]?.calls.find(({ callId }) => callId === second?.callId)?.answers).toMatchObject([
    { by: 'policy' },
  ])
  expect(chat.grants).toMatchObject([{ tool: 'pay', decision: 'allow', grant: true }])
  expect(await (await chat.send('Again.')).done).toMatchObject({ status: 'completed' })
  await chat.revoke(chat.grants[0]?.id ?? '')
  expect(await (await chat.send('Again.')).done).toMatchObject({ status: 'paused' })
})

test('a host grants a permission without an answer, also through a process that does not own the thread, and takes it back', async () => {
  const pay = tool('pay', () => 'Paid.', { requiresApproval: true })
  const model = new ScriptedModel().calls('pay').says('Paid.').calls('pay')
  const log = memoryLog()
  const chat = await sessionsOf({ log, harness: harnessOf({ model, tools: [pay] }) }).open('one')
  const made = await chat.grant({ tool: 'pay' }, { by: 'ann' })
  expect(await (await chat.send('Pay.')).done).toMatchObject({ status: 'completed' })
  expect(chat.grants).toEqual([{ ...made, tool: 'pay', decision: 'allow', grant: true }])
  await chat.revoke(made.id)
  expect(await (await chat.send('Pay.')).done).toMatchObject({ status: 'paused' })
  await expect(chat.grant({})).rejects.toMatchObject({ code: 'invalid_options' })

  const elsewhere = await sessionsOf({ log, harness: harnessOf({ model, tools: [pay] }) }).open('one')
  await elsewhere.grant({ tool: 'pay', id: 'posted' })
  await vi.waitFor(() => expect(chat.grants.map(({ id }) => id)).toEqual(['posted']))
})

test('a remembered approval lifts no deny and no approval that a tool always needs', async () => {
  const [wipe, pay] = [tool('wipe', () => 'Wiped.', { requiresApproval: 'always' }), tool('pay', () => 'Paid.')]
  const model = new ScriptedModel().calls('wipe').calls('wipe').calls('pay').says('Done.')
  const rules = [{ decision: 'deny', tool: 'pay' }] as const
  const chat = await sessionsOf({ harness: harnessOf({ model, tools: [wipe, pay] }), policy: policy(rules) }).open()
  await (
    await chat.send('Go.')
  ).done
  const first = chat.pending[0]?.callId ?? ''
  const remember = { decision: 'allow', tool: '*' } as const
  await chat.answer([{ callId: first, approved: true, remember }])
  await chat.whenIdle()
  const second = chat.pending[0]?.callId ?? ''
  expect([second === first, chat.phase, chat.grants.length]).toEqual([false, 'waiting', 1])
  await chat.answer([{ callId: second, approved: true }])
  await chat.whenIdle()
  const calls = chat.snapshot.runs[0]?.calls ?? []
  expect(calls.map(({ toolName, status }) => [toolName, status])).toEqual([
    ['wipe', 'completed'],
    ['wipe', 'completed'],
    ['pay', 'failed'],
  ])
})

test('a remembered path releases no other item: links are known to the run alone', async () => {
  const touch = tool('touch', () => 'Done.')
  const names = ['src/a', 'src/b']
  const model = new ScriptedModel()
    .callsAll(names.map((path) => ({ name: 'touch', arguments: { path } })))
    .says('Done.')
  const harness = harnessOf({ model, tools: [touch] })
  const chat = await sessionsOf({ harness, policy: policy([], { default: 'ask' }) }).open()
  await (
    await chat.send('Go.')
  ).done
  const [one, two] = chat.pending
  await chat.answer([{ callId: one?.callId ?? '', approved: true, remember: { decision: 'allow', path: 'src/**' } }])
  await chat.whenIdle()
  expect(chat.pending.map(({ callId }) => callId)).toEqual([two?.callId])
})

test('a request for access that a person approves is a grant of the policy', async () => {
  const run = tool('run', () => 'ok')
  const model = new ScriptedModel()
    .calls('request_access', { tool: 'run', reason: 'Tests.' })
    .calls('run')
    .says('Done.')
  const harness = harnessOf({ model, tools: [run, requestAccess()] })
  const chat = await sessionsOf({ harness, policy: policy([], { default: 'ask' }) }).open()
  await (
    await chat.send('Go.')
  ).done
  await chat.answer([{ callId: chat.pending[0]?.callId ?? '', answer: { approved: true } }])
  await chat.whenIdle()
  expect(chat.snapshot.runs[0]?.status).toBe('completed')
})

test('a request for access that no tool could use is refused at once; any other is asked', async () => {
  const root = temporaryFolder()
  const open = tool('open', () => 'ok', { reach: { reads: ['/data/shared'], hosts: ['*.example.com'] } })
  const closed = tool('closed', () => 'ok', { annotations: { openWorld: false } })
  const tools = [...fileTools({ readPaths: ['docs'], writePaths: ['drafts'] }), bash(), open, closed, requestAccess()]
  const answered = async (request: object): Promise<string> => {
    const model = new ScriptedModel().calls('request_access', { ...request, reason: 'Work.' }).says('Done.')
    const result = await harnessOf({ model, root, tools }).run('Go.')
    return result.status
  }
  const refused = [
    { path: '/etc/passwd' },
    { path: '../other/**' },
    { path: '~/notes/**' },
    { path: join(root, 'src/a.ts') },
    { host: 'example.org' },
    { host: 'badexample.com' },
    { tool: 'missing' },
  ]
  const asked = [
    { path: 'docs/a.md' },
    { path: '**/*.md' },
    { path: join(root, 'drafts/**') },
    { path: '/data/shared/x' },
    { host: 'api.example.com' },
    { command: 'git status' },
    { tool: 'closed' },
  ]
  expect(await Promise.all(refused.map(answered))).toEqual(refused.map(() => 'completed'))
  expect(await Promise.all(asked.map(answered))).toEqual(asked.map(() => 'paused'))
})

test('SB-124 the task list is kept over the runs of a conversation, and is in the snapshot', async () => {
  const task = { content: 'Run tests', status: 'in_progress', activeForm: 'Running tests' }
  const model = new ScriptedModel()
    .calls('task_write', { tasks: [task] })
    .says('Planned.')
    .calls('task_complete', { id: 'task_run_tests' })
    .says('Done.')
  const chat = await sessionsOf({ harness: harnessOf({ model, use: [tasks()] }) }).open()
  await (
    await chat.send('Plan.')
  ).done
  expect(chat.snapshot.tasks).toEqual([{ id: 'task_run_tests', ...task }])
  await (
    await chat.send('Do.')
  ).done
  expect(chat.snapshot.tasks).toMatchObject([{ status: 'completed' }])
})

test('SB-122 SB-123 a question with a selection and no options is an error, and shows nothing', async () => {
  const model = new ScriptedModel()
    .calls('ask_user', { question: 'Which?', selection: 'one' })
    .calls('ask_user', { question: 'Which?', options: [{ label: 'a' }, { label: 'b' }], selection: 'several' })
    .says('Thanks.')
  const chat = await sessionsOf({ harness: harnessOf({ model, tools: [askUser()] }) }).open()
  await (
    await chat.send('Go.')
  ).done
  expect(chat.pending).toHaveLength(1)
  await chat.answer([{ callId: chat.pending[0]?.callId ?? '', answer: ['a', 'b'] }])
  await chat.whenIdle()
  expect(chat.snapshot.runs[0]?.status).toBe('completed')
})
