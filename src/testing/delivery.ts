import type { ServerResponse } from 'node:http'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { parse } from '#contracts/parse.js'
import type { JsonObject } from '#util/json.js'
import { anything, integer, object, oneOf, optional } from '#util/validate.js'
import type { ScriptedReply } from './reply.js'

/** A failure between a provider and its client. */
export type ProviderFault = StatusFault | BreakFault | DripFault

/** An answer of another kind than a reply. */
export interface StatusFault {
  readonly fault: 'status'
  readonly status: number
  /** Default: a sentence. */
  readonly message?: string
  /** Such as `{ 'retry-after': '2' }`. */
  readonly headers?: Readonly<Record<string, string>>
  /** In place of the error in the API's own form; a string is sent unchanged, such as a proxy's HTML page. */
  readonly body?: string | JsonObject
}

/**
 * A reply that arrives incomplete or damaged. After a part of it, the connection is cut (`reset`), nothing more is sent
 * (`idle`), the answer ends as if it were complete (`truncate`), a piece is not JSON (`garble`), or an error is sent
 * (`error`).
 */
export interface BreakFault {
  readonly fault: 'break'
  readonly how: 'reset' | 'idle' | 'truncate' | 'garble' | 'error'
  /** Number of events before; of a reply that is not streamed, more than 0 is its first half. Default 2; 0: no byte. */
  readonly after?: number
  /** Default: a sentence. */
  readonly reply?: ScriptedReply | string
}

/** A reply that is sent slowly, in drops. */
export interface DripFault {
  readonly fault: 'drip'
  readonly reply: ScriptedReply | string
  /** Bytes per drop. Default 1. */
  readonly bytes?: number
  /** Time between two drops, in ms. Default 1. */
  readonly everyMs?: number
}

/** How a reply is cut for delivery: one event after the other, all at once, or so many bytes at a time. */
export type Chunks = 'event' | 'whole' | number

/** An answer that is ready to be sent. */
export interface Rendering {
  /** The events of a stream; the one text of a whole reply. */
  readonly events: readonly string[]
  readonly isStream: boolean
}

/** Sends a reply. Ends early, without an error, if the client disconnects. */
export async function deliverReply(
  response: ServerResponse,
  { events, isStream }: Rendering,
  chunks: Chunks,
): Promise<void> {
  if (!isStream || chunks === 'whole') {
    sendBytes(response, Buffer.from(events.join('')), isStream)
    return
  }
  writeHead(response, isStream)
  for (const piece of chunks === 'event' ? events : bytePieces(events, chunks)) {
    await writePiece(response, piece)
    if (response.destroyed) return
    // A turn of the event loop between two writes lets each arrive as a chunk of its own.
    await setImmediate()
  }
  response.end()
}

/** Sends a reply at once. */
export function sendBytes(response: ServerResponse, bytes: Buffer, isStream: boolean): void {
  writeHead(response, isStream, isStream ? {} : { 'content-length': String(bytes.length) })
  response.end(bytes)
}

const DRIP = object<DripFault>({
  fault: oneOf('drip'),
  reply: anything(),
  bytes: optional(integer(1)),
  everyMs: optional(integer(0)),
})

/** Sends a reply slowly. */
export async function dripReply(response: ServerResponse, rendering: Rendering, fault: DripFault): Promise<void> {
  const { bytes = 1, everyMs = 1 } = parse(DRIP, fault, 'a dripping reply')
  writeHead(response, rendering.isStream)
  for (const piece of bytePieces(rendering.events, bytes)) {
    await writePiece(response, piece)
    if (response.destroyed) return
    await setTimeout(everyMs)
  }
  response.end()
}

/** Sends a part of a reply, and then fails as `fault` says. `error` is an error event of the API. */
export async function breakOff(
  response: ServerResponse,
  rendering: Rendering,
  { fault, error }: { readonly fault: BreakFault; readonly error: string },
): Promise<void> {
  const { how } = fault
  // An error in place of a whole reply is all that comes.
  const after = how === 'error' && !rendering.isStream ? 0 : (fault.after ?? 2)
  const { before, next, rest } = cutReply(rendering, after)
  if (after > 0 || (how !== 'idle' && how !== 'reset')) writeHead(response, rendering.isStream)
  if (before !== '') await writePiece(response, before)
  switch (how) {
    case 'idle':
      return
    case 'reset':
      if (after > 0) response.destroy()
      else response.socket?.resetAndDestroy()
      return
    case 'truncate':
      response.end()
      return
    case 'garble':
      // Without its last brace an event, or a reply, is not JSON.
      response.end(next.replace(/\}(\s*)$/, '$1') + rest)
      return
    case 'error':
      response.end(error)
  }
}

function cutReply({ events, isStream }: Rendering, after: number): Record<'before' | 'next' | 'rest', string> {
  if (isStream) {
    const [before, rest] = [events.slice(0, after), events.slice(after + 1)]
    return { before: before.join(''), next: events[after] ?? '', rest: rest.join('') }
  }
  const text = events.join('')
  const middle = after > 0 ? Math.floor(text.length / 2) : 0
  return { before: text.slice(0, middle), next: text.slice(middle), rest: '' }
}

function writeHead(response: ServerResponse, isStream: boolean, more: Readonly<Record<string, string>> = {}): void {
  const type = isStream ? 'text/event-stream; charset=utf-8' : 'application/json'
  response.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache', ...more })
}

function* bytePieces(events: readonly string[], bytes: number): Iterable<Buffer> {
  const all = Buffer.from(events.join(''))
  for (let from = 0; from < all.length; from += bytes) yield all.subarray(from, from + bytes)
}

/** Resolves when the piece was sent or the connection was closed. */
function writePiece(response: ServerResponse, piece: string | Buffer): Promise<void> {
  return new Promise((resolve) => {
    const endWrite = (): void => {
      response.off('close', endWrite)
      resolve()
    }
    response.once('close', endWrite)
    response.write(piece, endWrite)
  })
}
