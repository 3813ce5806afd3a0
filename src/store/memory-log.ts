import { summaryOf } from '../run/log/digest.js'
import type { LogSummaries, RunSummary, ThreadSummary } from '../run/log/digest.js'
import { comparePlaces, isListed, listQuery, placeOf } from '../run/log/listing.js'
import type { ListOptions, PruneOptions } from '../run/log/listing.js'
import { checkClaim, checkPost, lastSeqOf, ownedByAnother } from '../run/log/log.js'
import type { AppendOptions, LogEvent, LogStore } from '../run/log/log.js'
import type { FollowOptions, Post, ReadOptions } from '../run/log/log.js'
import { hasEnded } from '../run/log/owner.js'
import { prunables, removable } from '../run/log/pruning.js'
import type { DurableEvent } from '../run/machine/events.js'
import type { JsonObject } from '../util/json.js'
import { exportRun, foldRun } from './fold-run.js'
import { Followers } from './followers.js'
import { TakenPosts } from './taken-posts.js'
import { checkRef, keyOf } from '../run/log/ref.js'
import type { LogKind, LogRef } from '../run/log/ref.js'

export interface MemoryLogOptions {
  /** How many ended runs are kept, the latest first; runs that another log refers to are not counted. Default: all. */
  readonly keepEnded?: number
}

/** A log in memory: events are kept by reference for as long as the log lives. */
export function memoryLog({ keepEnded = Infinity }: MemoryLogOptions = {}): LogStore {
  return new MemoryLog(keepEnded)
}

interface KeptLog {
  readonly ref: LogRef
  readonly events: LogEvent[]
  /** Of a thread, if its writer passed one with the last events. */
  digest: JsonObject | null
  /** Keys of the logs that it refers to. */
  readonly references: Set<string>
}

interface Inbox {
  /** The ids of all posts so far. */
  readonly ids: Set<string>
  waiting: Post[]
}

interface Claim {
  readonly owner: string
  readonly untilMs: number
}

class MemoryLog implements LogStore {
  readonly outlives = false
  readonly #keepEnded: number
  readonly #logs = new Map<string, KeptLog>()
  /** Keys of ended runs that no other log refers to, the earliest first. */
  readonly #ended = new Set<string>()
  /** How many logs refer to a log, by key. */
  readonly #referrers = new Map<string, number>()
  readonly #claims = new Map<string, Claim>()
  readonly #inboxes = new Map<string, Inbox>()
  readonly #taken = new TakenPosts()
  readonly #followers = new Followers()

  constructor(keepEnded: number) {
    this.#keepEnded = keepEnded
  }

