import type { DurableEvent } from '../run/machine/events.js'
import { comparePlaces, listFilter, prunables, removable } from '../run/log/listing.js'
import type { ListOptions, PruneOptions } from '../run/log/listing.js'
import { checkClaim, lastSeqOf, ownedByAnother } from '../run/log/log.js'
import type { RunStore } from '../run/log/log.js'
import { hasEnded } from '../run/log/owner.js'
import { digestAfter, summarize, summaryOf } from '../run/log/summary.js'
import type { RunDigest, RunSummary } from '../run/log/summary.js'

export interface MemoryLogOptions {
  /** How many ended runs are kept, the latest first. Default: all. */
  readonly keepEnded?: number
}

/** A log in memory: events are kept by reference for as long as the log lives. */
export function memoryLog({ keepEnded = Infinity }: MemoryLogOptions = {}): RunStore {
  return new MemoryLog(keepEnded)
}

interface Claim {
  readonly owner: string
  readonly untilMs: number
}

class MemoryLog implements RunStore {
  readonly #keepEnded: number
  readonly #runs = new Map<string, DurableEvent[]>()
  readonly #ended = new Set<string>()
  readonly #claims = new Map<string, Claim>()

  constructor(keepEnded: number) {
    this.#keepEnded = keepEnded
  }

  async append(runId: string, events: readonly DurableEvent[], owner?: string): Promise<void> {
    if (this.#claims.get(runId)?.owner !== owner) throw ownedByAnother(runId, owner)
    if (events.length === 0) return
    const kept = this.#runs.get(runId)
    lastSeqOf(runId, kept?.at(-1)?.seq ?? 0, events)
    if (kept === undefined) this.#runs.set(runId, [...events])
    else kept.push(...events)
    // A paused run has ended for now: what comes behind its end makes it one that is under way again.
    this.#ended.delete(runId)
    if (events.some(({ kind }) => kind === 'run_completed' || kind === 'run_failed')) this.#ended.add(runId)
    for (const earliest of this.#ended) {
      if (this.#ended.size <= this.#keepEnded) break
      this.#remove(earliest)
    }
  }

  async *read(runId: string, from = 1): AsyncGenerator<DurableEvent> {
    for (const event of this.#runs.get(runId) ?? []) if (event.seq >= from) yield event
  }

  async claim(runId: string, owner: string, ttlMs: number): Promise<boolean> {
    checkClaim(owner, ttlMs)
    const holder = this.#claims.get(runId)?.owner
    if (holder !== undefined && holder !== owner && (ttlMs === 0 || this.#isHeld(runId))) return false
    if (ttlMs === 0) this.#claims.delete(runId)
    else this.#claims.set(runId, { owner, untilMs: Date.now() + ttlMs })
    return true
  }

  inspect(runId: string): Promise<RunSummary | null> {
    return summarize(runId, this.#runs.get(runId) ?? [], () => this.#isHeld(runId))
  }

  async *list(options?: ListOptions): AsyncGenerator<RunSummary> {
    const wanted = listFilter(options)
    const digests = [...this.#runs].flatMap(([runId, events]) => digestOf(runId, events) ?? [])
    for (const digest of digests.sort(comparePlaces)) {
      const summary = summaryOf(digest, this.#isHeld(digest.runId))
      if (wanted(summary)) yield summary
    }
  }

  async prune(options: PruneOptions): Promise<number> {
    const chosen = removable(await prunables(this.list()), options, Date.now())
    // What has gone on meanwhile stays.
    const still = chosen.filter(({ runId, lastSeq }) => this.#runs.get(runId)?.at(-1)?.seq === lastSeq)
    for (const { runId } of still) this.#remove(runId)
    return still.length
  }

  #isHeld(runId: string): boolean {
    const claim = this.#claims.get(runId)
    return claim !== undefined && claim.untilMs > Date.now() && !hasEnded(claim.owner)
  }

  #remove(runId: string): void {
    this.#ended.delete(runId)
    this.#runs.delete(runId)
  }
}

function digestOf(runId: string, events: readonly DurableEvent[]): RunDigest | null {
  let digest: RunDigest | null = null
  for (const event of events) digest = digestAfter(runId, digest, event)
  return digest
}
