import { HarnessError } from '#contracts/errors.js'
import { summaryOf } from '#core/log/run-summary.js'
import type { LogSummaries, RunSummary, ThreadSummary } from '#core/log/run-summary.js'
import { comparePlaces, invalidCursor, isListed, isRuledOut, listQuery, placeOf } from './list-query.js'
import type { ListOptions, PruneOptions, WaitingOptions } from '#core/log/list-options.js'
import type { ListQuery } from './list-query.js'
import { checkClaim, checkPost, ownedByAnother, STORED } from '#core/log/log.js'
import type { AppendOptions, LogEvent, LogStore } from '#core/log/log.js'
import type { FollowOptions, Post, ReadOptions } from '#core/log/log.js'
import { hasEnded } from '#util/platform/owner.js'
import { listPrunable, removableRuns } from './pruning.js'
import type { Removal } from './pruning.js'
import type { KeptRecords } from './codec/kept-records.js'
import type { LogCodec, Rewritable, Rewriting } from './codec/log-codec.js'
import type { DurableEvent } from '#core/state/events.js'
import type { JsonObject } from '#util/json.js'
import { inPieces } from '#util/in-pieces.js'
import { chosenWaiting, exportRun, foldRun, unlessDamaged, unreadableRun } from './fold-run.js'
import { Followers } from './followers.js'
import { checkRef, keyOf, lastSeqOf } from '#core/log/ref.js'
import type { LogKind, LogRef } from '#core/log/ref.js'

export interface MemoryLogOptions {
  /** How many ended runs are kept, the latest first; runs that another log refers to are not counted. Default: all. */
  readonly keepEnded?: number | undefined
  /** Encrypts or compresses what is kept: `encryption({ … })`, `compression()`. Default: events are kept by reference. */
  readonly cipher?: LogCodec | undefined
}

/** A log in memory: events are kept by reference for as long as the log lives. */
export function memoryLog({ keepEnded = Infinity, cipher }: MemoryLogOptions = {}): LogStore {
  return new MemoryLog(keepEnded, cipher)
}

interface KeptLog {
  readonly ref: LogRef
  events: LogEvent[]
  /** Numbers the appends to all logs: that of the last one to this. */
  changed: number
  /** Of a thread, if its writer passed one with the last events. */
  digest: JsonObject | null
  /** The logs that it refers to. */
  readonly references: Set<KeptLog>
  /** The logs that refer to it. */
  readonly referrers: Set<KeptLog>
  claim: { readonly owner: string; readonly untilMs: number } | null
  /** Null before the first post. */
  inbox: { readonly ids: Set<string>; waiting: readonly Post[] } | null
}

class MemoryLog implements LogStore, Rewritable {
  readonly outlives = false
  readonly #keepEnded: number
  readonly #logs: Readonly<Record<LogKind, Map<string, KeptLog>>> = { run: new Map(), thread: new Map() }
  /** Ended runs that no other log refers to, the earliest first. */
  #ended = new Set<KeptLog>()
  #followers: Followers | null = null
  /** Appends to all logs. */
  #appends = 0
  /** Is loaded by the first append or post. */
  #cipher: LogCodec | undefined
  /** Null: what is kept is what was given. */
  #records: KeptRecords | null = null

  constructor(keepEnded: number, cipher: LogCodec | undefined) {
    this.#keepEnded = keepEnded
    this.#cipher = cipher
  }