  async append(ref: LogRef, events: readonly LogEvent[], options: AppendOptions = {}): Promise<void> {
    checkRef(ref)
    const key = keyOf(ref)
    if (this.#claims.get(key)?.owner !== options.owner) throw ownedByAnother(ref, options.owner)
    if (events.length === 0) return
    const known = this.#logs.get(key)
    lastSeqOf(ref, known?.events.at(-1)?.seq ?? 0, events)
    const kept = known ?? { ref, events: [], digest: null, references: new Set<string>() }
    if (known === undefined) this.#logs.set(key, kept)
    for (const event of events) kept.events.push(event)
    // A run is folded when somebody asks: its digest would cost a copy of its state at each append.
    if (ref.kind === 'thread') kept.digest = (options.digest as JsonObject | undefined) ?? null
    for (const to of options.references ?? []) this.#refer(kept, keyOf(to))
    this.#countEnded(kept)
    this.#settle(ref, options.owner)
    this.#followers.wake(ref)
  }

  async *read<Event extends LogEvent = DurableEvent>(
    ref: LogRef,
    { after = 0 }: ReadOptions = {},
  ): AsyncGenerator<Event> {
    checkRef(ref)
    for (const event of this.#logs.get(keyOf(ref))?.events ?? []) if (event.seq > after) yield event as Event
  }

  async claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean> {
    checkRef(ref)
    checkClaim(owner, ttlMs)
    const key = keyOf(ref)
    const holder = this.#claims.get(key)?.owner
    if (holder !== undefined && holder !== owner && (ttlMs === 0 || this.#ownerOf(key) !== null)) return false
    if (ttlMs === 0) this.#settle(ref, owner)
    if (ttlMs === 0) this.#claims.delete(key)
    else this.#claims.set(key, { owner, untilMs: Date.now() + ttlMs })
    return true
  }

  async post(ref: LogRef, post: Post): Promise<void> {
    checkPost(ref, post)
    const inbox = this.#inboxes.get(keyOf(ref)) ?? { ids: new Set<string>(), waiting: [] }
    this.#inboxes.set(keyOf(ref), inbox)
    if (inbox.ids.has(post.id)) return
    inbox.ids.add(post.id)
    inbox.waiting.push(structuredClone(post))
  }

  async takePosts(ref: LogRef, owner: string): Promise<readonly Post[]> {
    checkRef(ref)
    if (this.#claims.get(keyOf(ref))?.owner !== owner) throw ownedByAnother(ref, owner)
    return this.#taken.take(ref, owner, this.#inboxes.get(keyOf(ref))?.waiting ?? [])
  }

  follow<Event extends LogEvent = DurableEvent>(ref: LogRef, options: FollowOptions = {}): AsyncIterable<Event> {
    checkRef(ref)
    return this.#followers.follow<Event>(ref, options, { read: (from) => this.read<Event>(ref, from), longestMs: null })
  }

  async inspect<Kind extends LogKind>(ref: LogRef<Kind>): Promise<LogSummaries[Kind] | null> {
    checkRef(ref)
    const kept = this.#logs.get(keyOf(ref))
    return kept === undefined ? null : ((await this.#summaryOf(kept)) as LogSummaries[Kind] | null)
  }

  async *list<Kind extends LogKind = 'run'>(options?: ListOptions<Kind>): AsyncGenerator<LogSummaries[Kind]> {
    const query = listQuery(options)
    const found: LogSummaries[LogKind][] = []
    for (const kept of [...this.#logs.values()]) {
      const summary = kept.ref.kind === query.kind ? await this.#summaryOf(kept) : null
      if (summary !== null && isListed(query, summary)) found.push(summary)
    }
    found.sort((left, right) => comparePlaces(placeOf(left), placeOf(right)))
    yield* found as LogSummaries[Kind][]
  }

  export(runId: string): AsyncIterable<DurableEvent> {
    return exportRun(this, runId)
  }

  async prune(options: PruneOptions): Promise<number> {
    const runs = await prunables(this.list())
    const references = [...this.#logs.values()].flatMap((from) =>
      [...from.references].flatMap((key) => ({ from: from.ref, to: this.#logs.get(key)?.ref ?? from.ref })),
    )
    let removed = 0
    for (const { ref, lastSeq } of removable({ runs, references }, options, Date.now())) {
      const key = keyOf(ref)
      const last = this.#logs.get(key)?.events.at(-1)?.seq
      if (last === undefined || (lastSeq !== null && last !== lastSeq) || this.#ownerOf(key) !== null) continue
      this.#remove(key)
      removed += 1
    }
    return removed
  }

  #ownerOf(key: string): string | null {
    const claim = this.#claims.get(key)
    return claim !== undefined && claim.untilMs > Date.now() && !hasEnded(claim.owner) ? claim.owner : null
  }

  async #summaryOf({ ref, events, digest }: KeptLog): Promise<RunSummary | ThreadSummary | null> {
    const owner = this.#ownerOf(keyOf(ref))
    if (ref.kind === 'run') {
      const known = await foldRun(this, ref.id)
      return known === null ? null : summaryOf(known, owner !== null)
    }
    const [first, last] = [events[0], events.at(-1)]
    if (first === undefined || last === undefined) return null
    const times = { createdAt: first.at, updatedAt: last.at }
    return { threadId: ref.id, ...times, lastSeq: last.seq, owner, digest }
  }

  #settle(ref: LogRef, owner: string | undefined): void {
    const leaving = this.#taken.of(ref, owner)
    const inbox = this.#inboxes.get(keyOf(ref))
    if (leaving.length === 0 || inbox === undefined) return
    inbox.waiting = inbox.waiting.filter(({ id }) => !leaving.includes(id))
    this.#taken.forget(ref, leaving)
  }

  #refer(from: KeptLog, to: string): void {
    if (from.references.has(to)) return
    from.references.add(to)
    this.#referrers.set(to, (this.#referrers.get(to) ?? 0) + 1)
    this.#ended.delete(to)
  }

  /** A paused run counts as ended until it continues. */
  #countEnded(kept: KeptLog): void {
    const key = keyOf(kept.ref)
    this.#ended.delete(key)
    if (hasRunEnded(kept) && !this.#referrers.has(key)) this.#ended.add(key)
    for (const earliest of this.#ended) {
      if (this.#ended.size <= this.#keepEnded) break
      this.#remove(earliest)
    }
  }

  #remove(key: string): void {
    const removed = this.#logs.get(key)
    this.#ended.delete(key)
    this.#logs.delete(key)
    this.#inboxes.delete(key)
    for (const to of removed?.references ?? []) {
      const referrers = (this.#referrers.get(to) ?? 1) - 1
      if (referrers > 0) this.#referrers.set(to, referrers)
      else this.#referrers.delete(to)
      const target = this.#logs.get(to)
      if (referrers === 0 && target !== undefined && hasRunEnded(target)) this.#ended.add(to)
    }
  }
}

function hasRunEnded({ ref, events }: KeptLog): boolean {
  const kind = events.at(-1)?.kind
  return ref.kind === 'run' && (kind === 'run_completed' || kind === 'run_failed')
}
