import type { LogRef, LogStore } from 'thinharness'

/** A log whose process can die: from then on nothing that it is asked settles, and its claims are free. */
export class MortalLog implements LogStore {
  readonly outlives = true
  readonly #base: LogStore
  readonly #claims = new Map<string, { readonly ref: LogRef; readonly owner: string }>()
  #left: number
  readonly #storesLast: boolean
  #isDead = false

  /** Dies at append number `appends`, before or after it is stored. */
  constructor(base: LogStore, appends: number, storesLast: boolean) {
    this.#base = base
    this.#left = appends
    this.#storesLast = storesLast
  }

  get isDead(): boolean {
    return this.#isDead
  }

  async kill(): Promise<void> {
    this.#isDead = true
    for (const { ref, owner } of this.#claims.values()) await this.#base.claim(ref, owner, 0)
  }

  async append(...args: Parameters<LogStore['append']>): Promise<void> {
    if (this.#isDead) return never()
    this.#left -= 1
    if (this.#left > 0) return this.#base.append(...args)
    this.#isDead = true
    if (this.#storesLast) await this.#base.append(...args)
    return never()
  }

  async *read(...args: Parameters<LogStore['read']>): AsyncGenerator<never> {
    if (this.#isDead) await never()
    yield* this.#base.read<never>(...args)
  }

  async claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean> {
    if (this.#isDead) return never()
    const isOurs = await this.#base.claim(ref, owner, ttlMs)
    if (isOurs) this.#claims.set(`${ref.kind}:${ref.id}`, { ref, owner })
    return isOurs
  }

  readonly post: LogStore['post'] = (...args) => this.#or(() => this.#base.post(...args))
  readonly takePosts: LogStore['takePosts'] = (...args) => this.#or(() => this.#base.takePosts(...args))
  readonly inspect: LogStore['inspect'] = (...args) => this.#or(() => this.#base.inspect(...args))
  readonly list: LogStore['list'] = (...args) => this.#base.list(...args)
  readonly prune: LogStore['prune'] = (...args) => this.#or(() => this.#base.prune(...args))
  readonly export: LogStore['export'] = (...args) => this.#base.export(...args)

  #or<T>(work: () => Promise<T>): Promise<T> {
    return this.#isDead ? never() : work()
  }
}

function never<T>(): Promise<T> {
  return new Promise<T>(() => undefined)
}
