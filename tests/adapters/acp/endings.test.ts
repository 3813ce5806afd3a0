import { describe, expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import type { HarnessOptions } from 'thinharness'
import { askUser } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { masking } from '../../core/extension/masking.js'
import { harnessOf, tool } from '../../harness/support.js'
import { gate, sessionsOf, temporaryFolder, until } from '../../session/support.js'
import { editorOf, failureOf, plainEditor } from './support.js'

/** A model that does not answer; `asked` resolves when it is asked. */
function silent(): { readonly model: ScriptedModel; readonly asked: Promise<void> } {
  const { opened: asked, open } = gate()
  const model = new ScriptedModel().replies(({ options }) => {
    options.onDelta?.({ kind: 'text_delta', text: 'Wait' })
    open()
    return new Promise(() => undefined)
  })
  return { model, asked }
}

describe('AC-18 a cancelled prompt', () => {
  test('ends as cancelled, after the updates that were due', async () => {
    const { opened: started, open: start } = gate()
    const model = new ScriptedModel().calls('wait').says('Next.')
    const wait = tool('wait', (_args, { signal }) => {
      start()
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
    })
    const sessions = sessionsOf({ harness: harnessOf({ model, tools: [wait] }) })
    const editor = await editorOf({ sessions })
    const sessionId = await editor.begin()
    const prompted = editor.prompt(sessionId, 'Wait.')
    await started
    await editor.agent.notify('session/cancel', { sessionId })
    expect(await prompted).toEqual({ stopReason: 'cancelled' })
    expect(editor.updates.at(-1)).toMatchObject({ sessionUpdate: 'tool_call_update', status: 'failed' })
    expect(await editor.prompt(sessionId, 'Next.')).toEqual({ stopReason: 'end_turn' })
  })

  test('AC-21 so does one whose request is cancelled', async () => {
    const { model, asked } = silent()
    const editor = await editorOf({ sessions: sessionsOf({ harness: harnessOf({ model }) }) })
    const sessionId = await editor.begin()
    const cancelling = new AbortController()
    const prompted = editor.agent.request(
      'session/prompt',
      { sessionId, prompt: [{ type: 'text', text: 'Hi.' }] },
      { cancellationSignal: cancelling.signal },
    )
    await asked
    cancelling.abort()
    expect(await prompted).toEqual({ stopReason: 'cancelled' })
  })
})

describe('AC-19 cancel', () => {
  test('while a person is asked: the request is withdrawn, and the run stays paused', async () => {
    const model = new ScriptedModel().calls('pay')
    const pay = tool('pay', () => 'paid', { requiresApproval: true })
    const { opened: asked, open } = gate()
    const { opened: withdrawn, open: withdraw } = gate()
    const sessions = sessionsOf({ harness: harnessOf({ model, tools: [pay] }) })
    const editor = await editorOf({
      sessions,
      handle: (app) =>
        app.onRequest('session/request_permission', async ({ signal }) => {
          open()
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
          withdraw()
          return { outcome: { outcome: 'cancelled' } }
        }),
    })
    const sessionId = await editor.begin()
    const prompted = editor.prompt(sessionId, 'Pay.')
    await asked
    await editor.agent.notify('session/cancel', { sessionId })
    expect(await prompted).toEqual({ stopReason: 'cancelled' })
    await withdrawn
    expect((await sessions.open(sessionId)).phase).toBe('waiting')
  })

  test.each([
    ['a permission that is cancelled', 'session/request_permission', { outcome: { outcome: 'cancelled' } }],
    [
      'a permission that is given',
      'session/request_permission',
      { outcome: { outcome: 'selected', optionId: 'allow_always' } },
    ],
    ['a form that is cancelled', 'elicitation/create', { action: 'cancel' }],
    ['a form that is declined', 'elicitation/create', { action: 'decline' }],
  ])(
    'in one write with %s, in either order: the prompt is cancelled, and nothing runs',
    async (_name, method, answer) => {
      for (const isLast of [true, false]) {
        const ran: string[] = []
        const model = new ScriptedModel().calls(method === 'elicitation/create' ? 'ask_user' : 'pay', {
          question: 'Why?',
        })
        const tools = [tool('pay', () => void ran.push('paid'), { requiresApproval: true }), askUser()]
        const sessions = sessionsOf({ harness: harnessOf({ model: model.says('Done.'), tools }) })
        const editor = await plainEditor(sessions, { remember: () => void ran.push('remembered') })
        const sessionId = await editor.begin()
        editor.write({
          id: 'prompt',
          method: 'session/prompt',
          params: { sessionId, prompt: [{ type: 'text', text: 'Go.' }] },
        })
        const { id } = await editor.read((message) => message.method === method)
        const cancel = { method: 'session/cancel', params: { sessionId } }
        editor.write(...(isLast ? [{ id, result: answer }, cancel] : [cancel, { id, result: answer }]))
        expect(await editor.read((message) => message.id === 'prompt')).toMatchObject({
          result: { stopReason: 'cancelled' },
        })
        expect([ran, (await sessions.open(sessionId)).phase, model.requests.length]).toEqual([[], 'waiting', 1])
      }
    },
  )

  test('is what a cancelled permission is alone: the prompt ends as cancelled, and what it asked for waits', async () => {
    const model = new ScriptedModel().callsAll([{ name: 'pay' }, { name: 'pay' }])
    const ran: string[] = []
    const pay = tool('pay', () => void ran.push('paid'), { requiresApproval: true })
    const sessions = sessionsOf({ harness: harnessOf({ model, tools: [pay] }) })
    const outcomes = [{ outcome: 'cancelled' }, { outcome: 'selected', optionId: 'allow' }] as const
    let count = 0
    const editor = await editorOf({
      sessions,
      handle: (app) =>
        app.onRequest('session/request_permission', () => ({ outcome: outcomes[count++] ?? outcomes[0] })),
    })
    const sessionId = await editor.begin()
    expect(await editor.prompt(sessionId, 'Pay.')).toEqual({ stopReason: 'cancelled' })
    const { phase, pending } = await sessions.open(sessionId)
    expect([ran, phase, pending.length]).toEqual([[], 'waiting', 2])
  })

  test('with no prompt under way does nothing', async () => {
    const model = new ScriptedModel().says('Hello.')
    const editor = await editorOf({ sessions: sessionsOf({ harness: harnessOf({ model }) }) })
    const sessionId = await editor.begin()
    await editor.agent.notify('session/cancel', { sessionId })
    await editor.agent.notify('session/cancel', { sessionId: 'nobody' })
    expect(await editor.prompt(sessionId, 'Hi.')).toEqual({ stopReason: 'end_turn' })
  })
})

describe('AC-20 endings', () => {
  const endOf = async (model: ScriptedModel, options: Partial<HarnessOptions> = {}) => {
    const { tools = [tool('look', () => 'seen')], ...more } = options
    const editor = await editorOf({ sessions: sessionsOf({ harness: harnessOf({ model, tools, ...more }) }) })
    const sessionId = await editor.begin()
    return { end: await editor.prompt(sessionId, 'Go.').catch(() => null), editor, sessionId }
  }

  test.each<readonly [string, ScriptedModel, Partial<HarnessOptions>, string]>([
    ['requests', new ScriptedModel().calls('look'), { limits: { modelRequests: 1 } }, 'max_turn_requests'],
    ['calls', new ScriptedModel().calls('look'), { limits: { toolCalls: 0 } }, 'max_turn_requests'],
    ['tokens', new ScriptedModel().calls('look'), { limits: { inputTokens: 5 } }, 'max_tokens'],
    ['a reply that was cut off', new ScriptedModel().says('Lon', { finishReason: 'length' }), {}, 'max_tokens'],
    ['a refusal', new ScriptedModel().refuses('No.'), {}, 'refusal'],
    ['a filter', new ScriptedModel().says('', { finishReason: 'content_filter' }), {}, 'refusal'],
  ])('%s', async (_name, model, options, stopReason) => {
    expect((await endOf(model, options)).end).toEqual({ stopReason })
  })

  test('a limit of money or time is named by a message', async () => {
    const price = { inputPerMillion: 1, outputPerMillion: 1 }
    const model = new ScriptedModel().calls('look').says('Done.')
    const { end, editor } = await endOf(model, {
      ...{ limits: { costUsd: 0.000_001 }, prices: { unknown: price } },
    })
    expect(end).toEqual({ stopReason: 'max_turn_requests' })
    expect(editor.texts('agent_message_chunk').join('')).toContain('cost_usd')
  })

  test('a hook that stops the run is reported by a message', async () => {
    const { end, editor } = await endOf(new ScriptedModel(), {
      hooks: [{ event: 'user_prompt_submit', handler: () => ({ cancel: 'Not now.' }) }],
    })
    expect(end).toEqual({ stopReason: 'end_turn' })
    expect(editor.texts('agent_message_chunk')).toEqual(['The run was stopped by the application.'])
  })

  test('other failures are errors with a code and the run, and no words of the program', async () => {
    const model = new ScriptedModel().fails(new HarnessError('provider_error', 'The key `sk-123` is wrong.'))
    const editor = await editorOf({ sessions: sessionsOf({ harness: harnessOf({ model }) }) })
    const failure = await failureOf(editor.prompt(await editor.begin(), 'Go.'))
    expect(failure).toEqual({
      code: -32_603,
      message: 'The model could not be reached, or refused the request.',
      data: { code: 'provider_error', stopReason: 'provider_error', runId: expect.any(String) as string },
    })
  })
})

describe('AC-22 a second prompt', () => {
  test('is refused, or steers the run', async () => {
    const { opened: started, open: start } = gate()
    const { opened: going, open: go } = gate()
    const model = new ScriptedModel().calls('wait').says('Blue it is.')
    const wait = tool('wait', async () => {
      start()
      await going
      return 'done'
    })
    const editor = await editorOf({ sessions: sessionsOf({ harness: harnessOf({ model, tools: [wait] }) }) })
    const sessionId = await editor.begin()
    const prompted = editor.prompt(sessionId, 'Paint.')
    await started
    expect(await failureOf(editor.prompt(sessionId, 'Blue.'))).toMatchObject({ code: -32_600 })
    const steered = editor.prompt(sessionId, 'Blue.', { steer: true })
    await editor.agent.request('session/list', {}).catch(() => undefined)
    go()
    expect(await Promise.all([prompted, steered])).toEqual([{ stopReason: 'end_turn' }, { stopReason: 'end_turn' }])
    expect(JSON.stringify(model.requests[1]?.entries)).toContain('Blue.')
    expect(editor.texts('user_message_chunk')).toEqual([])
  })
})

test('AC-23 an editor that goes away stops what nobody else follows', async () => {
  const { model, asked } = silent()
  const sessions = sessionsOf({ harness: harnessOf({ model }) })
  const editor = await editorOf({ sessions })
  const sessionId = await editor.begin()
  const prompted = editor.prompt(sessionId, 'Hi.').catch(() => null)
  await asked
  editor.leave()
  await editor.serving.closed
  await prompted
  const chat = await sessions.open(sessionId)
  expect([chat.phase, chat.snapshot.runs[0]?.status]).toEqual(['idle', 'cancelled'])
})

test('AC-23 a run that somebody else follows continues without the editor', async () => {
  const { opened: asked, open } = gate()
  const { opened: going, open: go } = gate()
  const model = new ScriptedModel().replies(async () => {
    open()
    await going
    return 'Done.'
  })
  const sessions = sessionsOf({ harness: harnessOf({ model }) })
  const editor = await editorOf({ sessions })
  const sessionId = await editor.begin()
  const prompted = editor.prompt(sessionId, 'Hi.').catch(() => null)
  await asked
  const chat = await sessions.open(sessionId)
  const ended = until(chat, ({ kind }) => kind === 'run_completed' || kind === 'run_failed')
  editor.leave()
  await editor.serving.closed
  go()
  expect((await ended).kind).toBe('run_completed')
  await prompted
})

test('AC-25 the basic profile: a prompt, a cancel in flight, an idle cancel and a further prompt', async () => {
  const { model, asked } = silent()
  model.says('Again.')
  const editor = await editorOf({ sessions: sessionsOf({ harness: harnessOf({ model, tools: [askUser()] }) }) })
  const sessionId = await editor.begin()
  const first = editor.prompt(sessionId, 'Hi.')
  await asked
  await editor.agent.notify('session/cancel', { sessionId })
  expect(await first).toEqual({ stopReason: 'cancelled' })
  await editor.agent.notify('session/cancel', { sessionId })
  expect(await editor.prompt(sessionId, 'Hi again.')).toEqual({ stopReason: 'end_turn' })
  expect(await failureOf(editor.agent.request('session/prompt', { sessionId } as never))).toMatchObject({
    code: -32_602,
  })
  expect(editor.texts('agent_message_chunk').at(-1)).toBe('Again.')
})

test('an editor sees what the filters of the harness let pass, live and when the session is loaded', async () => {
  const key = 'sk-SECRET1'
  const model = new ScriptedModel()
    .calls('look', { key }, { text: `I use ${key}.`, reasoning: key })
    .says(`It was ${key}.`)
  const harness = harnessOf({ model, tools: [tool('look', () => key)], use: [masking] })
  const editor = await editorOf({ sessions: sessionsOf({ harness }) })
  const cwd = temporaryFolder()
  const sessionId = await editor.begin({ cwd })
  await editor.prompt(sessionId, 'Go.')
  await editor.agent.request('session/load', { sessionId, cwd, mcpServers: [] })
  expect(editor.lines().join()).toContain('[key]')
  expect(editor.lines().join()).not.toContain('SECRET1')
})
