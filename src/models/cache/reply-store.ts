import { invalidOptions, parse } from '#contracts/parse.js'
import { integer, partial } from '#util/validate.js'

/** How long a reply is kept, and with which others it is compared. */
export interface KeepOptions {
  /** In ms since 1970; null: as long as there is room. */
  readonly expiresAt: number | null
  /** Replies that differ in the question only, for `semantic`; null: it is found by its key alone. */
  readonly group: string | null
}

/** A place for replies: text by key. Implement it for one that several machines share. */
export interface ReplyStore {
  /** The text of a key; null if there is none, or it has expired. */
  get(key: string): Promise<string | null>
  /** Keeps a text, in place of an earlier one. */
  set(key: string, text: string, options: KeepOptions): Promise<void>
  /** The texts of a group that have not expired, newest first, at most so many. Needed for `semantic` only. */
  group?(group: string, limit: number): Promise<readonly string[]>
}

export interface MemoryCacheOptions {
  /** The most replies; of more, those that were used longest ago go. Default 1,000. */
  readonly entries?: number | undefined
}

const OPTIONS = partial<MemoryCacheOptions>({ entries: integer(1) })

interface Kept extends KeepOptions {
  readonly text: string
}

/**
 * Keeps replies in this process.
 * @throws HarnessError `invalid_options` for an option that it does not know.
 * @example
 * const store = memoryCache({ entries: 1_000 })
 * const model = cached('openai:gpt-5.5', { store, ttlMs: 3_600_000 })
 * const harness = new Harness({ model })
 */
export function memoryCache(options: MemoryCacheOptions = {}): ReplyStore {
  const { entries = 1_000 } = parse(OPTIONS, options, '`memoryCache`')
  return new MemoryCache(entries)
}

class MemoryCache implements ReplyStore {
  readonly #most: number
  /** Those used last come last. */
  readonly #kept = new Map<string, Kept>()

  constructor(most: number) {
    this.#most = most
  }

  async get(key: string): Promise<string | null> {
    const kept = this.#kept.get(key)
    if (kept === undefined) return null
    this.#kept.delete(key)
    if (hasExpired(kept)) return null
    this.#kept.set(key, kept)
    return Promise.resolve(kept.text)
  }

  async set(key: string, text: string, options: KeepOptions): Promise<void> {
    this.#kept.delete(key)
    this.#kept.set(key, { text, ...options })
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > this.#most && oldest !== undefined) this.#kept.delete(oldest)
    return Promise.resolve()
  }

  async group(group: string, limit: number): Promise<readonly string[]> {
    const found = [...this.#kept.values()].filter((each) => each.group === group && !hasExpired(each))
    return Promise.resolve(
      found
        .reverse()
        .slice(0, limit)
        .map(({ text }) => text),
    )
  }
}

function hasExpired({ expiresAt }: KeepOptions): boolean {
  return expiresAt !== null && expiresAt <= Date.now()
}

/** Throws `invalid_options` for an empty path. */
export function checkPath(path: unknown): string {
  if (typeof path === 'string' && path !== '') return path
  throw invalidOptions('Expected the file of `sqliteCache` to be a path.')
}
