import { SSE_HEADERS, sseBody } from '../http/sse-body.js'
import type { FollowRunOptions } from '../hub/follow-stretch.js'
import type { AnyRunEvent, Projection } from '../projection.js'
import type { ServedOptions } from './options.js'
import type { MessageDelivery, RequestedRuns, Thread } from './thread.js'
import type { PendingItem } from '#contracts/result.js'
import { isDelta } from '#util/queue/deltas.js'

/** What the streams of clients begin with that do not come back by themselves. */
export const KEEP_ALIVE = ': thinharness\n\n'

export interface StreamAnswer<Item> {
  readonly protocol: Protocol<Item>
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** What the body begins with. */
  readonly preamble: string
  /** What the body ends with. */
  readonly finale?: string | undefined
  /** Ends the reading of the events. */
  readonly abort: AbortController
}

/** The answer with the stream of a protocol. */
export function streamResponse<Item>(
  { heartbeatMs, maxStreamMs, paths }: ServedOptions,
  request: Request,
  batches: AsyncIterable<readonly AnyRunEvent[]>,
  { protocol, headers, preamble, abort, finale }: StreamAnswer<Item>,
): Response {
  const encode = (item: Item): string => paths.hide(protocol.encode(item))
  const frames = eventFrames(batches, { ...protocol, encode, onEvent: (event) => paths.learn(event) }, finale)
  const body = sseBody(frames, { preamble, heartbeatMs, maxStreamMs, request, onCancel: () => abort.abort() })
  return new Response(body, { headers: { ...SSE_HEADERS, ...headers } })
}

/** Ends the reading of a run; with `stopOnDisconnect` also the run, if the request has begun or continued it. */
export function streamAbort(
  { stopOnDisconnect }: ServedOptions,
  thread: Thread,
  { status, run }: MessageDelivery,
): AbortController {
  const abort = new AbortController()
  const stopRun = async (): Promise<void> => {
    const reader = await run
    if (reader !== null) await thread.stop(reader.runId)
  }
  if (stopOnDisconnect === true && status !== 'attached')
    abort.signal.addEventListener('abort', () => void stopRun().catch(() => undefined))
  return abort
}

/** The events of the run that a request has begun, or waits for; none if its message was removed. */
export async function* runBatches(
  thread: Thread,
  run: MessageDelivery['run'],
  options: FollowRunOptions,
): AsyncGenerator<readonly AnyRunEvent[], void, undefined> {
  const reader = await run
  if (reader === null || options.signal?.aborted === true) return
  yield* thread.follow(reader.runId, { ...options, beyond: reader.beyond })
}

/** The items that a run has asked people about. */
export async function itemsOfRun(thread: RequestedRuns, runId: string): Promise<readonly PendingItem[]> {
  const items: PendingItem[] = []
  for await (const event of thread.stored(runId))
    if (event.kind === 'approval_requested' && event.runId === runId) items.push(...event.items)
  return items
}

/** A protocol of a stream: how its items are made, and how they are written. */
export interface Protocol<Item> {
  readonly projection: Projection<Item>
  /** One frame of the body. */
  readonly encode: (item: Item) => string
  /** Names the protocol and its options: streams of one run with equal keys have equal items. Null: each has items of its own. */
  readonly key: string | null
}

/** Frames of deltas, by protocol: all readers of a run are at the same place when a delta comes. */
const shared = new WeakMap<AnyRunEvent, Map<string, string>>()

/** The frames of a run's events: those of one batch are one piece. `finale` ends them. */
async function* eventFrames<Item>(
  batches: AsyncIterable<readonly AnyRunEvent[]>,
  { onEvent, ...protocol }: Protocol<Item> & { readonly onEvent: (event: AnyRunEvent) => void },
  finale = '',
): AsyncGenerator<string, void, undefined> {
  for await (const batch of batches) {
    let piece = ''
    for (const event of batch) {
      onEvent(event)
      piece += framesOfEvent(event, protocol)
    }
    if (piece !== '') yield piece
  }
  const { projection, encode } = protocol
  const last = projection.end().map(encode).join('') + finale
  if (last !== '') yield last
}

function framesOfEvent<Item>(event: AnyRunEvent, { projection, encode, key }: Protocol<Item>): string {
  const items = projection.next(event)
  if (items.length === 0) return ''
  if (items.length > 1 || key === null || !isDelta(event)) return items.map(encode).join('')
  // The next piece of a part: the same for every reader.
  const known = shared.get(event) ?? new Map<string, string>()
  let frame = known.get(key)
  if (frame === undefined) {
    frame = items.map(encode).join('')
    shared.set(event, known.set(key, frame))
  }
  return frame
}
