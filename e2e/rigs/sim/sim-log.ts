import { HarnessError } from 'thinharness'
import type { LogRef, LogStore } from 'thinharness'
import type { Random } from '../crash/random.js'
import type { VirtualTime } from './virtual-time.js'

/** How often a store misbehaves: numbers from 0 (never) to 1. */
export interface Troubles {
  readonly late: number
  readonly fails: number
  /** A request fails although it was done. */
  readonly losesAnswer: number
}

/** Is called with what happens, for people who look for a mistake. */
export type Trace = (line: string | (() => string)) => void

export interface LogMeans {
  readonly base: LogStore
  readonly time: Pick<VirtualTime, 'sleep' | 'wake'>
  readonly random: Random
  readonly trace: Trace
  readonly troubles: Troubles
  /** Ids of the posts in the store that no stored event has dealt with. */
  readonly posts: Set<string>
}

/** A reading fails in the middle: so often, of the chance that it fails at all, at each of its events. */
const PART_OF_READS = 0.1

/** The connection of one simulated process to the store that all share. It is late, fails, and ends with its process. */
export class SimLog implements LogStore {
  readonly outlives = true
  readonly #means: LogMeans
  readonly #name: string
  readonly #claims = new Map<string, { readonly ref: LogRef; readonly owner: string }>()
  /** Appends until the process dies; null: it does not die in an append. */
  #left: { appends: number; readonly storesLast: boolean } | null = null
  #isDead = false
  #isCalm = false
  #onDeath = (): void => undefined
  /** Resolves when the process dies. */
  readonly died = new Promise<void>((resolve) => (this.#onDeath = resolve))

  constructor(means: LogMeans, name: string) {
    this.#means = means
    this.#name = name
  }

  get isDead(): boolean {
    return this.#isDead
  }

  /** From now on the store answers at once. */
  calm(): void {
    this.#isCalm = true
    this.#left = null
  }

  /** The process dies at an append: before or after it is stored. */
  dieAt(appends: number, storesLast: boolean): void {
    this.#left ??= { appends, storesLast }
  }

  /** The process dies now. Nothing that it has asked for settles. */
  die(): void {
    this.#isDead = true
    this.#means.trace(`${this.#name} dies`)
    this.#onDeath()
  }

  /** Others see that the process has ended: its claims are free. */
  async freeClaims(): Promise<void> {
    for (const { ref, owner } of this.#claims.values()) await this.#means.base.claim(ref, owner, 0)
  }

  async append(...args: Parameters<LogStore['append']>): Promise<void> {
    this.#means.trace(() => `${this.#name} appends to ${shownAppend(...args)}`)
    await this.#begin()
    const left = this.#left
    if (left !== null && --left.appends <= 0) {
      if (left.storesLast) await this.#store(...args)
      this.die()
      return never()
    }
    this.#mayFail()
    await this.#store(...args)
    await this.#end()
    this.#mayLoseAnswer()
  }

  async *read(...args: Parameters<LogStore['read']>): AsyncGenerator<never> {
    await this.#begin()
    this.#mayFail()
    for await (const event of this.#means.base.read<never>(...args)) {
      if (this.#isDead) await never()
      this.#mayFail(PART_OF_READS)
      yield event
    }
  }

  async claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean> {
    const isOurs = await this.#ask(() => this.#means.base.claim(ref, owner, ttlMs))
    if (isOurs) this.#claims.set(`${ref.kind}:${ref.id}`, { ref, owner })
    return isOurs
  }

  async *follow(...args: Parameters<NonNullable<LogStore['follow']>>): AsyncGenerator<never> {
    const { base } = this.#means
    await this.#begin()
    this.#mayFail()
    for await (const event of base.follow?.<never>(...args) ?? []) {
      await this.#begin()
      this.#mayFail(PART_OF_READS)
      yield event
    }
  }

  list: LogStore['list'] = (...args) => this.#listed(() => this.#means.base.list(...args))

  export(...args: Parameters<LogStore['export']>): AsyncIterable<never> {
    return this.#listed(() => this.#means.base.export(...args) as AsyncIterable<never>)
  }

  readonly post: LogStore['post'] = (...args) => this.#ask(() => this.#post(...args))
  readonly takePosts: LogStore['takePosts'] = (...args) => this.#ask(() => this.#means.base.takePosts(...args))
  readonly inspect: LogStore['inspect'] = (...args) => this.#ask(() => this.#means.base.inspect(...args))
  readonly waiting: LogStore['waiting'] = (...args) => this.#ask(() => this.#means.base.waiting(...args))
  readonly prune: LogStore['prune'] = (...args) => this.#ask(() => this.#means.base.prune(...args))
  readonly referrers: NonNullable<LogStore['referrers']> = (ref) =>
    this.#ask(async () => (await this.#means.base.referrers?.(ref)) ?? [])

  async #store(...args: Parameters<LogStore['append']>): Promise<void> {
    const { base, posts } = this.#means
    await base.append(...args)
    for (const id of args[2]?.posts ?? []) posts.delete(id)
  }

  async #post(...args: Parameters<LogStore['post']>): Promise<void> {
    const { base, posts, time } = this.#means
    await base.post(...args)
    posts.add(args[1].id)
    time.wake()
  }

  async #ask<T>(work: () => Promise<T>): Promise<T> {
    await this.#begin()
    this.#mayFail()
    const answer = await work()
    await this.#end()
    this.#mayLoseAnswer()
    return answer
  }

  async *#listed<Item>(work: () => AsyncIterable<Item>): AsyncGenerator<Item> {
    await this.#begin()
    this.#mayFail()
    for await (const item of work()) {
      if (this.#isDead) await never()
      this.#mayFail(PART_OF_READS)
      yield item
    }
  }

  async #begin(): Promise<void> {
    if (this.#isDead) await never()
    await this.#wait()
    if (this.#isDead) await never()
  }

  async #end(): Promise<void> {
    await this.#wait()
    if (this.#isDead) await never()
  }

  async #wait(): Promise<void> {
    const { random, time, troubles } = this.#means
    if (!this.#happens(troubles.late)) return
    // Now and then for longer than a claim lasts.
    const longest = random() < 0.02 ? 100_000 : random() < 0.1 ? 15_000 : 300
    await time.sleep(1 + random() * longest)
  }

  #mayFail(part = 1): void {
    if (!this.#happens(this.#means.troubles.fails * part)) return
    this.#means.trace(`${this.#name} fails`)
    throw failure()
  }

  /** It was done, and whoever asked does not learn it. */
  #mayLoseAnswer(): void {
    if (!this.#happens(this.#means.troubles.losesAnswer)) return
    this.#means.trace(`${this.#name} loses the answer`)
    throw failure()
  }

  #happens(chance: number): boolean {
    return !this.#isCalm && chance > 0 && this.#means.random() < chance
  }
}

function shownAppend(...[{ kind, id }, events]: Parameters<LogStore['append']>): string {
  const lines = events.map((event) => `${event.seq} ${JSON.stringify({ ...event, at: undefined })}`.slice(0, 300))
  return `${kind} ${id.slice(0, 9)}: ${lines.join('\n    ')}`
}

function failure(): HarnessError {
  return new HarnessError('store_failure', 'The store failed.')
}

export function never<T>(): Promise<T> {
  return new Promise<T>(() => undefined)
}
