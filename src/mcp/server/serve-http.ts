import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import type { McpServerFactory } from '@modelcontextprotocol/server'
import type * as sdkModule from '@modelcontextprotocol/server'
import { HarnessError } from '../../contracts/errors.js'
import { LARGEST_MESSAGE } from '../client/connection.js'
import { LegacySessions } from './legacy-sessions.js'
import type { McpHttpTransport, McpServing } from './serving.js'

type ServerSdk = typeof sdkModule

/** Listens and serves. Rejects when the port cannot be had. */
export async function serveHttp(
  sdk: ServerSdk,
  factory: McpServerFactory,
  { port = 0, host = '127.0.0.1', token, allowedHosts = [] }: McpHttpTransport,
  closing: AbortController,
): Promise<McpServing> {
  if (!isLoopback(host) && token === undefined) {
    throw new HarnessError(
      'invalid_options',
      `Expected a \`token\`: at \`${host}\` others than this machine can reach the harness.`,
    )
  }
  const handler = sdk.createMcpHandler(factory, { legacy: 'reject' })
  const legacy = new LegacySessions(sdk, factory)
  const answer = async (request: Request): Promise<Response> =>
    (await sdk.isLegacyRequest(request)) ? legacy.fetch(request) : handler.fetch(request)
  const hosts = [...sdk.localhostAllowedHostnames(), host, ...allowedHosts]
  const gate = (request: Request): Response | undefined =>
    sdk.hostHeaderValidationResponse(request, hosts) ??
    sdk.originValidationResponse(request, hosts) ??
    unauthorized(request, token)
  const server = createServer((incoming, outgoing) => void serve(incoming, outgoing, { gate, answer }))
  await listening(server, port, host)
  const { port: actual } = server.address() as AddressInfo
  const closed = new Promise<void>((resolve) => void server.once('close', resolve))
  const close = async (): Promise<void> => {
    closing.abort(new HarnessError('closed', 'The server was closed.'))
    await Promise.all([handler.close(), legacy.close()])
    server.closeAllConnections()
    server.close()
    await closed
  }
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${actual}/mcp`
  return { url, closed, close, [Symbol.asyncDispose]: close }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

function unauthorized(request: Request, token: string | undefined): Response | undefined {
  if (token === undefined || isSame(request.headers.get('authorization') ?? '', `Bearer ${token}`)) return undefined
  return new Response('Unauthorized', { status: 401, headers: { 'www-authenticate': 'Bearer' } })
}

/** In the same time wherever they differ. */
function isSame(left: string, right: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(left), digest(right))
}

function listening(server: Server, port: number, host: string): Promise<void> {
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

async function serve(incoming: IncomingMessage, outgoing: ServerResponse, { gate, answer }: Serving): Promise<void> {
  const gone = new AbortController()
  outgoing.on('close', () => gone.abort())
  try {
    const request = requestOf(incoming, gone.signal)
    await send(
      new URL(request.url).pathname === '/mcp' ? (gate(request) ?? (await answer(request))) : NOT_FOUND(),
      outgoing,
    )
  } catch {
    // A client that went away, or that sent what is no HTTP: nothing more can be said to it.
    if (!outgoing.headersSent) outgoing.writeHead(400)
    outgoing.end()
  }
}

const NOT_FOUND = (): Response => new Response('Not found', { status: 404 })

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', url = '/', headers: given } = incoming
  const headers = new Headers()
  for (const [name, value] of Object.entries(given)) {
    for (const each of Array.isArray(value) ? value : [value ?? '']) headers.append(name, each)
  }
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const bounded = Readable.toWeb(Readable.from(bytesOf(incoming), { objectMode: false })) as ReadableStream<Uint8Array>
  const body = hasBody ? { body: bounded, duplex: 'half' as const } : {}
  return new Request(new URL(url, `http://${given.host ?? 'localhost'}`), {
    method,
    headers,
    signal,
    ...body,
  })
}

/** Fails behind 10 MiB: no client needs more for a call. */
async function* bytesOf(incoming: IncomingMessage): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const piece of incoming as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > LARGEST_MESSAGE) throw new Error(`A request is larger than ${LARGEST_MESSAGE} bytes.`)
    yield piece
  }
}

async function send(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  if (response.body === null) outgoing.end()
  else await pipeline(Readable.fromWeb(response.body as ReadableStream<Uint8Array>), outgoing)
}
