import { project, untilEnd } from '../projection.js'
import type { AnyRunEvent } from '../projection.js'
import type { UiChunk } from './chunk.js'
import type { UiStreamOptions } from './options.js'
import { uiMessageProjection } from './ui-projection.js'

/**
 * The events of a run as a UI message stream, for `createUIMessageStreamResponse` or `readUIMessageStream` of the AI SDK. A source
 * that fails without an end of its run fails the stream.
 *
 * @example
 * return createUIMessageStreamResponse({ stream: toUIMessageStream(harness.stream(prompt), { dialect: 7 }) })
 */
export function toUIMessageStream(
  events: AsyncIterable<AnyRunEvent> | Iterable<AnyRunEvent>,
  options: UiStreamOptions = {},
): ReadableStream<UiChunk> {
  const chunks = project(untilEnd(events), uiMessageProjection(options))
  return new ReadableStream<UiChunk>({
    async pull(controller) {
      const next = await chunks.next()
      if (next.done === true) controller.close()
      else controller.enqueue(next.value)
    },
    async cancel() {
      await chunks.return()
    },
  })
}
