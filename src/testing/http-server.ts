import { createServer } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JsonObject } from '#util/json.js'
import type { StatusFault } from './delivery.js'

const MOST_BYTES = 256 * 1024 * 1024

/** Opens a server on this machine. Default: at a free port. */
export async function openServer(port = 0): Promise<Server> {
  const server = createServer()
  // A kept connection is closed by the client, never during a request.
  server.keepAliveTimeout = 0
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return server
}

export function serverOrigin(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Cuts all connections and stops listening. */
export async function closeServer(server: Server): Promise<void> {
  await new Promise((resolve) => {
    server.close(resolve)
    server.closeAllConnections()
  })
}

/** The body of a request; undefined if the client closed the connection or the body is too long. */
export function readRequestBody(request: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = []
    let length = 0
    request.on('data', (piece: Buffer) => {
      pieces.push(piece)
      length += piece.length
      if (length > MOST_BYTES) request.destroy()
    })
    request.on('end', () => resolve(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)))
    request.on('error', () => resolve(undefined))
    request.on('close', () => resolve(undefined))
  })
}

/** Answers with JSON or with text. */
export function sendBody(
  response: ServerResponse,
  status: number,
  { body, headers }: { readonly body: string | JsonObject; readonly headers?: StatusFault['headers'] },
): void {
  const isText = typeof body === 'string'
  const text = isText ? body : JSON.stringify(body)
  const textType = text.startsWith('<') ? 'text/html' : 'text/plain'
  const type = isText ? textType : 'application/json'
  response.writeHead(status, { 'content-type': type, 'content-length': String(Buffer.byteLength(text)), ...headers })
  response.end(text)
}

const SECRETS = new Set(['authorization', 'proxy-authorization', 'x-api-key', 'x-goog-api-key', 'api-key', 'cookie'])

/** The headers without API keys and cookies. */
export function withoutKeys(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !SECRETS.has(name)))
}
