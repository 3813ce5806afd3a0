import { createHash, timingSafeEqual, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import type * as sdkModule from '@modelcontextprotocol/server'
import type { McpServerFactory, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { HarnessError } from '#contracts/errors.js'
import { invalidOptions } from '#contracts/parse.js'
import { LARGEST_MESSAGE } from '../sdk/connection.js'
import type { McpHttpTransport, McpServing } from './serving.js'

type ServerSdk = typeof sdkModule

/** Listens and serves. Rejects if the port is not available. */
export async function serveHttp(
  sdk: ServerSdk,
  factory: McpServerFactory,
  {
    transport: { port = 0, host = '127.0.0.1', token, allowedHosts = [] },
    closing,
  }: { readonly transport: McpHttpTransport; readonly closing: AbortController },
): Promise<McpServing> {
  if (!isLoopback(host) && token === undefined) {
    throw invalidOptions(`Expected a \`token\`: other machines can reach the harness at \`${host}\`.`)
  }
  const handler = sdk.createMcpHandler(factory, { legacy: 'reject' })
  const legacy = new LegacySessions(sdk, factory)
  const answerRequest = async (request: Request): Promise<Response> =>
    (await sdk.isLegacyRequest(request)) ? legacy.fetch(request) : handler.fetch(request)
  const hosts = [...sdk.localhostAllowedHostnames(), host, ...allowedHosts]
  const checkOrigin = (request: Request): Response | undefined =>
    sdk.hostHeaderValidationResponse(request, hosts) ??
    sdk.originValidationResponse(request, hosts) ??
    refuseUnauthorized(request, token)
  const server = createServer((incoming, outgoing) => void serveRequest(incoming, outgoing, { gate: checkOrigin, answer: answerRequest }))
  await listenOn(server, port, host)
  const { port: actual } = server.address() as AddressInfo
  const closed = new Promise<void>((resolve) => void server.once('close', resolve))
  const closeServer = async (): Promise<void> => {
    closing.abort(new HarnessError('closed', 'The server was closed.'))
    await Promise.all([handler.close(), legacy.close()])
    server.closeAllConnections()
    server.close()
    await closed
  }
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${actual}/mcp`
  return { url, closed, close: closeServer, [Symbol.asyncDispose]: closeServer }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

function refuseUnauthorized(request: Request, token: string | undefined): Response | undefined {
  if (token === undefined || isSame(request.headers.get('authorization') ?? '', `Bearer ${token}`)) return undefined
  return new Response('Unauthorized', { status: 401, headers: { 'www-authenticate': 'Bearer' } })
}

/** Compares in constant time. */
function isSame(left: string, right: string): boolean {
  const sha256Of = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(sha256Of(left), sha256Of(right))
}

function listenOn(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

interface Serving {
  readonly gate: (request: Request) => Response | undefined
  readonly answer: (request: Request) => Promise<Response>
}

async function serveRequest(incoming: IncomingMessage, outgoing: ServerResponse, { gate, answer }: Serving): Promise<void> {
  const gone = new AbortController()
  outgoing.on('close', () => gone.abort())
  try {
    const request = webRequest(incoming, gone.signal)
    await sendResponse(
      new URL(request.url).pathname === '/mcp' ? (gate(request) ?? (await answer(request))) : NOT_FOUND(),
      outgoing,
    )
  } catch {
    // The client is gone or did not send HTTP: it cannot be answered.
    if (!outgoing.headersSent) outgoing.writeHead(400)
    outgoing.end()
  }
}

const NOT_FOUND = (): Response => new Response('Not found', { status: 404 })

function webRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', url = '/', headers: given } = incoming
  const headers = new Headers()
  for (const [name, value] of Object.entries(given)) {
    for (const each of Array.isArray(value) ? value : [value ?? '']) headers.append(name, each)
  }
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const bounded = Readable.toWeb(Readable.from(bodyBytes(incoming), { objectMode: false })) as ReadableStream<Uint8Array>
  const body = hasBody ? { body: bounded, duplex: 'half' as const } : {}
  return new Request(new URL(url, `http://${given.host ?? 'localhost'}`), {
    method,
    headers,
    signal,
    ...body,
  })
}

/** Fails after 10 MiB: no call needs more. */
async function* bodyBytes(incoming: IncomingMessage): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const piece of incoming as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > LARGEST_MESSAGE) throw new Error(`A request is larger than ${LARGEST_MESSAGE} bytes.`)
    yield piece
  }
}

async function sendResponse(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  if (response.body === null) outgoing.end()
  else await pipeline(Readable.fromWeb(response.body as ReadableStream<Uint8Array>), outgoing)
}

/** Most open sessions; the least recently used one ends when another begins. */
const MOST_SESSIONS = 1_000

/**
 * Serves clients of older revisions, with one session each: a client can cancel its requests only within a session, and the
 * SDK's own handler for these revisions is stateless.
 */
class LegacySessions {
  readonly #sdk: typeof sdkModule
  readonly #factory: McpServerFactory
  readonly #sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()

  constructor(sdk: typeof sdkModule, factory: McpServerFactory) {
    this.#sdk = sdk
    this.#factory = factory
  }

  async fetch(request: Request): Promise<Response> {
    const id = request.headers.get('mcp-session-id')
    if (id === null) return (await this.#begin()).handleRequest(request)
    const session = this.#sessions.get(id)
    if (session === undefined) return new Response('Unknown session.', { status: 404 })
    this.#sessions.delete(id)
    this.#sessions.set(id, session)
    return session.handleRequest(request)
  }

  async close(): Promise<void> {
    const open = [...this.#sessions.values()]
    this.#sessions.clear()
    await Promise.allSettled(open.map((session) => session.close()))
  }

  /** A transport without a session yet: it opens one on `initialize` and rejects other requests. */
  async #begin(): Promise<WebStandardStreamableHTTPServerTransport> {
    const session: WebStandardStreamableHTTPServerTransport = new this.#sdk.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => this.#keep(id, session),
      onsessionclosed: (id) => {
        this.#sessions.delete(id)
      },
    })
    const server = await this.#factory({ era: 'legacy' })
    await server.connect(session)
    return session
  }

  #keep(id: string, session: WebStandardStreamableHTTPServerTransport): void {
    this.#sessions.set(id, session)
    const [oldest] = this.#sessions
    if (this.#sessions.size <= MOST_SESSIONS || oldest === undefined) return
    this.#sessions.delete(oldest[0])
    void oldest[1].close()
  }
}
