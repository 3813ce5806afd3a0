import { createInterface } from 'node:readline'
import { PassThrough, Readable, Writable } from 'node:stream'
import { client, ndJsonStream } from '@agentclientprotocol/sdk'
import type {
  ClientApp,
  ClientCapabilities,
  ClientContext,
  NewSessionRequest,
  PromptResponse,
  SessionUpdate,
} from '@agentclientprotocol/sdk'
import { onTestFinished } from 'vitest'
import { serveAcp } from 'thinharness/acp'
import type { AcpOptions, AcpServing } from 'thinharness/acp'
import type { Modes, Sessions } from 'thinharness/session'
import { temporaryFolder } from '../../session/support.js'

export interface EditorOptions<M extends Modes> extends AcpOptions {
  readonly sessions: Sessions<M>
  readonly capabilities?: ClientCapabilities
  /** Adds handlers for what the agent asks. */
  readonly handle?: (app: ClientApp) => ClientApp
}

/** An update, and the session that it belongs to. */
export type Told = SessionUpdate & { readonly sessionId: string }

export interface Editor {
  readonly agent: ClientContext
  readonly updates: readonly Told[]
  readonly serving: AcpServing
  /** Everything that the agent has written, by lines. */
  readonly lines: () => readonly string[]
  /** Begins a session in a temporary folder; gives its id. */
  begin(request?: Partial<NewSessionRequest>): Promise<string>
  prompt(sessionId: string, text: string, meta?: object): Promise<PromptResponse>
  /** The texts that were told, by kind, neighbours joined. */
  texts(kind: 'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk'): readonly string[]
  /** Resolves when an update fits. */
  until(fits: (update: Told) => boolean): Promise<Told>
  /** Forgets the updates so far. */
  clear(): void
  /** The editor goes away. */
  leave(): void
}

/** The official client, connected to sessions by a pair of streams. */
export async function editorOf<M extends Modes>(options: EditorOptions<M>): Promise<Editor> {
  const { sessions, capabilities = {}, handle = (app: ClientApp): ClientApp => app, ...given } = options
  const [toAgent, fromAgent] = [new PassThrough(), new PassThrough()]
  const written: Buffer[] = []
  fromAgent.on('data', (chunk: Buffer) => written.push(chunk))
  const serving = await serveAcp(sessions, { ...given, input: toAgent, output: fromAgent })
  const updates: Told[] = []
  const listeners = new Set<() => void>()
  const app = handle(client({ name: 'editor' })).onNotification('session/update', ({ params }) => {
    updates.push({ ...params.update, sessionId: params.sessionId })
    for (const listener of listeners) listener()
  })
  const stream = ndJsonStream(Writable.toWeb(toAgent) as WritableStream<Uint8Array>, Readable.toWeb(fromAgent))
  const connection = app.connect(stream)
  onTestFinished(async () => {
    connection.close()
    toAgent.end()
    await serving.close()
  })
  const { agent } = connection
  await agent.request('initialize', { protocolVersion: 1, clientCapabilities: capabilities })
  return {
    ...{ agent, updates, serving },
    lines: () =>
      Buffer.concat(written)
        .toString()
        .split('\n')
        .filter((line) => line !== ''),
    begin: async (request = {}) => {
      const { sessionId } = await agent.request('session/new', { cwd: temporaryFolder(), mcpServers: [], ...request })
      return sessionId
    },
    prompt: (sessionId, text, meta) =>
      agent.request('session/prompt', {
        ...{ sessionId, prompt: [{ type: 'text', text }] },
        ...(meta !== undefined && { _meta: { thinharness: meta } }),
      }),
    texts: (kind) => textsOf(updates, kind),
    until: (fits) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = updates.find(fits)
          if (found === undefined) return
          listeners.delete(look)
          resolve(found)
        }
        listeners.add(look)
        look()
      }),
    clear: () => void (updates.length = 0),
    leave: () => void toAgent.end(),
  }
}

interface PlainMessage {
  readonly id?: string | number | undefined
  readonly method?: string
  readonly params?: object
  readonly result?: unknown
}

/** An editor by hand: each `write` is one piece of bytes, whatever messages it has. */
export async function plainEditor<M extends Modes>(sessions: Sessions<M>, options: AcpOptions) {
  const [toAgent, fromAgent] = [new PassThrough(), new PassThrough()]
  const serving = await serveAcp(sessions, { ...options, input: toAgent, output: fromAgent })
  onTestFinished(async () => {
    toAgent.end()
    await serving.close()
  })
  const write = (...messages: readonly PlainMessage[]): void =>
    void toAgent.write(messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join(''))
  const lines = createInterface({ input: fromAgent })[Symbol.asyncIterator]()
  const read = async (fits: (message: PlainMessage) => boolean): Promise<PlainMessage> => {
    for (;;) {
      const line = await lines.next()
      if (line.done === true) throw new Error('The agent has ended.')
      const message = JSON.parse(line.value) as PlainMessage
      if (fits(message)) return message
    }
  }
  const clientCapabilities = { elicitation: { form: {} } }
  write({ id: 'init', method: 'initialize', params: { protocolVersion: 1, clientCapabilities } })
  await read(({ id }) => id === 'init')
  const begin = async (): Promise<string> => {
    write({ id: 'new', method: 'session/new', params: { cwd: temporaryFolder(), mcpServers: [] } })
    const { result } = await read(({ id }) => id === 'new')
    return (result as { readonly sessionId: string }).sessionId
  }
  return { write, read, begin }
}

/** Texts by message. */
export function textsOf(updates: readonly SessionUpdate[], kind: SessionUpdate['sessionUpdate']): readonly string[] {
  const texts = new Map<string, string>()
  for (const update of updates) {
    if (update.sessionUpdate !== kind || !('content' in update) || update.content === null) continue
    const { content, messageId } = update as { content: { type: string; text?: string }; messageId?: string | null }
    texts.set(messageId ?? '', (texts.get(messageId ?? '') ?? '') + (content.text ?? `[${content.type}]`))
  }
  return [...texts.values()]
}

/** The code and the message of an error of the protocol. */
export async function failureOf(promise: Promise<unknown>): Promise<{ code: number; message: string; data?: unknown }> {
  const error: unknown = await promise.then(
    (value) => new Error(`Expected a failure, got ${JSON.stringify(value)}.`),
    (thrown: unknown) => thrown,
  )
  const { code, message, data } = error as { code: number; message: string; data?: unknown }
  return { code, message, ...(data !== undefined && { data }) }
}
