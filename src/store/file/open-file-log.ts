import type { LogCodec, Rewritable, Rewriting } from '../codec/log-codec.js'
import { StoreCodec } from '../codec/store-codec.js'
import { FileInbox } from './file-inbox.js'
import { FileLease, isClaimed, leaseOwner } from './file-lease.js'
import type { LogCopy } from './file-lease.js'
import { digestText } from './encoded-lines.js'
import { FileLists, noteAppend } from './file-lists.js'
import { folderOf, pathsOf, fileNamesIn, replaceText, makeFolder } from './file-paths.js'
import { exportRun } from '../fold-run.js'
import { Followers } from '../followers.js'
import {
  freeDescriptor,
  isSyncRefused,
  lacksDescriptor,
  LogFile,
  withDescriptor,
  LogTail,
  readEvents,
} from './log-file.js'
import type { LogWriter, ReadFile } from './log-file.js'
import { listPrunable, removableRuns } from '../pruning.js'
import type { Removal, Reference } from '../pruning.js'
import type { LogSummaries, RunDigest, RunSummary } from '#core/log/run-summary.js'
import type { ListOptions, PruneOptions, WaitingOptions } from '#core/log/list-options.js'
import { checkClaim, checkPost, ownedByAnother, storeFailure } from '#core/log/log.js'
import type { AppendOptions, LogEvent, LogStore, FollowOptions, Post, ReadOptions } from '#core/log/log.js'
import { warn } from '#util/platform/node.js'
import { newOwner } from '#util/platform/owner.js'
import { checkRef, keyOf, nameOf } from '#core/log/ref.js'
import type { LogKind, LogRef } from '#core/log/ref.js'
import type { DurableEvent } from '#core/state/events.js'
import { HarnessError } from '#contracts/errors.js'
import { isObject, parseJson } from '#util/json.js'
import { inPieces } from '#util/in-pieces.js'
import { fstatSync, readFileSync, rmSync, statSync, unlinkSync, fsyncSync, appendFileSync, existsSync } from 'node:fs'
import { join, dirname } from 'node:path'

/** When events are written to the disk; see `FileLogOptions`. */
export type Fsync = 'always' | 'interval' | 'never'

/** For how long a log is claimed while it is removed, in ms. */
const REMOVAL_MS = 60_000
/** How a log in files is opened. */
export interface OpenOptions {
  readonly fsync: Fsync
  readonly cipher: LogCodec | undefined
  readonly readOnly: boolean
}

/** The longest time until a follower sees an event of another process, in ms. */
const FOLLOW_MS = 250

/** The log of `fileLog`, in an absolute folder. */
export class OpenFileLog implements LogStore, Rewritable {
  readonly outlives = true
  readonly #folder: string
  readonly #fsync: Fsync
  readonly #codec: StoreCodec
  readonly #files = new Map<string, { readonly owner: string | undefined; readonly file: LogFile }>()
  readonly #leases = new Map<string, FileLease>()
  readonly #followers = new Followers()
  readonly #lists: FileLists
  /** What happens when the file system refuses to sync a file. */
  readonly #onRefusal: (() => void) | null
  /** A file was synced, or could not be. */
  #isTried = false

  static async open(folder: string, options: OpenOptions): Promise<OpenFileLog> {
    return new OpenFileLog(folder, options, await StoreCodec.load(options.cipher))
  }

  private constructor(folder: string, { fsync, readOnly }: OpenOptions, codec: StoreCodec) {
    this.#folder = folder
    this.#fsync = fsync
    this.#codec = codec
    this.#lists = new FileLists(folder, this, { codec, readOnly })
    this.#onRefusal = fsync === 'interval' ? warnOnce(folder) : null
  }

