import { randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { CommandError } from '../exit-codes.js'

export interface LoopbackOptions {
  /** Answers a request. `path` is what follows the token: it begins with `/`, and has no query. A rejection is answered with 500. */
  readonly handle: (request: Request, path: string) => Response | Promise<Response>
  /** Default 127.0.0.1. */
  readonly host?: string | undefined
  /** Default 0: any port that is free. */
  readonly port?: number | undefined
  /**
   * The secret that each path begins with. Default: a random one. Null: none, `handle` knows who asks; then any `Host` is answered too,
   * since the server may be reached by a name.
   */
  readonly token?: string | null | undefined
}

/** A server that listens. */
export interface Loopback {
  /** `http://127.0.0.1:4242/<token>/`: what a person opens. */
  readonly address: string
  readonly port: number
  /** Stops listening, and ends the streams that are open. */
  readonly close: () => Promise<void>
}

/**
 * Serves this machine: every path begins with a random token, and a request with another `Host`, or from a page of another `Origin`,
 * is answered with 403, so that no page of the web reaches it by a name of its own. Rejects with a `CommandError` if the port is taken.
 *
 * @example
 * const server = await serveLoopback({ handle: () => new Response('Hello.') })
 * console.log(server.address)
 */
export async function serveLoopback(options: LoopbackOptions): Promise<Loopback> {
  const { host = '127.0.0.1', port = 0, token = randomBytes(16).toString('hex') } = options
  const server = createServer()
  await listening(server, host, port)
  const bound = (server.address() as AddressInfo).port
  const origin = `http://${host.includes(':') ? `[${host}]` : host}:${bound}`
  const place = { handle: options.handle, token, port: bound, host }
  server.on('request', (incoming, answer) => void sendAnswer(incoming, answer, place))
  return {
    address: token === null ? `${origin}/` : `${origin}/${token}/`,
    port: bound,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const taken =
        error.code === 'EADDRINUSE' ? 'another program listens there; `--port 0` takes one that is free' : error.message
      reject(new CommandError(`Cannot listen on ${host}, port ${port}: ${taken}.`))
    })
    server.listen(port, host, resolve)
  })
}

interface Place {
  readonly handle: LoopbackOptions['handle']
  readonly token: string | null
  readonly port: number
  readonly host: string
}

async function sendAnswer(incoming: IncomingMessage, answer: ServerResponse, place: Place): Promise<void> {
  const abort = new AbortController()
  // A reader who goes away ends what is made for it.
  answer.on('close', () => abort.abort())
  const response = await responseTo(incoming, place, abort.signal)
  if (answer.destroyed) return
  answer.writeHead(response.status, { ...SAFE, ...Object.fromEntries(response.headers) })
  if (response.body === null) return void answer.end()
  const body = Readable.fromWeb(response.body)
  body.on('error', () => answer.destroy())
  answer.on('close', () => body.destroy())
  body.pipe(answer)
}

/** No page learns the address, and none shows this one in a frame. */
const SAFE = { 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY' }

async function responseTo(incoming: IncomingMessage, place: Place, signal: AbortSignal): Promise<Response> {
  const refused = refusalOf(incoming, place)
  if (refused !== null) return new Response(`${refused}\n`, { status: 403 })
  const path = pathOf(incoming, place.token)
  if (path === null) return new Response('There is nothing here.\n', { status: 404 })
  try {
    return await place.handle(requestOf(incoming, signal), path)
  } catch {
    return new Response(null, { status: 500 })
  }
}

/** Why a request is refused before anything is read of it. */
function refusalOf({ headers }: IncomingMessage, { port, host, token }: Place): string | null {
  const names = ['127.0.0.1', 'localhost', '[::1]', host].map((name) => `${name}:${port}`)
  const named = headers.host ?? ''
  if (token !== null && !names.includes(named)) return 'This server answers to the address of this machine only.'
  const { origin } = headers
  const isOwn =
    origin === undefined || origin === `http://${named}` || (token === null && origin === `https://${named}`)
  return isOwn ? null : 'Pages of other servers are not answered.'
}

/** The path after the token; null if it does not begin with it. */
function pathOf({ url = '/' }: IncomingMessage, token: string | null): string | null {
  const path = url.split('?', 1)[0] ?? '/'
  if (token === null) return path
  const [, given = '', ...rest] = path.split('/')
  if (rest.length === 0 || !isSame(given, token)) return null
  return `/${rest.join('/')}`
}

/** Takes as long for each wrong text of the same length. */
function isSame(given: string, token: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(token)]
  return one.length === other.length && timingSafeEqual(one, other)
}

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', url = '/', headers } = incoming
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const body = hasBody ? (Readable.toWeb(incoming) as ReadableStream) : null
  const given = new Headers()
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) given.set(name, String(value))
  return new Request(`http://${headers.host ?? 'localhost'}${url}`, {
    ...{ method, headers: given, signal, body },
    ...(hasBody && { duplex: 'half' }),
  })
}
