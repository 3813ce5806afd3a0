import {
  AbstractChat as Chat5,
  DefaultChatTransport as Transport5,
  lastAssistantMessageIsCompleteWithToolCalls as whenCalled5,
} from 'ai5'
import {
  AbstractChat as Chat6,
  DefaultChatTransport as Transport6,
  lastAssistantMessageIsCompleteWithApprovalResponses as whenAnswered6,
} from 'ai6'
import {
  AbstractChat as Chat7,
  DefaultChatTransport as Transport7,
  lastAssistantMessageIsCompleteWithApprovalResponses as whenAnswered7,
} from 'ai7'
import type { ChatState, UIMessage } from 'ai7'
import type { Dialect } from 'thinharness/ui'

/** The state of a chat without a page. */
class PlainState implements ChatState<UIMessage> {
  status: ChatState<UIMessage>['status'] = 'ready'
  error: Error | undefined
  messages: UIMessage[] = []
  readonly pushMessage = (message: UIMessage): void => void this.messages.push(structuredClone(message))
  readonly popMessage = (): void => void this.messages.pop()
  readonly replaceMessage = (index: number, message: UIMessage): void =>
    void (this.messages[index] = structuredClone(message))
  readonly snapshot = <T>(thing: T): T => structuredClone(thing)
}

const CLIENTS = {
  5: [Chat5, Transport5, whenCalled5],
  6: [Chat6, Transport6, whenAnswered6],
  7: [Chat7, Transport7, whenAnswered7],
} as const

type SendsWhen = (options: { readonly messages: UIMessage[] }) => boolean

export interface PlainChat {
  messages: UIMessage[]
  readonly status: string
  readonly error: Error | undefined
  sendMessage(message?: { readonly text: string }, options?: { readonly body?: object }): Promise<void>
  regenerate(options?: { readonly messageId?: string }): Promise<void>
  resumeStream(): Promise<void>
  stop(): Promise<void>
  addToolApprovalResponse(answer: {
    readonly id: string
    readonly approved: boolean
    readonly reason?: string
  }): Promise<void>
  addToolOutput(output: { readonly tool: string; readonly toolCallId: string; readonly output: unknown }): Promise<void>
}

export interface ChatOptions {
  readonly fetch: (url: string, init?: RequestInit) => Promise<Response>
  /** Default: the default transport of that version. */
  readonly transport?: object
  /** `helper`: the one of that version. Default: never. */
  readonly sendsWhen?: 'helper' | SendsWhen
  readonly messages?: readonly UIMessage[]
  /** Of the conversation. Default `c1`. */
  readonly id?: string
}

/** A chat of one version of the AI SDK. */
export function plainChat(
  dialect: Dialect,
  { fetch, transport, sendsWhen, messages = [], id = 'c1' }: ChatOptions,
): PlainChat {
  const [Chat, Transport, helper] = CLIENTS[dialect] as unknown as readonly [
    new (options: object) => PlainChat,
    new (options: object) => object,
    SendsWhen,
  ]
  class Concrete extends Chat {}
  let count = 0
  const state = new PlainState()
  state.messages = structuredClone([...messages])
  return new Concrete({
    ...{ id, state, generateId: () => `m${(count += 1)}` },
    transport: transport ?? new Transport({ api: '/api/chat', fetch }),
    ...(sendsWhen !== undefined && { sendAutomaticallyWhen: sendsWhen === 'helper' ? helper : sendsWhen }),
  })
}

/** The requests of a chat, served by a handler in that dialect. */
export function fetchOf(dialect: Dialect, handler: (request: Request) => Promise<Response>): ChatOptions['fetch'] {
  return (url, init) =>
    handler(
      new Request(
        `http://localhost${url}${/dialect=/.test(url) ? '' : `${url.includes('?') ? '&' : '?'}dialect=${dialect}`}`,
        init,
      ),
    )
}
