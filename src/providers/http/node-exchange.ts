import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { systemErrorCode, connectionError, markUnsent, providerError } from './provider-errors.js'
import { flatHeaders } from './exchange.js'
import type { HttpResponse, Exchange, PostRequest } from './exchange.js'
import { readableBody } from './readable-body.js'
import type { RequestGuard } from './request-guard.js'
import type { Connections } from './connections.js'
import { connectionsFor, ahead, closeKept, dropKept, requestTarget } from './connections.js'

/**
 * The default exchange: `node:http` and `node:https` with kept connections, which all models of the process share.
 * Idle connections do not keep the process alive.
 */
export function httpExchange(): Exchange {
  let isUser = false
  const use = (): void => {
    if (!isUser) users += 1
    isUser = true
  }
  return {
    async post(request, guard) {
      use()
      const connections = await connectionsFor(request.url.protocol)
      const incoming = await guard.wait('connectMs', () => responseHead(request, connections, guard))
      const { authority: host } = requestTarget(request.url)
      const { read } = await readableBody(incoming, { host, encoding: incoming.headers['content-encoding'] }, guard)
      return new HttpAnswer(incoming, read)
    },
    async connect(url, guard) {
      use()
      const { agent, defaultPort, opened } = await connectionsFor(url.protocol)
      const { host, port = defaultPort, authority } = requestTarget(url)
      const { openAhead } = await import('./open-ahead.js')
      const opening = (): Promise<void> => openAhead({ agent, host, port, opened }, ahead[opened], guard)
      await guard.wait('connectMs', opening, (error) => connectionError(error, authority, false))
    },
    async close() {
      if (isUser) users -= 1
      isUser = false
      if (users === 0) await closeKept()
    },
  }
}

/** The headers are only read of an answer that is an error. */
class HttpAnswer implements HttpResponse {
  readonly status: number
  readonly read: HttpResponse['read']
  readonly #incoming: IncomingMessage

  constructor(incoming: IncomingMessage, read: HttpResponse['read']) {
    this.status = incoming.statusCode ?? 0
    this.read = read
    this.#incoming = incoming
  }

  get headers(): HttpResponse['headers'] {
    return flatHeaders(this.#incoming.headers)
  }
}

/** Exchanges that have sent something and are not closed. */
let users = 0

/** Resolves when the head of the answer has arrived. */
function responseHead(request: PostRequest, connections: Connections, guard: RequestGuard): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = openRequest(request, connections)
    guard.onStop(() => outgoing.destroy())
    let received: number | null = null
    outgoing.once('socket', (socket) => {
      received = socket.connecting ? null : socket.bytesRead
      if (socket.connecting) socket.once(connections.opened, () => guard.enter('firstByteMs'))
      else guard.enter('firstByteMs')
    })
    let hasAnswer = false
    outgoing.once('response', (incoming) => {
      hasAnswer = true
      resolve(incoming)
    })
    outgoing.on('error', (error) => {
      const isStale = isStaleSocket(outgoing, error, received)
      if (isStale) dropKept(connections, request.url)
      reject(isStale ? staleError(error) : connectionError(error, request.url.host, false))
    })
    outgoing.on('close', () => {
      if (!hasAnswer) reject(connectionError(new Error('it was closed'), request.url.host, false))
    })
    for (const piece of request.body) outgoing.write(piece)
    outgoing.end()
  })
}

/** Node writes a flat list of headers as it is, without copying and checking each. */
function openRequest(
  { url, method = 'POST', headers, body }: PostRequest,
  { request, agent }: Connections,
): ClientRequest {
  let length = 0
  for (const piece of body) length += piece.length
  const { host, port, path, authority } = requestTarget(url)
  const list = ['host', authority, 'content-length', String(length), ...headerList(headers)]
  try {
    return request({ host, port, path, method, agent, headers: list })
  } catch (error) {
    // A header cannot be sent.
    throw connectionError(error, authority, false)
  }
}

/** Headers as Node's flat list: most requests of a model have the same object. */
const lists = new WeakMap<PostRequest['headers'], readonly string[]>()

function headerList(headers: PostRequest['headers']): readonly string[] {
  let list = lists.get(headers)
  if (list === undefined) lists.set(headers, (list = Object.entries(headers).flat()))
  return list
}

/**
 * True if the server had closed an open connection while it was idle: it was `received` before the request, and nothing after it. Null:
 * the connection was new.
 */
function isStaleSocket({ socket }: { readonly socket: Socket | null }, error: Error, received: number | null): boolean {
  const code = systemErrorCode(error)
  return received !== null && (code === 'ECONNRESET' || code === 'EPIPE') && socket?.bytesRead === received
}

/** Retried at once. All kept connections to the server have been dropped, so the next attempt opens a new one. */
function staleError(cause: Error): Error {
  const message = 'The server had closed the kept connection that the request was sent on.'
  return markUnsent(providerError(message, { cause, retryable: true, retryAfterMs: 0, failure: 'connection' }))
}
