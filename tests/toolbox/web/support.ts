import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import { onTestFinished } from 'vitest'
import { fetchUrl } from '#toolbox/web/fetch-url.js'
import type { FetchUrlOptions, HostAddress } from '#toolbox/web/options.js'
import type { Envelope } from '#core/tools/boundary/envelope.js'
import type { ToolContext } from '#core/tools/tool-spec.js'
import type { JsonObject } from '#util/json.js'
import { call, folderWith } from '../support.js'

/** A server on loopback until the test ends; gives its port. */
export async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('The server has no port.')
  return address.port
}

/** Serves one body under any path. */
export async function servePage(contentType: string, body: string | Uint8Array): Promise<string> {
  const port = await serve((_request, response) => {
    response.writeHead(200, contentType === '' ? {} : { 'content-type': contentType })
    response.end(body)
  })
  return `http://127.0.0.1:${port}/page`
}

export const LOOPBACK: HostAddress = { address: '127.0.0.1', family: 4 }

/** Fetches as a model would, in a root of its own, with loopback allowed unless the options say otherwise. */
export async function fetched(
  args: JsonObject,
  options: FetchUrlOptions = {},
  context: Partial<ToolContext> = {},
): Promise<Envelope> {
  return call(fetchUrl({ root: await folderWith(), allowPrivate: true, ...options }), args, context)
}
