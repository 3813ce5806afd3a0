import { HarnessError } from '#contracts/errors.js'
import { newOwner } from '#util/platform/owner.js'
import { MEMORY_THREADS } from '#core/log/ref.js'
import type { ContentSource } from '#contracts/entry.js'
import type { LogRef } from '#core/log/ref.js'
import type { LogStore } from '#core/log/log.js'
import type { MemoryText } from './run-reader.js'

/** What an owner's memory holds in addition to the conversations: a log of its own for each owner. */
type Payload =
  | {
      readonly kind: 'memory_remembered'
      readonly id: string
      readonly text: string
      /** The thread in which it was remembered. */
      readonly conversation: string
      readonly sources: readonly ContentSource[]
    }
  | { readonly kind: 'memory_forgotten'; readonly handles: readonly string[] }

/** An event in the log of a memory. */
export type MemoryEvent = Payload & {
  readonly threadId: string
  readonly seq: number
  readonly at: string
  readonly durable: true
}

/** How long the log is claimed for an event, and how long others wait for that, in ms. */
const LEASE_MS = 10_000
const PATIENCE_MS = 10_000

export function memoryRef(resourceId: string | null): LogRef<'thread'> {
  return { kind: 'thread', id: `${MEMORY_THREADS}${resourceId ?? ''}` }
}

/** The owner, if it is the log of a memory. */
export function ownerOfMemory(threadId: string): { readonly resourceId: string | null } | null {
  if (!threadId.startsWith(MEMORY_THREADS)) return null
  const owner = threadId.slice(MEMORY_THREADS.length)
  return { resourceId: owner === '' ? null : owner }
}

/** Appends an event. A fact that is there already, under the same id, is not stored twice. */
export async function appendToMemory(log: LogStore, resourceId: string | null, payload: Payload): Promise<void> {
  const ref = memoryRef(resourceId)
  const owner = newOwner()
  for (const end = Date.now() + PATIENCE_MS; !(await log.claim(ref, owner, LEASE_MS));) {
    if (Date.now() > end) throw new HarnessError('run_owned', 'The memory is being written by another process.')
    await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 20))
  }
  try {
    let last = 0
    for await (const event of log.read<MemoryEvent>(ref)) {
      last = event.seq
      if (payload.kind === 'memory_remembered' && event.kind === payload.kind && event.id === payload.id) return
    }
    const event: MemoryEvent = {
      ...payload,
      threadId: ref.id,
      seq: last + 1,
      at: new Date().toISOString(),
      durable: true,
    }
    await log.append(ref, [event], { owner, digest: { resourceId } })
  } finally {
    await log.claim(ref, owner, 0).catch(() => false)
  }
}

/** The texts of an event. */
export function textsInMemory(event: MemoryEvent): readonly MemoryText[] {
  if (event.kind !== 'memory_remembered') return []
  const { id, text, conversation: threadId, sources, at } = event
  return [{ handle: id, kind: 'fact', at, text, threadId, sources }]
}
