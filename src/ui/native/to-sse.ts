import { project, untilEnd } from '../projection.js'
import type { AnyRunEvent } from '../projection.js'
import { sseBody } from '../http/sse.js'
import { encodeNative, nativeProjection } from './native-projection.js'
import type { NativeOptions } from './native-projection.js'

/**
 * The events of a run as a body of native server-sent events: `id` is the cursor of what is stored, and the last item is `end`.
 * A source that fails breaks the body off.
 *
 * @example
 * new Response(toSse(harness.stream('Hello.')), { headers: { 'content-type': 'text/event-stream' } })
 */
export function toSse(
  events: AsyncIterable<AnyRunEvent> | Iterable<AnyRunEvent>,
  options: NativeOptions = {},
): ReadableStream<Uint8Array> {
  return sseBody(frames(events, options))
}

async function* frames(
  events: AsyncIterable<AnyRunEvent> | Iterable<AnyRunEvent>,
  options: NativeOptions,
): AsyncGenerator<string, void, undefined> {
  for await (const item of project(untilEnd(events), nativeProjection(options))) yield encodeNative(item)
}
