import { HarnessError } from '#contracts/errors.js'
import { endOwner, newOwner } from '#util/platform/owner.js'
import type { LogRef } from '#core/log/ref.js'
import type { LogStore, Post } from '#core/log/log.js'
import { canonicalJson, deepFreeze, withMembers } from '#util/json.js'
import { isDamage, threadNotFound } from '../errors.js'
import type { NewThreadEvent, RunPlace, ThreadEvent } from './thread-events.js'
import { applyThread, threadDigest } from './thread-state.js'
import type { ThreadState } from './thread-state.js'
import { continuedBy } from './transcript.js'

/** How long a claim lasts, and how often it is renewed, in ms. */
const LEASE_MS = 60_000
const RENEW_MS = 20_000

interface WriterListener {
  /** Another process has taken the thread over. */
  readonly onLost?: () => void
  /** This process still has the thread: now and then. */
  readonly onKept?: () => void
}

/** The one writer of a thread's log: claims it, appends to it, and takes the posts of others. */
export class ThreadWriter {
  readonly ref: LogRef<'thread'>
  readonly #log: LogStore
  readonly #listener: WriterListener
  #owner: string | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(log: LogStore, threadId: string, listener: WriterListener = {}) {
    this.#log = log
    this.ref = { kind: 'thread', id: threadId }
    this.#listener = listener
  }

  get isOwner(): boolean {
    return this.#owner !== null
  }

  /** True if this process owns the thread now. */
  async claim(): Promise<boolean> {
    if (this.#owner !== null) return true
    const owner = newOwner()
    if (!(await this.#log.claim(this.ref, owner, LEASE_MS))) return false
    this.#owner = owner
    this.#timer = setInterval(() => void this.#renew(owner), RENEW_MS).unref()
    return true
  }

  async release(): Promise<void> {
    const owner = this.#owner
    if (owner === null) return
    this.#forget()
    // A claim that cannot be released expires, and does not stand in this process.
    await this.#log.claim(this.ref, owner, 0).catch(() => endOwner(owner))
  }

  /** Stores events; gives them as they are stored. `state` is undefined for a thread that begins. */
  async append(
    state: ThreadState | undefined,
    events: readonly NewThreadEvent[],
    after: RunPlace | null,
  ): Promise<readonly ThreadEvent[]> {
    const at = new Date().toISOString()
    let next = state
    const stored = events.map((event, index): ThreadEvent => {
      const base = { threadId: this.ref.id, seq: (state?.seq ?? 0) + index + 1, at, durable: true as const, after }
      const numbered: ThreadEvent = deepFreeze(withMembers(base, event))
      next = applyThread(next, numbered)
      return numbered
    })
    if (next === undefined) throw new RangeError('Expected at least one event.')
    const references = events.flatMap(eventReferences)
    const posts = events.flatMap((event) => (event.kind === 'message_taken' ? [event.postId] : []))
    const options = { owner: this.#owner ?? undefined, digest: deepFreeze(threadDigest(next)), references, posts }
    await this.#log.append(this.ref, stored, options).catch(async (error: unknown) => {
      if (error instanceof HarnessError && error.code === 'run_owned') this.#lose()
      else if (await this.#areStored(stored)) return
      throw error
    })
    return stored
  }

  /** A store that rejects may have kept the events: nobody is told that they are not there before the log has been read again. */
  async #areStored(events: readonly ThreadEvent[]): Promise<boolean> {
    const found: ThreadEvent[] = []
    try {
      const after = (events[0]?.seq ?? 1) - 1
      for await (const event of this.#log.read<ThreadEvent>(this.ref, { after })) found.push(event)
    } catch {
      return false
    }
    return canonicalJson(found) === canonicalJson(events)
  }

  async takePosts(): Promise<readonly Post[]> {
    return this.#owner === null ? [] : this.#log.takePosts(this.ref, this.#owner)
  }

  /**
   * Removes the log of the thread, and those of its runs that no other log continues; the claim ends with it. False, and nothing is
   * removed, if another process has one of the runs.
   */
  async remove(runIds: readonly string[]): Promise<boolean> {
    const owner = this.#owner
    if (owner === null) throw new RangeError('Expected the owner of the thread.')
    // Those of a source that was deleted before. Deleting needs no reading: what cannot be read is deleted too.
    const continued = await continuedBy(this.#log, this.ref.id).catch((thrown: unknown) => {
      if (isDamage(thrown)) return []
      throw thrown
    })
    const runs = [...runIds, ...continued].map((id) => ({ kind: 'run', id }) as const)
    await this.#log.prune({ only: [this.ref, ...runs], owner })
    if ((await this.#log.inspect(this.ref)) !== null) return false
    await this.release()
    return true
  }

  async #renew(owner: string): Promise<void> {
    // The next renewal tries again after a failure; without a valid claim, an append is rejected.
    const isOurs = await this.#log.claim(this.ref, owner, LEASE_MS).catch(() => true)
    if (this.#owner !== owner) return
    if (isOurs) this.#listener.onKept?.()
    else this.#lose()
  }

  #lose(): void {
    this.#forget()
    this.#listener.onLost?.()
  }

  #forget(): void {
    clearInterval(this.#timer)
    this.#owner = null
  }
}

/** Does `work` while no other process can begin the run. Rejects with `run_owned`, without it, if one may be doing so. */
export async function withoutOtherOwner(log: LogStore, runId: string, work: () => Promise<void>): Promise<void> {
  const ref: LogRef = { kind: 'run', id: runId }
  const owner = newOwner()
  if (!(await log.claim(ref, owner, LEASE_MS)))
    throw new HarnessError('run_owned', `Run \`${runId}\` is in progress elsewhere: its owner's claim has not expired.`)
  try {
    await work()
  } finally {
    await log.claim(ref, owner, 0).catch(() => endOwner(owner))
  }
}

/** The logs that are kept for as long as the thread. */
export function eventReferences(event: NewThreadEvent): readonly LogRef[] {
  if (event.kind === 'run_begun') return [{ kind: 'run', id: event.runId }]
  const history = event.kind === 'thread_opened' ? (event.fork?.history ?? null) : null
  return history === null ? [] : [{ kind: 'run', id: history.runId }]
}

/** The snapshot of a thread. Throws `thread_not_found` if it has none. */
export function existing<T>(snapshot: T | undefined, threadId: string): T {
  if (snapshot === undefined) throw threadNotFound(threadId)
  return snapshot
}
