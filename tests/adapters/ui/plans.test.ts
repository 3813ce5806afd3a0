import { expect, onTestFinished, test } from 'vitest'
import { Sessions, submitPlan } from 'thinharness/session'
import type { Modes } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, localOnly } from 'thinharness/ui'
import type { Handlers } from 'thinharness/ui'
import { harnessOf } from '../../harness/support.js'
import { editorOf } from '../acp/support.js'
import { slowLog } from './support/slow-log.js'

const BASE = 'http://localhost/api'

function post(path: string, body: object): Request {
  const headers = { 'content-type': 'application/json' }
  return new Request(`${BASE}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

function sessionsWithPlan(): Sessions {
  const modes: Modes = {
    plan: harnessOf({
      model: new ScriptedModel().calls('submit_plan', { plan: '1. Build.' }),
      use: [submitPlan({ then: 'build' })],
    }),
    build: harnessOf({ model: new ScriptedModel().says('Built.') }),
  }
  const sessions = new Sessions({ log: slowLog(), modes, defaultMode: 'plan' })
  onTestFinished(() => sessions.close())
  return sessions
}

/** Handlers of a conversation whose plan waits for a person. */
async function planned(): Promise<{ handlers: Handlers; runId: string }> {
  const sessions = sessionsWithPlan()
  const handlers = createHandlers({ sessions, authorize: localOnly })
  const sent = await handlers.requests(post('/threads/t1/messages', { text: 'Go.', messageId: 'm1' }))
  const { runId } = (await sent.json()) as { readonly runId: string }
  await (await sessions.open('t1')).whenIdle()
  return { handlers, runId }
}

const answers = [{ callId: 'call_1', answer: { action: 'approved' } }]

/** An approval of the plan, and the stream that its client reads. */
const CLIENTS: Readonly<Record<string, (handlers: Handlers, runId: string) => Promise<Response>>> = {
  aiSdk: ({ aiSdk }) => aiSdk(post('/chat', { id: 't1', messages: [], answers })),
  agUi: ({ agUi }) =>
    agUi(
      post('/agui', {
        ...{ threadId: 't1', runId: 'r2', messages: [], tools: [], context: [] },
        resume: [{ interruptId: 'call_1', status: 'resolved', payload: { action: 'approved' } }],
      }),
    ),
  responses: ({ responses }, runId) =>
    responses(post('/responses', { previous_response_id: runId, stream: true, answers })),
  async native({ events, requests }, runId) {
    expect((await requests(post(`/runs/${runId}/answers`, { answers }))).status).toBe(202)
    return events(new Request(`${BASE}/runs/${runId}/events`))
  },
}

test.each(Object.entries(CLIENTS))(
  'one stream goes from the approval of a plan to the end of the run: %s',
  async (_, read) => {
    const { handlers, runId } = await planned()
    const text = await (await read(handlers, runId)).text()
    expect(text).toContain('Built.')
    expect(text).not.toMatch(/interrupted|RUN_ERROR|"type":"error"|response\.failed/)
  },
)

test('a prompt of an editor goes on with the plan that was approved', async () => {
  const editor = await editorOf({
    sessions: sessionsWithPlan(),
    handle: (app) =>
      app.onRequest('session/request_permission', ({ params }) => ({
        outcome: {
          outcome: 'selected',
          optionId: params.options.find(({ kind }) => kind === 'allow_once')?.optionId ?? '',
        },
      })),
  })
  expect(await editor.prompt(await editor.begin(), 'Go.')).toEqual({ stopReason: 'end_turn' })
  expect(editor.texts('agent_message_chunk')).toEqual(['Built.'])
})
