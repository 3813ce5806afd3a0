import type { Agent, ClientRequest, IncomingMessage, request as HttpRequest } from 'node:http'
import type { Socket } from 'node:net'
import { systemErrorCode, connectionError, markUnsent, providerError } from './errors.js'
import { flatHeaders } from './exchange.js'
import type { HttpResponse, Exchange, PostRequest } from './exchange.js'
import { readableBody } from './readable-body.js'
import type { RequestGuard } from './request-guard.js'

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
      const { openAhead } = await import('./ahead.js')
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

/** The connections of one protocol. */
interface Connections {
  readonly request: typeof HttpRequest
  readonly agent: Agent
  readonly defaultPort: number
  /** The socket's event for an open connection. */
  readonly opened: 'connect' | 'secureConnect'
}

/** Idle connections are closed before common load balancers drop them, after a minute; in ms. */
const KEPT_FOR_MS = 55_000

const AGENT_OPTIONS = { keepAlive: true, scheduling: 'lifo', timeout: KEPT_FOR_MS } as const

/** Exchanges that have sent something and are not closed. */
let users = 0
const connectionsByProtocol = new Map<string, Promise<Connections>>()

/** Loaded on first use: `node:https` alone takes longer to load than a small harness. */
function connectionsFor(protocol: string): Promise<Connections> {
  let connections = connectionsByProtocol.get(protocol)
  if (connections === undefined) {
    connections = protocol === 'https:' ? secureConnections() : plainConnections()
    connectionsByProtocol.set(protocol, connections)
  }
  return connections
}

async function plainConnections(): Promise<Connections> {
  const { Agent, request } = await import('node:http')
  return { request, agent: new Agent(AGENT_OPTIONS), defaultPort: 80, opened: 'connect' }
}

async function secureConnections(): Promise<Connections> {
  const { Agent, request } = await import('node:https')
  return { request, agent: new Agent(AGENT_OPTIONS), defaultPort: 443, opened: 'secureConnect' }
}

/** Open connections that no request has taken yet, by host and port. */
const ahead = { connect: new Map<string, Socket>(), secureConnect: new Map<string, Socket>() }

async function closeKept(): Promise<void> {
  destroyAll([[...ahead.connect.values()], [...ahead.secureConnect.values()]])
  for (const { agent } of await Promise.all(connectionsByProtocol.values())) {
    destroyAll(Object.values(agent.freeSockets))
  }
}

/** The agent's keys of connections begin with host and port. */
function dropKept({ agent, defaultPort }: Connections, url: URL): void {
  const { host, port = defaultPort } = requestTarget(url)
  const names = Object.keys(agent.freeSockets).filter((name) => name.startsWith(`${host}:${port}:`))
  destroyAll(names.map((name) => agent.freeSockets[name]))
}

function destroyAll(lists: readonly (readonly Socket[] | undefined)[]): void {
  // A destroyed socket is removed from its list.
  for (const socket of lists.flatMap((list) => [...(list ?? [])])) socket.destroy()
}

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
  const length = body.reduce((sum, piece) => sum + piece.length, 0)
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

interface Target {
  readonly host: string
  readonly port: number | undefined
  readonly path: string
  /** Host and port as in the URL. */
  readonly authority: string
}

/** A `URL` computes its properties on each access, and a model has few URLs. */
const targets = new WeakMap<URL, Target>()

function requestTarget(url: URL): Target {
  let target = targets.get(url)
  if (target === undefined) {
    // The URL has brackets around an IPv6 address, the resolver expects none.
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const port = url.port === '' ? undefined : Number(url.port)
    target = { host, port, path: `${url.pathname}${url.search}`, authority: url.host }
    targets.set(url, target)
  }
  return target
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
