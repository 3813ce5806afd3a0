import { LARGEST_MESSAGE } from './connection.js'

/** Headers of every request to a server; as a function, asked for each, for tokens that change. */
export type McpHeaders =
  | Readonly<Record<string, string>>
  | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>)

/**
 * A `fetch` for one server: adds its headers to requests to its origin and to no other, and fails a reply in which one
 * message is larger than 10 MiB.
 */
export function serverFetch(server: URL, headers: McpHeaders, base: typeof fetch = fetch): typeof fetch {
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input)
    const request = url.origin === server.origin ? await withHeaders(input, init, headers) : init
    return bounded(await base(input, request))
  }
}

async function withHeaders(
  input: string | URL | Request,
  init: RequestInit | undefined,
  given: McpHeaders,
): Promise<RequestInit> {
  const all = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
  const own = typeof given === 'function' ? await given() : given
  for (const [name, value] of Object.entries(own)) if (!all.has(name)) all.set(name, value)
  return { ...init, headers: all }
}

function bounded(response: Response): Response {
  if (response.body === null) return response
  const events = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const { status, statusText, headers } = response
  const whole = new Response(response.body.pipeThrough(messageLimit(events)), { status, statusText, headers })
  Object.defineProperty(whole, 'url', { value: response.url })
  Object.defineProperty(whole, 'redirected', { value: response.redirected })
  return whole
}

/** Passes bytes on; of a stream of events the count begins anew behind each empty line. */
function messageLimit(events: boolean): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0
  let endsInNewline = false
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const end = events ? lastEventEnd(chunk, endsInNewline) : -1
      bytes = end === -1 ? bytes + chunk.length : chunk.length - end
      endsInNewline = chunk.at(-1) === NEWLINE || (chunk.at(-1) === RETURN && endsInNewline)
      if (bytes > LARGEST_MESSAGE) controller.error(new Error(`A message is larger than ${LARGEST_MESSAGE} bytes.`))
      else controller.enqueue(chunk)
    },
  })
}

const NEWLINE = 10
const RETURN = 13

/** Where the last event of a chunk ends (behind an empty line), or -1. */
function lastEventEnd(chunk: Uint8Array, afterNewline: boolean): number {
  for (
    let index = chunk.lastIndexOf(NEWLINE);
    index >= 0;
    index = index === 0 ? -1 : chunk.lastIndexOf(NEWLINE, index - 1)
  ) {
    const before = chunk[index - 1] === RETURN ? index - 2 : index - 1
    if (before < 0 ? afterNewline : chunk[before] === NEWLINE) return index + 1
  }
  return -1
}