  async append(ref: LogRef, events: readonly LogEvent[], options: AppendOptions = {}): Promise<void> {
    checkRef(ref)
    if (events.length === 0) return
    const { owner, references = [], posts = [] } = options
    const ends = ref.kind === 'run' ? events.some(isEnd) : owner === undefined
    try {
      let file = this.#appended(ref, owner, { events, references })
      for (; file === null; file = this.#appended(ref, owner, { events, references })) await freeDescriptor()
      const syncing = this.#syncing(file, ends)
      if (syncing !== null) await syncing.catch(file.undo)
    } catch (error) {
      await this.#close(ref).catch(() => undefined)
      throw storeFailure(`store an event of ${nameOf(ref)}`, error)
    }
    // The digest of a run is computed from its events.
    if (ref.kind === 'thread') this.#storeDigest(ref, events.at(-1)?.seq ?? 0, options)
    if (posts.length > 0) this.#inboxOf(ref).empty(posts)
    if (ends) await this.#close(ref)
    if (ends && ref.kind === 'run' && options.digest !== undefined)
      this.#lists.noteEnd(ref, options.digest as RunDigest)
    this.#followers.wake(ref)
  }

  read<Event extends LogEvent = DurableEvent>(ref: LogRef, { after = 0 }: ReadOptions = {}): AsyncIterable<Event> {
    checkRef(ref)
    return readEvents<Event>(this.#fileOf(ref), after)
  }

  async claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean> {
    checkRef(ref)
    checkClaim(owner, ttlMs)
    try {
      return await withDescriptor(() => (ttlMs === 0 ? this.#release(ref, owner) : this.#claim(ref, owner, ttlMs)))
    } catch (error) {
      throw storeFailure(`claim ${nameOf(ref)}`, error)
    }
  }

  async post(ref: LogRef, post: Post): Promise<void> {
    checkPost(ref, post)
    try {
      await withDescriptor(async () => this.#inboxOf(ref).post(post, this.#fsync === 'always'))
    } catch (error) {
      throw storeFailure(`take a post to ${nameOf(ref)}`, error)
    }
  }

  async takePosts(ref: LogRef, owner: string): Promise<readonly Post[]> {
    checkRef(ref)
    try {
      const posts = await this.#inboxOf(ref).posts()
      const lease = this.#leases.get(keyOf(ref))
      if (lease?.owner !== owner || !lease.stands) throw ownedByAnother(ref, owner)
      return posts
    } catch (error) {
      throw storeFailure(`give the posts to ${nameOf(ref)}`, error)
    }
  }

  follow<Event extends LogEvent = DurableEvent>(ref: LogRef, options: FollowOptions = {}): AsyncIterable<Event> {
    checkRef(ref)
    const file = this.#fileOf(ref)
    const tail = new LogTail<Event>(file)
    return this.#followers.follow<Event>(ref, options, {
      read: ({ after = 0 }) => tail.read(after),
      longestMs: FOLLOW_MS,
      version: () => {
        const stats = statSync(file.path, { throwIfNoEntry: false })
        return `${stats?.ino}:${stats?.size}`
      },
    })
  }

  async inspect<Kind extends LogKind>(ref: LogRef<Kind>): Promise<LogSummaries[Kind] | null> {
    checkRef(ref)
    return (await this.#lists.summaryOf(ref)) as LogSummaries[Kind] | null
  }

  list<Kind extends LogKind = 'run'>(options?: ListOptions<Kind>): AsyncGenerator<LogSummaries[Kind]> {
    return this.#lists.list(options)
  }

  waiting(options?: WaitingOptions): Promise<readonly RunSummary[]> {
    return this.#lists.waiting(options)
  }

  async rewrite(codec: LogCodec): Promise<Rewriting> {
    const { rewriteFiles } = await import('./rewrite-files.js')
    await this.#codec.change(codec)
    const left: LogRef[] = []
    let rewritten = 0
    for await (const ref of inPieces(await this.#lists.refs())) {
      const paths = this.#pathsOf(ref)
      const lease = FileLease.take(paths.lease, { owner: newOwner(), ttlMs: REMOVAL_MS }, paths.log)
      await this.#close(ref)
      const isRewritten = lease === null ? null : await rewriteFiles(paths, { ref, codec: this.#codec, lease })
      if (isRewritten === null) left.push(ref)
      else if (isRewritten) rewritten += 1
    }
    this.#lists.renew()
    return { rewritten, left, erased: true }
  }

  export(runId: string): AsyncIterable<DurableEvent> {
    return exportRun(this, runId)
  }

  async referrers(ref: LogRef): Promise<readonly LogRef[]> {
    checkRef(ref)
    return referencesTo(this.#folder, ref).map(({ from }) => from)
  }

  async prune(options: PruneOptions): Promise<number> {
    const [runs, references] = [await listPrunable(this.list()), await referencesIn(this.#folder)]
    const { owner } = options
    const removals = removableRuns({ runs, references }, options, Date.now())
    const isOwnedByOther = ({ ref }: Removal): boolean => ![null, owner].includes(leaseOwner(this.#pathsOf(ref).lease))
    if (owner !== undefined && removals.some(isOwnedByOther)) return 0
    let removed = 0
    const chosen = new Set(removals.map(({ ref }) => keyOf(ref)))
    for await (const removal of inPieces(removals)) {
      const isFree = referencesTo(this.#folder, removal.ref).every(({ from }) => chosen.has(keyOf(from)))
      if (isFree && (await this.#remove(removal, owner))) removed += 1
    }
    if (removed > 0) this.#lists.forgetGone()
    return removed
  }

  /** The file, to which the events have been appended; null if there is no descriptor for it. */
  #appended(
    ref: LogRef,
    owner: string | undefined,
    { events, references }: { readonly events: readonly LogEvent[]; readonly references: readonly LogRef[] },
  ): LogFile | null {
    try {
      const file = this.#open(ref, owner)
      for (const to of references) addReference(this.#folder, { from: ref, to })
      file.append(events)
      noteAppend(file.path)
      return file
    } catch (error) {
      if (lacksDescriptor(error)) return null
      throw error
    }
  }

  /** The sync that an append waits for; null: none. The first is synced in any case: a disk that fails is noticed before work is done. */
  #syncing(file: LogFile, ends: boolean): Promise<void> | null {
    if (this.#fsync === 'never') return null
    const isTried = this.#isTried
    this.#isTried = true
    if (this.#fsync === 'always' || ends) return file.sync()
    if (!isTried) return file.trySync()
    file.syncSoon()
    return null
  }

  #pathsOf(ref: LogRef): ReturnType<typeof pathsOf> {
    return pathsOf(this.#folder, ref)
  }

  #fileOf(ref: LogRef): ReadFile {
    return { path: this.#pathsOf(ref).log, ref, codec: this.#codec }
  }

  #inboxOf(ref: LogRef): FileInbox {
    return new FileInbox(this.#pathsOf(ref).inbox, ref, this.#codec)
  }

  #open(ref: LogRef, owner: string | undefined): LogFile {
    const key = keyOf(ref)
    const open = this.#files.get(key)
    if (open !== undefined && open.owner === owner) return open.file
    const file = LogFile.open(this.#pathsOf(ref).log, ref, this.#writerOf(ref, owner))
    this.#files.set(key, { owner, file })
    return file
  }

  async #close(ref: LogRef): Promise<void> {
    const open = this.#files.get(keyOf(ref))
    this.#files.delete(keyOf(ref))
    await open?.file.close()
  }

  /** A writer without a claim may write while the log has no owner, and not into a file that a claim has replaced. */
  #writerOf(ref: LogRef, owner: string | undefined): LogWriter {
    const { lease: folder, log } = this.#pathsOf(ref)
    const lease = this.#leases.get(keyOf(ref))
    const checkOwner: LogWriter['check'] = (fd) => {
      const may =
        owner === undefined
          ? !isClaimed(folder) && !(fd !== null && fstatSync(fd).nlink === 0 && isThere(log))
          : lease !== undefined && lease.owner === owner && lease.stands
      if (may) return
      throw lease?.owner === owner && lease?.hasLostFolder === true ? lostFolder(ref, log) : ownedByAnother(ref, owner)
    }
    return { isOwner: owner !== undefined, check: checkOwner, onRefusal: this.#onRefusal, codec: this.#codec }
  }

  async #claim(ref: LogRef, owner: string, ttlMs: number): Promise<boolean> {
    const held = this.#leases.get(keyOf(ref))
    if (held?.owner === owner) {
      if (held.renew(ttlMs)) return true
      if (held.hasLostFolder) throw lostFolder(ref, this.#pathsOf(ref).log)
      await this.#letGo(ref, held)
      return false
    }
    const { log, lease: folder } = this.#pathsOf(ref)
    const lease = FileLease.take(folder, { owner, ttlMs }, log)
    if (lease === null) return false
    const sync = (fd: number): void => {
      if (this.#fsync !== 'never') this.#syncNow(fd)
    }
    if (!replaceLog(lease, log, { ref, codec: this.#codec, sync })) return false
    // A claim of this process that had expired.
    if (held !== undefined) await this.#letGo(ref, held)
    else await this.#close(ref)
    this.#leases.set(keyOf(ref), lease)
    return true
  }

  #syncNow(fd: number): void {
    try {
      fsyncSync(fd)
    } catch (error) {
      if (this.#onRefusal === null || !isSyncRefused(error)) throw error
      this.#onRefusal()
    }
  }

  async #release(ref: LogRef, owner: string): Promise<boolean> {
    const held = this.#leases.get(keyOf(ref))
    if (held?.owner !== owner) return !isClaimed(this.#pathsOf(ref).lease)
    await this.#letGo(ref, held)
    return true
  }

  async #letGo(ref: LogRef, lease: FileLease): Promise<void> {
    this.#leases.delete(keyOf(ref))
    try {
      await this.#close(ref)
    } finally {
      lease.release()
    }
  }

  #storeDigest(ref: LogRef, lastSeq: number, { digest }: AppendOptions): void {
    if (digest === undefined) return
    replaceText(this.#pathsOf(ref).digest, digestText(this.#codec, { ref, lastSeq, digest }))
  }

  /** False if it has more events than when it was chosen, or an owner. */
  async #remove({ ref, lastSeq }: Removal, owner: string | undefined): Promise<boolean> {
    const paths = this.#pathsOf(ref)
    if (!isThere(paths.log)) return false
    const held = this.#leases.get(keyOf(ref))
    const ownLease = held !== undefined && held.owner === owner ? held : null
    const lease = ownLease ?? FileLease.take(paths.lease, { owner: newOwner(), ttlMs: REMOVAL_MS }, paths.log)
    if (lease === null) return false
    let isRemoved = false
    try {
      const isChanged = lastSeq !== null && (await this.#lists.summaryOf(ref))?.lastSeq !== lastSeq
      if (isChanged || !lease.stands) return false
      unlinkSync(paths.log)
      for (const path of [paths.digest, paths.inbox, paths.references]) rmSync(path, { recursive: true, force: true })
      isRemoved = true
      await this.#close(ref)
    } finally {
      if (ownLease === null) lease.release()
      else if (isRemoved) await this.#letGo(ref, ownLease)
    }
    return isRemoved
  }
}

function lostFolder(ref: LogRef, path: string): HarnessError {
  const message = `The log of ${nameOf(ref)} cannot be continued: its folder \`${dirname(path)}\` was removed, moved or replaced.`
  return new HarnessError('store_failure', message)
}

function warnOnce(folder: string): () => void {
  let isWarned = false
  return () => {
    if (isWarned) return
    isWarned = true
    const message = `The file system of \`${folder}\` cannot sync files: a crash of the machine may lose events. Pass \`fsync: 'never'\` to \`fileLog\` if that is intended.`
    warn(message, 'FileLogWarning')
  }
}

/** The file is not needed soon. */
function isEnd({ kind }: LogEvent): boolean {
  return kind === 'run_completed' || kind === 'run_failed' || kind === 'run_queued'
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined
}

function replaceLog(lease: FileLease, path: string, how: LogCopy): boolean {
  let replaced = false
  try {
    replaced = lease.replaceLog(path, how)
    return replaced
  } finally {
    if (!replaced) lease.release()
  }
}

const ENDING = '.references'

/** Stores that one log refers to another: as a line of a file next to the other, which is removed with it. */
export function addReference(folder: string, reference: Reference): void {
  const path = pathsOf(folder, reference.to).references
  // The break comes first: a process may have ended within the line before.
  const line = `\n${JSON.stringify(reference)}`
  try {
    appendFileSync(path, line, { mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    makeFolder(dirname(path))
    appendFileSync(path, line, { mode: 0o600 })
  }
}

/** All references between the logs in a folder, without those of logs that are gone. */
export async function referencesIn(folder: string): Promise<Reference[]> {
  const references: Reference[] = []
  for (const kind of ['run', 'thread'] as const satisfies readonly LogRef['kind'][]) {
    const parent = folderOf(folder, kind)
    for await (const name of inPieces(await fileNamesIn(parent)))
      if (name.endsWith(ENDING)) references.push(...readReferences(folder, join(parent, name)))
  }
  return references
}

/** The references to one log, without those of logs that are gone. */
export function referencesTo(folder: string, ref: LogRef): Reference[] {
  const path = pathsOf(folder, ref).references
  return existsSync(path) ? readReferences(folder, path) : []
}

function readReferences(folder: string, path: string): Reference[] {
  const bySource = new Map<string, Reference>()
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const parsed = line === '' ? null : parseJson(line)
    if (parsed?.ok !== true || !isObject(parsed.value)) continue
    const reference = parsed.value as unknown as Reference
    if (existsSync(pathsOf(folder, reference.from).log)) bySource.set(keyOf(reference.from), reference)
  }
  return [...bySource.values()]
}