  append(ref: LogRef, events: readonly LogEvent[], options: AppendOptions = {}): Promise<void> {
    if (this.#cipher !== undefined) return this.#load(this.#cipher).then(() => this.append(ref, events, options))
    try {
      this.#append(ref, events, options)
      return STORED
    } catch (error) {
      return Promise.reject(error instanceof HarnessError ? error : new Error(String(error)))
    }
  }

  #append(ref: LogRef, events: readonly LogEvent[], options: AppendOptions): void {
    const known = this.#find(ref)
    if (known?.claim?.owner !== options.owner) throw ownedByAnother(ref, options.owner)
    if (events.length === 0) return
    lastSeqOf(ref, known?.events.at(-1)?.seq ?? 0, events)
    const kept = known ?? this.#create(ref)
    if (kept.events.length === 0) this.#keepWithParent(kept, events[0])
    for (const event of events) kept.events.push(this.#records?.keepEvent(ref, event) ?? event)
    kept.changed = this.#appends += 1
    // Runs are folded when they are inspected: a digest at each append would cost more.
    if (ref.kind === 'thread') this.#keepDigest(kept, options.digest as JsonObject | undefined)
    for (const to of options.references ?? []) this.#refer(kept, to)
    if (hasRunEnded(kept) || this.#ended.has(kept)) this.#countEnded(kept)
    const { posts = [] } = options
    if (kept.inbox !== null) kept.inbox.waiting = kept.inbox.waiting.filter(({ id }) => !posts.includes(id))
    this.#followers?.wake(ref)
  }

  async *read<Event extends LogEvent = DurableEvent>(
    ref: LogRef,
    { after = 0 }: ReadOptions = {},
  ): AsyncGenerator<Event> {
    for (const event of this.#find(ref)?.events ?? [])
      if (event.seq > after) yield this.#givenEvent(ref, event) as Event
  }

  async claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean> {
    const known = this.#find(ref)
    checkClaim(owner, ttlMs)
    const holder = known?.claim ?? null
    if (holder !== null && holder.owner !== owner && (ttlMs === 0 || claimOwner(holder) !== null)) return false
    if (ttlMs > 0) (known ?? this.#create(ref)).claim = { owner, untilMs: Date.now() + ttlMs }
    else if (known !== undefined) known.claim = null
    return true
  }

  async post(ref: LogRef, post: Post): Promise<void> {
    if (this.#cipher !== undefined) await this.#load(this.#cipher)
    const known = this.#find(ref)
    checkPost(ref, post)
    const kept = known ?? this.#create(ref)
    kept.inbox ??= { ids: new Set(), waiting: [] }
    if (kept.inbox.ids.has(post.id)) return
    kept.inbox.ids.add(post.id)
    const { id, body } = structuredClone(post)
    kept.inbox.waiting = [...kept.inbox.waiting, { id, body: this.#records?.keep(body, ref, 'post', id) ?? body }]
  }

  async takePosts(ref: LogRef, owner: string): Promise<readonly Post[]> {
    const known = this.#find(ref)
    if (known?.claim?.owner !== owner) throw ownedByAnother(ref, owner)
    return (known.inbox?.waiting ?? []).map((post) => this.#givenPost(ref, post))
  }

  follow<Event extends LogEvent = DurableEvent>(ref: LogRef, options: FollowOptions = {}): AsyncIterable<Event> {
    checkRef(ref)
    this.#followers ??= new Followers()
    return this.#followers.follow<Event>(ref, options, { read: (from) => this.read<Event>(ref, from), longestMs: null })
  }

  async inspect<Kind extends LogKind>(ref: LogRef<Kind>): Promise<LogSummaries[Kind] | null> {
    const kept = this.#find(ref)
    return kept === undefined ? null : ((await this.#summaryOf(kept)) as LogSummaries[Kind] | null)
  }

  async *list<Kind extends LogKind = 'run'>(options?: ListOptions<Kind>): AsyncGenerator<LogSummaries[Kind]> {
    const query = listQuery(options)
    const summaries: LogSummaries[LogKind][] = []
    for (const { kept, changed } of this.#chosen(query)) {
      if (!mayHaveParent(kept, query.parentRunId) || isRuledOut(query, kept.events.at(-1) ?? null)) continue
      const summary = await unlessDamaged(this.#summaryOf(kept), (error) => this.#unreadable(kept, error))
      // It may have changed since it was chosen: then it is listed again.
      if (summary !== null && isListed(query, summary)) summaries.push({ ...summary, cursor: `${changed}` })
    }
    if (query.changedAfter === undefined) summaries.sort((left, right) => comparePlaces(placeOf(left), placeOf(right)))
    yield* summaries as LogSummaries[Kind][]
  }

  waiting(options?: WaitingOptions): Promise<readonly RunSummary[]> {
    const waiting = [...this.#logs.run.values()].filter(mayWait).sort(byStart)
    const candidates = async function* (this: MemoryLog): AsyncGenerator<RunSummary | null> {
      for (const kept of waiting) yield unlessDamaged(this.#summaryOf(kept) as Promise<RunSummary | null>, () => null)
    }
    return chosenWaiting(options, () => candidates.call(this))
  }

  export(runId: string): AsyncIterable<DurableEvent> {
    return exportRun(this, runId)
  }

  async referrers(ref: LogRef): Promise<readonly LogRef[]> {
    return [...(this.#find(ref)?.referrers ?? [])].map((from) => from.ref)
  }

  async prune(options: PruneOptions): Promise<number> {
    const runs = await listPrunable(this.list())
    const all = [...this.#logs.run.values(), ...this.#logs.thread.values()]
    const references = all.flatMap((from) => [...from.references].map((to) => ({ from: from.ref, to: to.ref })))
    const removals = removableRuns({ runs, references }, options, Date.now())
    const { owner } = options
    const isFree = ({ ref }: Removal): boolean => {
      const claimant = claimOwner(this.#find(ref)?.claim ?? null)
      return claimant === null || claimant === owner
    }
    if (owner !== undefined && !removals.every(isFree)) return 0
    const chosen = new Set(removals.map(({ ref }) => keyOf(ref)))
    let removed = 0
    for await (const removal of inPieces(removals)) {
      const kept = this.#find(removal.ref)
      const last = kept?.events.at(-1)?.seq
      if (kept === undefined || last === undefined || !isFree(removal)) continue
      if (removal.lastSeq !== null && last !== removal.lastSeq) continue
      // A log that has come since the logs were chosen.
      if ([...kept.referrers].some((from) => !chosen.has(keyOf(from.ref)))) continue
      if (kept.claim?.owner === owner) kept.claim = null
      this.#remove(kept)
      removed += 1
    }
    return removed
  }

  /** The logs of one kind, with the number of the last append to each; those that have changed after a cursor in that order. */
  #chosen({ kind, changedAfter }: ListQuery): { readonly kept: KeptLog; readonly changed: number }[] {
    const logs = [...this.#logs[kind].values()].map((kept) => ({ kept, changed: kept.changed }))
    if (changedAfter === undefined) return logs
    const after = this.#appendsBefore(changedAfter)
    return logs.filter(({ changed }) => changed > after).sort((left, right) => left.changed - right.changed)
  }

  /** A cursor of another log that was in this place: it has had appends since, all of which count. */
  #appendsBefore(cursor: string | null): number {
    const appends = Number(cursor ?? 0)
    if (cursor !== null && !/^\d+$/.test(cursor)) throw invalidCursor(cursor)
    return appends > this.#appends ? 0 : appends
  }

  /** Also logs that are owned: nobody else reads them. */
  async rewrite(cipher: LogCodec): Promise<Rewriting> {
    if (this.#cipher !== undefined) await this.#load(this.#cipher)
    const records = await openRecords(cipher)
    const given = [...this.#logs.run.values(), ...this.#logs.thread.values()].map((kept) => ({
      kept,
      events: kept.events.map((event) => this.#givenEvent(kept.ref, event)),
      digest: this.#givenDigest(kept),
      posts: kept.inbox?.waiting.map((post) => this.#givenPost(kept.ref, post)) ?? [],
    }))
    this.#records = records
    for (const { kept, events, digest, posts } of given) {
      const { ref, inbox } = kept
      kept.events = events.map((event) => records.keepEvent(ref, event))
      this.#keepDigest(kept, digest ?? undefined)
      if (inbox !== null)
        inbox.waiting = posts.map(({ id, body }) => ({ id, body: records.keep(body, ref, 'post', id) }))
    }
    return { rewritten: given.length, left: [], erased: true }
  }

  async #load(cipher: LogCodec): Promise<void> {
    this.#records = await openRecords(cipher)
    this.#cipher = undefined
  }

  #keepDigest(kept: KeptLog, digest: JsonObject | undefined): void {
    const lastSeq = kept.events.at(-1)?.seq ?? 0
    kept.digest = digest === undefined ? null : (this.#records?.keep(digest, kept.ref, 'digest', lastSeq) ?? digest)
  }

  #givenEvent(ref: LogRef, event: LogEvent): LogEvent {
    return this.#records?.givenEvent(ref, event) ?? event
  }

  #givenDigest({ ref, events, digest }: KeptLog): JsonObject | null {
    if (digest === null || this.#records === null) return digest
    return this.#records.given(digest, ref, 'digest', events.at(-1)?.seq ?? 0) as JsonObject
  }

  #givenPost(ref: LogRef, post: Post): Post {
    const { id, body } = post
    return this.#records === null ? post : { id, body: this.#records.given(body, ref, 'post', id) }
  }

  #find(ref: LogRef): KeptLog | undefined {
    checkRef(ref)
    return this.#logs[ref.kind].get(ref.id)
  }

  #create(ref: LogRef): KeptLog {
    const kept = {
      ref,
      events: [],
      changed: 0,
      digest: null,
      references: new Set<KeptLog>(),
      referrers: new Set<KeptLog>(),
      claim: null,
      inbox: null,
    }
    this.#logs[ref.kind].set(ref.id, kept)
    return kept
  }

  async #summaryOf(kept: KeptLog): Promise<RunSummary | ThreadSummary | null> {
    const { ref, events, changed } = kept
    const [owner, cursor] = [claimOwner(kept.claim), `${changed}`]
    const [first, last] = [events[0], events.at(-1)]
    if (first === undefined || last === undefined) return null
    if (ref.kind === 'run') {
      const known = await foldRun(this, ref.id)
      return known === null ? null : summaryOf(known, owner !== null, cursor)
    }
    return {
      threadId: ref.id,
      createdAt: first.at,
      updatedAt: last.at,
      lastSeq: last.seq,
      cursor,
      owner,
      digest: this.#givenDigest(kept),
    }
  }

  /** Of a run: threads are not read. */
  #unreadable({ ref: { id: runId }, events, changed }: KeptLog, error: HarnessError): Promise<RunSummary> {
    const [startedAt, updatedAt] = [events[0]?.at ?? '', events.at(-1)?.at ?? '']
    return unreadableRun(
      this,
      { runId, startedAt, updatedAt, lastSeq: events.at(-1)?.seq ?? 0, cursor: `${changed}` },
      error,
    )
  }

  /** A child run is kept for as long as its parent, which may still need it. */
  #keepWithParent(child: KeptLog, first: LogEvent | undefined): void {
    const parentRunId = first !== undefined && 'parentRunId' in first ? first.parentRunId : null
    const parent = typeof parentRunId === 'string' ? this.#logs.run.get(parentRunId) : undefined
    if (parent !== undefined) this.#refer(parent, child.ref)
  }

  #refer(from: KeptLog, ref: LogRef): void {
    const to = this.#find(ref) ?? this.#create(ref)
    from.references.add(to)
    to.referrers.add(from)
    this.#ended.delete(to)
  }

  /** A paused run counts as ended until it continues. */
  #countEnded(kept: KeptLog): void {
    this.#ended.delete(kept)
    if (!hasRunEnded(kept) || kept.referrers.size > 0) return
    this.#ended.add(kept)
    while (this.#ended.size > this.#keepEnded) {
      const [earliest] = this.#ended
      if (earliest !== undefined) this.#remove(earliest)
    }
  }

  /** Removes a log; the claim of a process that still owns it stays. */
  #remove(removed: KeptLog): void {
    const { ref, claim } = removed
    this.#ended.delete(removed)
    this.#logs[ref.kind].delete(ref.id)
    if (claim !== null) this.#create(ref).claim = claim
    for (const to of removed.references) to.referrers.delete(removed)
    const freed = [...removed.references].filter((to) => to.referrers.size === 0 && hasRunEnded(to))
    // They ended before the others.
    if (freed.length > 0 && this.#keepEnded < Infinity) this.#ended = new Set([...freed, ...this.#ended])
  }
}

/** The oldest run first. */
function byStart({ ref, events }: KeptLog, { ref: other, events: others }: KeptLog): number {
  return comparePlaces({ time: others[0]?.at ?? '', id: other.id }, { time: events[0]?.at ?? '', id: ref.id })
}

/** False for a run that has ended, is paused, is a child or has an owner. */
function mayWait(kept: KeptLog): boolean {
  return kept.events.length > 0 && !hasRunEnded(kept) && mayHaveParent(kept, null) && claimOwner(kept.claim) === null
}

async function openRecords(cipher: LogCodec): Promise<KeptRecords> {
  const module = await import('./codec/kept-records.js')
  return module.KeptRecords.open(cipher)
}

function claimOwner(claim: KeptLog['claim']): string | null {
  return claim !== null && claim.untilMs > Date.now() && !hasEnded(claim.owner) ? claim.owner : null
}

/** False if the first event of a run names another parent. */
function mayHaveParent({ events: [first] }: KeptLog, parentRunId: string | null | undefined): boolean {
  if (parentRunId === undefined || first === undefined || !('parentRunId' in first)) return true
  return first.parentRunId === parentRunId
}

function hasRunEnded({ ref, events }: KeptLog): boolean {
  const kind = events.at(-1)?.kind
  return ref.kind === 'run' && (kind === 'run_completed' || kind === 'run_failed')
}
