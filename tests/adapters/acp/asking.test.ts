import type { CreateElicitationRequest, RequestPermissionRequest } from '@agentclientprotocol/sdk'
import { describe, expect, test } from 'vitest'
import { fileLog } from 'thinharness'
import { askUser, submitPlan } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { subagent } from 'thinharness/tools'
import { harnessOf, tool } from '../../harness/support.js'
import { gate, sessionsOf, temporaryFolder } from '../../session/support.js'
import { editorOf } from './support.js'
import type { EditorOptions } from './support.js'

type Handle = NonNullable<EditorOptions<never>['handle']>

/** Answers permission requests with the option of this kind, or not at all. */
function permits(
  kindOf: (request: RequestPermissionRequest) => string | null,
  before: (count: number) => Promise<void> = () => Promise.resolve(),
): {
  readonly handle: Handle
  readonly asked: RequestPermissionRequest[]
} {
  const asked: RequestPermissionRequest[] = []
  const handle: Handle = (app) =>
    app.onRequest('session/request_permission', async ({ params }) => {
      asked.push(params)
      await before(asked.length)
      const kind = kindOf(params)
      const option = params.options.find((each) => each.kind === kind || each.optionId === kind)
      return {
        outcome: option === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: option.optionId },
      }
    })
  return { handle, asked }
}

function pay(ran: unknown[]) {
  return tool('pay', (args) => void ran.push(args), { requiresApproval: true })
}

describe('AC-14 permission', () => {
  test('an allowed call runs and a refused one does not; both are asked at the same time and answered together', async () => {
    const ran: unknown[] = []
    const model = new ScriptedModel()
      .callsAll([
        { name: 'pay', arguments: { to: 'ann' } },
        { name: 'pay', arguments: { to: 'bob' } },
      ])
      .says('Paid one.')
    const both = gate()
    const { handle, asked } = permits(
      ({ toolCall }) => ((toolCall.rawInput as { to: string }).to === 'ann' ? 'allow_once' : 'reject_once'),
      async (count) => {
        if (count === 2) both.open()
        await both.opened
      },
    )
    const editor = await editorOf({
      sessions: sessionsOf({ harness: harnessOf({ model, tools: [pay(ran)] }) }),
      handle,
    })
    expect(await editor.prompt(await editor.begin(), 'Pay.')).toEqual({ stopReason: 'end_turn' })
    expect(ran).toEqual([{ to: 'ann' }])
    expect(asked.map(({ options }) => options.map(({ kind }) => kind))).toEqual([
      ['allow_once', 'reject_once'],
      ['allow_once', 'reject_once'],
    ])
    expect(asked[0]?.toolCall).toMatchObject({ toolCallId: 'call_1', title: 'pay ann', rawInput: { to: 'ann' } })
  })

  test('always is offered only with `remember`, and its answer is remembered', async () => {
    const ran: unknown[] = []
    const model = new ScriptedModel().calls('pay').calls('pay').says('Paid.')
    const { handle, asked } = permits(() => 'allow_always')
    const remembered: unknown[] = []
    const editor = await editorOf({
      sessions: sessionsOf({ harness: harnessOf({ model, tools: [pay(ran)] }) }),
      remember: ({ toolName }, { approved }) => {
        remembered.push([toolName, approved])
        return 'tool'
      },
      handle,
    })
    await editor.prompt(await editor.begin(), 'Pay.')
    expect([ran.length, asked.length, remembered]).toEqual([2, 1, [['pay', true]]])
    expect(asked[0]?.options.map(({ kind }) => kind)).toEqual([
      ...['allow_always', 'allow_once', 'reject_once', 'reject_always'],
    ])
  })

  test('a plan is permitted or rejected', async () => {
    const model = new ScriptedModel().calls('submit_plan', { plan: '1. Build.' }).says('Built.')
    const { handle, asked } = permits(() => 'allow_once')
    const editor = await editorOf({
      sessions: sessionsOf({ harness: harnessOf({ model, tools: [submitPlan()] }) }),
      handle,
    })
    await editor.prompt(await editor.begin(), 'Plan.')
    expect(asked[0]?.toolCall).toMatchObject({
      kind: 'switch_mode',
      content: [{ type: 'content', content: { type: 'text', text: '1. Build.' } }],
    })
    expect(editor.texts('agent_message_chunk')).toEqual(['Built.'])
  })
})

