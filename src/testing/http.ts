import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { JsonObject } from '../index.js'

const MOST_BYTES = 256 * 1024 * 1024

/** A request's body; undefined when the client went away, or sends without end. */
export function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
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

/** Answers with JSON, or with a text of any kind. */
export function sendBody(
  response: ServerResponse,
  status: number,
  {
    body,
    headers = {},
  }: { readonly body: string | JsonObject; readonly headers?: Readonly<Record<string, string>> | undefined },
): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const html = typeof body === 'string' && body.startsWith('<') ? 'text/html' : 'text/plain'
  response.writeHead(status, {
    'content-type': typeof body === 'string' ? html : 'application/json',
    'content-length': String(Buffer.byteLength(text)),
    ...headers,
  })
  response.end(text)
}

const SECRETS = new Set(['authorization', 'proxy-authorization', 'x-api-key', 'api-key', 'cookie'])

/** The headers without those that hold a key. */
export function withoutKeys(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !SECRETS.has(name)))
}
