import { describe, expect, onTestFinished, test } from 'vitest'
import { AbstractChat as Chat5, DefaultChatTransport as Transport5 } from 'ai5'
import { AbstractChat as Chat6, DefaultChatTransport as Transport6 } from 'ai6'
import { AbstractChat as Chat7, DefaultChatTransport as Transport7 } from 'ai7'
import type { ChatState, UIMessage } from 'ai7'
import { memoryLog } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers } from 'thinharness/ui'
import type { Handlers } from 'thinharness/ui'
import { harnessOf, tool } from '../../harness/support.js'

/** The state of a chat without a page. */
class PlainState implements ChatState<UIMessage> {
  status: ChatState<UIMessage>['status'] = 'ready'
  error: Error | undefined
  messages: UIMessage[] = []
  readonly pushMessage = (message: UIMessage): void => void this.messages.push(message)
  readonly popMessage = (): void => void this.messages.pop()
  readonly replaceMessage = (index: number, message: UIMessage): void =>
    void (this.messages[index] = structuredClone(message))
  readonly snapshot = <T>(thing: T): T => structuredClone(thing)
}

const CLIENTS = {
  5: [Chat5, Transport5],
  6: [Chat6, Transport6],
  7: [Chat7, Transport7],
} as const

interface PlainChat {
  readonly messages: UIMessage[]
  readonly status: string
  readonly error: Error | undefined
  sendMessage(message?: { readonly text: string }, options?: { readonly body?: object }): Promise<void>
  resumeStream(): Promise<void>
  addToolApprovalResponse?(answer: { readonly id: string; readonly approved: boolean }): Promise<void>
}

/** A chat of that version of the AI SDK, over the handler. */
function chatOf(dialect: 5 | 6 | 7, { aiSdk }: Pick<Handlers, 'aiSdk'>): PlainChat {
  const [Chat, Transport] = CLIENTS[dialect] as unknown as readonly [
    new (options: object) => PlainChat,
    new (options: object) => object,
  ]
  class Concrete extends Chat {}
  const fetched = (url: string, init?: RequestInit): Promise<Response> =>
    aiSdk(new Request(`http://localhost${url}${url.includes('?') ? '&' : '?'}dialect=${dialect}`, init))
  const transport = new Transport({ api: '/api/chat', fetch: fetched })
  return new Concrete({ id: 'c1', state: new PlainState(), transport, generateId: idsOf() })
}

function idsOf(): () => string {
  let count = 0
  return () => `m${(count += 1)}`
}

function served(kind: 'sessions' | 'harness', model: ScriptedModel): Handlers {
  const log = memoryLog()
  const tools = [tool('look', () => 'seen'), tool('pay', () => 'paid', { requiresApproval: true })]
  if (kind === 'harness') {
    const harness = harnessOf({ model, tools, log })
    onTestFinished(() => harness.close())
    return createHandlers({ harness, log })
  }
  const sessions = new Sessions({ log, harness: harnessOf({ model, tools }) })
  onTestFinished(() => sessions.close())
  return createHandlers({ sessions })
}

const combinations = ([5, 6, 7] as const).flatMap((dialect) =>
  (['sessions', 'harness'] as const).map((kind) => ({ dialect, kind })),
)

describe.each(combinations)('a chat of AI SDK $dialect over $kind', ({ dialect, kind }) => {
  test('UI-02 UI-04 UI-09 text, a call and its result are one message', async () => {
    const chat = chatOf(dialect, served(kind, new ScriptedModel().calls('look', { at: 1 }).says('Done.')))
    await chat.sendMessage({ text: 'Look.' })
    expect(chat.error).toBeUndefined()
    expect(chat.status).toBe('ready')
    expect(chat.messages).toHaveLength(2)
    const parts = chat.messages[1]?.parts.map(({ type, ...part }) => ({ type, ...part }))
    expect(parts).toMatchObject([
      { type: 'step-start' },
      { type: 'dynamic-tool', toolCallId: 'call_1', state: 'output-available', input: { at: 1 }, output: 'seen' },
      { type: 'step-start' },
      { type: 'text', text: 'Done.', state: 'done' },
    ])
  })

  test('UI-22 UI-24 an approval continues the same message', async () => {
    const chat = chatOf(dialect, served(kind, new ScriptedModel().calls('pay', {}).says('Paid.')))
    await chat.sendMessage({ text: 'Pay.' })
    expect(chat.error).toBeUndefined()
    const waiting = chat.messages[1]
    expect(waiting?.parts.find(({ type }) => type === 'data-pending')).toMatchObject({
      data: { items: [{ callId: 'call_1' }] },
    })
    if (dialect === 5) await chat.sendMessage(undefined, { body: { answers: [{ callId: 'call_1', approved: true }] } })
    else {
      await chat.addToolApprovalResponse?.({ id: 'call_1', approved: true })
      await chat.sendMessage()
    }
    expect(chat.error).toBeUndefined()
    expect(chat.messages).toHaveLength(2)
    expect(chat.messages[1]?.parts.filter(({ type }) => type === 'dynamic-tool')).toMatchObject([
      { toolCallId: 'call_1', state: 'output-available', output: 'paid' },
    ])
    expect(chat.messages[1]?.parts.at(-1)).toMatchObject({ type: 'text', text: 'Paid.' })
  })
})
