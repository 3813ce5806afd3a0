import { HarnessError } from '#contracts/errors.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import type { LogSummaries, RunSummary } from '#core/log/run-summary.js'
import type { ListOptions, PruneOptions, WaitingOptions } from '#core/log/list-options.js'
import type { AppendOptions, FollowOptions, LogEvent, LogStore, Post, ReadOptions } from '#core/log/log.js'
import { checkRef } from '#core/log/ref.js'
import type { LogKind, LogRef } from '#core/log/ref.js'
import type { DurableEvent } from '#core/state/events.js'
import { absolutePath, nodeModule } from '#util/platform/node.js'
import { boolean, oneOf, partial } from '#util/validate.js'
import { CIPHER } from './codec/log-codec.js'
import type { LogCodec, Rewritable, Rewriting } from './codec/log-codec.js'
import type { Fsync, OpenFileLog, OpenOptions } from './file/open-file-log.js'

export interface FileLogOptions {
  /**
   * Events that survive a crash. A crash of the process loses none: each has been passed to the operating system.
   * - `always`: nor does a crash of the machine; every append waits for the disk.
   * - `interval` (default): a crash of the machine loses at most the last second.
   * - `never`: a crash of the machine loses the events that the operating system had not yet written.
   *
   * Where the file system cannot sync files, `always` fails, and `interval` is `never` with one warning.
   */
  readonly fsync?: Fsync | undefined
  /** Encrypts or compresses what is stored: `encryption({ … })`, `compression()`. Default: neither. */
  readonly cipher?: LogCodec | undefined
  /** Nothing in the folder is changed: whatever would, rejects with `invalid_state`. Default false. */
  readonly readOnly?: boolean | undefined
}

const OPTIONS = partial<FileLogOptions>({
  fsync: oneOf('always', 'interval', 'never'),
  cipher: CIPHER,
  readOnly: boolean,
})

/**
 * A log in a folder: one JSONL file for each run, named after its id, one event a line; those of threads are in the
 * folder `threads`. A torn last line does no harm. Any number of processes on one machine may share the folder; over a
 * network file system, claims are not reliable. Throws `invalid_options`. The code of the log is loaded on first use.
 */
export function fileLog(folder: string, options: FileLogOptions = {}): LogStore {
  const { fsync = 'interval', cipher, readOnly = false } = parse(OPTIONS, options, '`fileLog`')
  if (typeof folder !== 'string' || folder === '')
    throw invalidOptions('Expected the folder of `fileLog` to be a path.')
  if (nodeModule('node:fs') === undefined)
    throw new HarnessError('missing_dependency', '`fileLog` needs the file system of Node, Deno or Bun.')
  return new FileLog(absolutePath(folder), { fsync, cipher, readOnly })
}

/** Loads the log on first use. */
class FileLog implements LogStore, Rewritable {
  readonly outlives = true
  readonly #folder: string
  readonly #options: OpenOptions
  #opening: Promise<OpenFileLog> | undefined
  #opened: OpenFileLog | undefined

  constructor(folder: string, options: OpenOptions) {
    this.#folder = folder
    this.#options = options
  }

  append(ref: LogRef, events: readonly LogEvent[], options?: AppendOptions): Promise<void> {
    return this.#change((log) => log.append(ref, events, options))
  }

  read<Event extends LogEvent = DurableEvent>(ref: LogRef, options?: ReadOptions): AsyncIterable<Event> {
    checkRef(ref)
    return this.#each((log) => log.read(ref, options))
  }

  claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean> {
    return this.#change((log) => log.claim(ref, owner, ttlMs))
  }

  post(ref: LogRef, post: Post): Promise<void> {
    return this.#change((log) => log.post(ref, post))
  }

  takePosts(ref: LogRef, owner: string): Promise<readonly Post[]> {
    return this.#change((log) => log.takePosts(ref, owner))
  }

  follow<Event extends LogEvent = DurableEvent>(ref: LogRef, options?: FollowOptions): AsyncIterable<Event> {
    checkRef(ref)
    return this.#each((log) => log.follow(ref, options))
  }

  inspect<Kind extends LogKind>(ref: LogRef<Kind>): Promise<LogSummaries[Kind] | null> {
    return this.#use((log) => log.inspect(ref))
  }

  list<Kind extends LogKind = 'run'>(options?: ListOptions<Kind>): AsyncIterable<LogSummaries[Kind]> {
    return this.#each((log) => log.list(options))
  }

  referrers(ref: LogRef): Promise<readonly LogRef[]> {
    return this.#use((log) => log.referrers(ref))
  }

  prune(options: PruneOptions): Promise<number> {
    return this.#change((log) => log.prune(options))
  }

  waiting(options?: WaitingOptions): Promise<readonly RunSummary[]> {
    return this.#use((log) => log.waiting(options))
  }

  export(runId: string): AsyncIterable<DurableEvent> {
    return this.#each((log) => log.export(runId))
  }

  rewrite(codec: LogCodec): Promise<Rewriting> {
    return this.#change((log) => log.rewrite(codec))
  }

  async #change<T>(change: (log: OpenFileLog) => Promise<T>): Promise<T> {
    if (!this.#options.readOnly) return this.#use(change)
    throw new HarnessError('invalid_state', `The log in \`${this.#folder}\` was opened to be read only.`)
  }

  #open(): Promise<OpenFileLog> {
    return (this.#opening ??= this.#load())
  }

  async #load(): Promise<OpenFileLog> {
    const module = await import('./file/open-file-log.js')
    this.#opened = await module.OpenFileLog.open(this.#folder, this.#options)
    return this.#opened
  }

  #use<T>(work: (log: OpenFileLog) => Promise<T>): Promise<T> {
    return this.#opened === undefined ? this.#open().then(work) : work(this.#opened)
  }

  #each<T>(read: (log: OpenFileLog) => AsyncIterable<T>): AsyncIterable<T> {
    return this.#opened === undefined ? this.#eachOnceOpened(read) : read(this.#opened)
  }

  async *#eachOnceOpened<T>(read: (log: OpenFileLog) => AsyncIterable<T>): AsyncGenerator<T> {
    yield* read(await this.#open())
  }
}