test("AC-15 the permission of a child's call says so, with the preview of the call", async () => {
  const ran: unknown[] = []
  const model = new ScriptedModel()
    .calls('subagent', { task: 'Pay ann.' })
    .calls('pay', { to: 'ann' })
    .says('Child done.')
    .says('Done.')
  const approved = tool('pay', (args) => void ran.push(args), {
    requiresApproval: true,
    preview: (args: unknown) => ({ pays: args as object }) as never,
  })
  const { handle, asked } = permits(() => 'allow_once')
  const editor = await editorOf({
    sessions: sessionsOf({ harness: harnessOf({ model, tools: [approved, subagent()] }) }),
    handle,
  })
  expect(await editor.prompt(await editor.begin(), 'Go.')).toEqual({ stopReason: 'end_turn' })
  expect(ran).toHaveLength(1)
  expect(asked[0]?.toolCall.title).toBe('Subagent: pay ann')
  expect(asked[0]?.toolCall.content).toEqual([
    { type: 'content', content: { type: 'text', text: '{\n  "pays": {\n    "to": "ann"\n  }\n}' } },
  ])
  const lines = editor.updates.flatMap((update) =>
    update.sessionUpdate === 'tool_call_update' && update._meta?.['thinharness'] !== undefined ? [update] : [],
  )
  expect(JSON.stringify(lines.at(-1))).toContain('Child done.')
})

describe('AC-16 questions', () => {
  const forms = { elicitation: { form: {} } }
  const answering = (answer: (request: CreateElicitationRequest) => object) => {
    const asked: CreateElicitationRequest[] = []
    const handle: Handle = (app) =>
      app.onRequest('elicitation/create', ({ params }) => {
        asked.push(params)
        return answer(params) as never
      })
    return { handle, asked }
  }
  const asks = (schema: object) =>
    tool('ask', async (_args, { ask }) => JSON.stringify(await ask('Which one?', schema as never)))

  test('are asked by a form if the editor has them', async () => {
    const model = new ScriptedModel()
      .calls('ask_user', { question: 'Which?', options: [{ label: 'red' }, { label: 'blue' }], selection: 'several' })
      .calls('ask_user', { question: 'Why?' })
      .says('Fine.')
    const { handle, asked } = answering(({ message }) => ({
      action: 'accept',
      content: { answer: message.startsWith('Which') ? ['red', 'blue'] : 'Because.' },
    }))
    const editor = await editorOf({
      ...{ sessions: sessionsOf({ harness: harnessOf({ model, tools: [askUser()] }) }), capabilities: forms, handle },
    })
    expect(await editor.prompt(await editor.begin(), 'Ask.')).toEqual({ stopReason: 'end_turn' })
    expect(asked).toMatchObject([
      {
        ...{ mode: 'form', message: 'Which?\n\n- red\n- blue' },
        requestedSchema: { properties: { answer: { type: 'array', items: { enum: ['red', 'blue'] } } } },
      },
      { requestedSchema: { properties: { answer: { type: 'string' } }, required: ['answer'] } },
    ])
    expect(JSON.stringify(model.requests[1]?.entries)).toContain('The user answered: red, blue')
  })

  test('a flat object is a form of its fields; a person can decline it', async () => {
    const schema = {
      type: 'object',
      properties: { size: { enum: ['s', 'm'] }, count: { type: 'integer', minimum: 1 } },
      required: ['size'],
    }
    const model = new ScriptedModel().calls('ask').calls('ask').says('Fine.')
    let count = 0
    const { handle, asked } = answering(() =>
      (count += 1) === 1 ? { action: 'accept', content: { size: 's', count: 2 } } : { action: 'decline' },
    )
    const editor = await editorOf({
      ...{
        sessions: sessionsOf({ harness: harnessOf({ model, tools: [asks(schema)] }) }),
        capabilities: forms,
        handle,
      },
    })
    await editor.prompt(await editor.begin(), 'Ask.')
    expect(asked[0]).toMatchObject({
      requestedSchema: {
        type: 'object',
        properties: { size: { type: 'string', enum: ['s', 'm'] } },
        required: ['size'],
      },
    })
    expect(JSON.stringify(model.requests[1]?.entries)).toContain('size')
    expect(JSON.stringify(model.requests[2]?.entries)).toContain('declined')
  })

  test('without forms, and for secrets and nested answers, the question is a message and the next prompt the answer', async () => {
    const model = new ScriptedModel().calls('ask').says('Thanks.')
    const secret = { type: 'string', format: 'password' }
    const { handle, asked } = answering(() => ({ action: 'cancel' }))
    const editor = await editorOf({
      ...{
        sessions: sessionsOf({ harness: harnessOf({ model, tools: [asks(secret)] }) }),
        capabilities: forms,
        handle,
      },
    })
    const sessionId = await editor.begin()
    expect(await editor.prompt(sessionId, 'Ask.')).toEqual({ stopReason: 'end_turn' })
    expect(editor.texts('agent_message_chunk')).toEqual(['Which one?'])
    expect(await editor.prompt(sessionId, 'hunter2')).toEqual({ stopReason: 'end_turn' })
    expect(editor.texts('agent_message_chunk').at(-1)).toBe('Thanks.')
    expect(asked).toEqual([])
    expect(JSON.stringify(model.requests[1]?.entries)).toContain('hunter2')
  })

  test('a form that is cancelled leaves the question waiting', async () => {
    const model = new ScriptedModel().calls('ask_user', { question: 'Why?' }).says('Fine.')
    const { handle } = answering(() => ({ action: 'cancel' }))
    const sessions = sessionsOf({ harness: harnessOf({ model, tools: [askUser()] }) })
    const editor = await editorOf({ sessions, capabilities: forms, handle })
    const sessionId = await editor.begin()
    expect(await editor.prompt(sessionId, 'Ask.')).toEqual({ stopReason: 'end_turn' })
    expect((await sessions.open(sessionId)).phase).toBe('waiting')
  })
})

