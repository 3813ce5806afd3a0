import { console as inspected } from 'node:inspector'
import { expect, test } from 'vitest'
import { Harness, defineTool, memoryLog } from 'thinharness'
import type { ResumeState } from 'thinharness'
import { anthropic } from 'thinharness/providers'
import { Sessions } from 'thinharness/session'
import { createHandlers } from 'thinharness/ui'
import { executedSince, listed, profiled } from './executed.js'

/** Functions that wait for one another, from the handler of a page to the one that posts. See docs/decisions/0017. */
const MOST_FRAMES = 48
/** Of the source, from a message of a page to the request to the model. */
const MOST_FILES = 137
/** Of the source, from the answer to an approval to the handler of the tool. */
const MOST_FILES_OF_AN_ANSWER = 86

const session = profiled()

/** A server that answers as the API does. `onRequest` is called at each request. */
function serverOf(block: () => object, onRequest: () => void): typeof fetch {
  return (_url, init) => {
    onRequest()
    const content = block()
    const [reason, usage] = ['text' in content ? 'end_turn' : 'tool_use', { input_tokens: 1, output_tokens: 1 }]
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-5', usage }
    if (typeof init?.body !== 'string' || !init.body.includes('"stream":true'))
      return Promise.resolve(Response.json({ ...message, content: [content], stop_reason: reason }))
    const events = [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
      { type: 'content_block_start', index: 0, content_block: content },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]
    const body = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
    return Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }))
  }
}

interface Frames {
  readonly callFrames: readonly { readonly url: string; readonly functionName: string; readonly lineNumber: number }[]
  readonly parent?: Frames
}

/** The functions of the source that are being called, with those that wait for them. */
function frames(): readonly string[] {
  const found: string[] = []
  const note = ({ params }: { readonly params: { readonly stackTrace?: Frames } }): void => {
    for (let trace = params.stackTrace; trace !== undefined; trace = trace.parent)
      for (const { url, functionName, lineNumber } of trace.callFrames)
        if (url.includes('/src/')) found.push(`${url.replace(/.*\/src\//, '')} ${functionName} ${lineNumber}`)
  }
  session.on('Runtime.consoleAPICalled', note as never)
  inspected.trace('The stack is read from this message.')
  session.off('Runtime.consoleAPICalled', note as never)
  return [...new Set(found)]
}

test(`a message of a page passes at most ${MOST_FRAMES} functions and ${MOST_FILES} files on its way to the model`, async () => {
  session.post('Runtime.enable')
  session.post('Debugger.setAsyncCallStackDepth', { maxDepth: 200 })
  let onRequest = (): void => undefined
  const fetch = serverOf(
    () => ({ type: 'text', text: 'Hi.' }),
    () => onRequest(),
  )
  const log = memoryLog()
  const harness = new Harness({ model: anthropic('claude-sonnet-5', { apiKey: 'k', fetch }), builtinTools: [], log })
  const sessions = new Sessions({ harness, log })
  const { aiSdk } = createHandlers({ sessions, authorize: () => ({ resourceId: 'u' }) })
  const send = async (id: string): Promise<void> => {
    const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }]
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://localhost/chat', {
      method: 'POST',
      headers,
      body: JSON.stringify({ id, messages }),
    })
    await (await aiSdk(request)).text()
  }
  // The first one loads what is needed.
  await send('first')
  let executed = executedSince(session)
  onRequest = () => (executed = executedSince(session))
  await send('second')
  let path: readonly string[] = []
  onRequest = () => (path = frames())
  await send('third')
  await sessions.close()
  expect(executed.size, listed(executed)).toBeGreaterThan(50)
  expect(executed.size, listed(executed)).toBeLessThanOrEqual(MOST_FILES)
  expect(path.length, path.join('\n')).toBeGreaterThan(20)
  expect(path.length, path.join('\n')).toBeLessThanOrEqual(MOST_FRAMES)
})

test(`the answer to an approval passes at most ${MOST_FILES_OF_AN_ANSWER} files on its way to the tool`, async () => {
  const asks = { type: 'tool_use', id: 'toolu_1', name: 'pay', input: {} }
  let content: object = asks
  const fetch = serverOf(
    () => content,
    () => undefined,
  )
  let executed = executedSince(session)
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: { type: 'object', properties: {}, additionalProperties: false },
    requiresApproval: true,
    handler() {
      executed = executedSince(session)
      return 'Paid.'
    },
  })
  const model = anthropic('claude-sonnet-5', { apiKey: 'k', fetch })
  await using harness = new Harness({ model, builtinTools: [], tools: [pay], log: memoryLog() })
  for (let time = 0; time < 2; time += 1) {
    content = asks
    const { resumeState, pending } = await harness.run('Pay.')
    const stored = JSON.parse(JSON.stringify(resumeState)) as ResumeState
    content = { type: 'text', text: 'Done.' }
    executedSince(session)
    await harness.resume(stored, [{ callId: pending[0]?.callId ?? '', approved: true }])
  }
  expect(executed.size, listed(executed)).toBeGreaterThan(30)
  expect(executed.size, listed(executed)).toBeLessThanOrEqual(MOST_FILES_OF_AN_ANSWER)
})