describe('AC-17 a prompt of a session that waits', () => {
  test('asks again first; then its message is read', async () => {
    const ran: unknown[] = []
    const model = new ScriptedModel().calls('pay').says('Paid.').says('And now?')
    let count = 0
    const { handle, asked } = permits(() => ((count += 1) === 1 ? null : 'allow_once'))
    const sessions = sessionsOf({ harness: harnessOf({ model, tools: [pay(ran)] }) })
    const editor = await editorOf({ sessions, handle })
    const sessionId = await editor.begin()
    expect(await editor.prompt(sessionId, 'Pay.')).toEqual({ stopReason: 'cancelled' })
    expect([ran.length, (await sessions.open(sessionId)).phase]).toEqual([0, 'waiting'])
    expect(await editor.prompt(sessionId, 'Go on.')).toEqual({ stopReason: 'end_turn' })
    expect([ran.length, asked.length]).toEqual([1, 2])
    expect(editor.texts('agent_message_chunk')).toEqual(['Paid.', 'And now?'])
  })

  test('a person who does not decide again has declined, and the run reads the message', async () => {
    const ran: unknown[] = []
    const model = new ScriptedModel().calls('pay').says('As you like.')
    const { handle } = permits(() => null)
    const sessions = sessionsOf({ harness: harnessOf({ model, tools: [pay(ran)] }) })
    const editor = await editorOf({ sessions, handle })
    const sessionId = await editor.begin()
    await editor.prompt(sessionId, 'Pay.')
    expect(await editor.prompt(sessionId, 'Something else, please.')).toEqual({ stopReason: 'end_turn' })
    expect(ran).toEqual([])
    expect(JSON.stringify(model.requests[1]?.entries)).toContain('The person wrote instead.')
    expect(JSON.stringify(model.requests[1]?.entries)).toContain('Something else, please.')
  })
})

describe('AC-07 a loaded session', () => {
  test('that waits asks at once with `askOnLoad`', async () => {
    const ran: unknown[] = []
    const model = new ScriptedModel().calls('pay').says('Paid.')
    const log = fileLog(temporaryFolder())
    const harness = harnessOf({ model, tools: [pay(ran)] })
    const cwd = temporaryFolder()
    const first = await editorOf({ sessions: sessionsOf({ log, harness }), handle: permits(() => null).handle })
    const sessionId = await first.begin({ cwd })
    await first.prompt(sessionId, 'Pay.')
    first.leave()
    await first.serving.closed
    const { handle } = permits(() => 'allow_once')
    const second = await editorOf({ sessions: sessionsOf({ log, harness }), handle, askOnLoad: true })
    await second.agent.request('session/load', { sessionId, cwd, mcpServers: [] })
    await second.until((update) => update.sessionUpdate === 'agent_message_chunk')
    expect(ran).toHaveLength(1)
  })

  test('whose run was interrupted recovers nothing; `_thinharness/recover` and a prompt do', async () => {
    const log = fileLog(temporaryFolder())
    const asked = gate()
    const cwd = temporaryFolder()
    const stuck = new ScriptedModel().replies(() => {
      asked.open()
      return new Promise(() => undefined)
    })
    const dying = sessionsOf({ log, harness: harnessOf({ model: stuck }) })
    const chat = await dying.create({ metadata: { cwd } })
    await chat.send('Hi.')
    await asked.opened
    await dying.close()
    const model = new ScriptedModel().says('Hello.').says('More.')
    const sessions = sessionsOf({ log, harness: harnessOf({ model }) })
    const editor = await editorOf({ sessions })
    const { threadId: sessionId } = chat
    await editor.agent.request('session/load', { sessionId, cwd, mcpServers: [] })
    expect([(await sessions.open(sessionId)).phase, model.requests.length]).toEqual(['interrupted', 0])
    expect(await editor.agent.request('_thinharness/recover', { sessionId })).toEqual({ stopReason: 'end_turn' })
    expect(editor.texts('agent_message_chunk')).toEqual(['Hello.'])
    await expect(editor.agent.request('_thinharness/recover', { sessionId })).rejects.toThrow('No run')
    expect(await editor.prompt(sessionId, 'More?')).toEqual({ stopReason: 'end_turn' })
  })
})
