import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { summaryOf } from '#core/log/run-summary.js'
import type { LogSummaries, RunDigest, RunSummary, ThreadSummary } from '#core/log/run-summary.js'
import { comparePlaces, isListed, isRuledOut, listQuery, placeOf, queriedPhases } from '../list-query.js'
import type { ListOptions, WaitingOptions } from '#core/log/list-options.js'
import type { ListQuery, Place } from '../list-query.js'
import { HarnessError } from '#contracts/errors.js'
import type { LogEvent, LogStore } from '#core/log/log.js'
import { runRef } from '#core/log/ref.js'
import type { LogKind, LogRef } from '#core/log/ref.js'
import type { JsonObject } from '#util/json.js'
import { inPieces } from '#util/in-pieces.js'
import type { RecordCodec } from '../codec/log-codec.js'
import { FileIndex } from './file-index.js'
import type { IndexEntry, PlacedEntry, TextCodec } from './file-index.js'
import { leaseOwner } from './file-lease.js'
import { fileNameOf, fileNamesIn, folderOf, pathsOf, runIdOf } from './file-paths.js'
import { chosenWaiting, foldRun, unlessDamaged, unreadableRun } from '../fold-run.js'
import { fileDigest } from './encoded-lines.js'
import { readFirst, readLast } from './log-file.js'
import type { ReadFile } from './log-file.js'

/** Logs that are read before they get an index: below that it is not worth a file. */
const FEW = 64
const ENDING = '.jsonl'
const INBOX = '.inbox'
/** The last appends of this process, numbered, by the paths of the logs. */
const lastAppends = new Map<string, number>()
const APPENDS_KNOWN = 10_000
let appendCount = 0

/** This process has appended to a log. */
export function noteAppend(path: string): void {
  lastAppends.delete(path)
  lastAppends.set(path, (appendCount += 1))
  if (lastAppends.size <= APPENDS_KNOWN) return
  for (const oldest of lastAppends.keys()) return void lastAppends.delete(oldest)
}

/** The phase of an entry whose log cannot be read: it says that, and nothing more. */
const UNREADABLE = 'unreadable'

/** A log of a list, and where it is there. */
interface FoundLog extends Place {
  readonly name: string
  readonly stamp: string
  /** Null: the log has to be read. */
  readonly entry: PlacedEntry | null
  /** Undefined: not known yet. */
  readonly parentRunId?: string | null
  /** Of a log that was read already. */
  readonly summary?: Summary
}

/** What the first event of a log says of its place. */
interface FirstEvent {
  readonly at: string
  readonly runId?: string
  readonly parentRunId?: string | null
}

type Summary = LogSummaries[LogKind]

/** The lists of a log in files. Summaries come from an index beside the logs; a log that it does not know as it is now is read. */
export class FileLists {
  readonly #folder: string
  readonly #log: LogStore
  readonly #codec: RecordCodec
  readonly #indexes: Readonly<Record<LogKind, FileIndex>>

  constructor(
    folder: string,
    log: LogStore,
    { codec, readOnly }: { readonly codec: RecordCodec; readonly readOnly: boolean },
  ) {
    this.#folder = folder
    this.#log = log
    this.#codec = codec
    const indexOf = (kind: LogKind): FileIndex => {
      const parent = folderOf(folder, kind)
      const isLog = (name: string): boolean => isThere(join(parent, `${name}${ENDING}`))
      return new FileIndex(parent, isLog, { ...textCodec(kind, codec), readOnly })
    }
    this.#indexes = { run: indexOf('run'), thread: indexOf('thread') }
  }

  async *list<Kind extends LogKind>(options: ListOptions<Kind> | undefined): AsyncGenerator<LogSummaries[Kind]> {
    const query = listQuery(options)
    const summaries = query.changedAfter === undefined ? this.#byTime(query) : this.#byChange(query)
    for await (const summary of summaries) if (isListed(query, summary)) yield summary as LogSummaries[Kind]
  }

  waiting(options: WaitingOptions | undefined): Promise<readonly RunSummary[]> {
    const query = listQuery({ status: ['queued', 'interrupted'], parentRunId: null })
    const candidates = async function* (this: FileLists): AsyncGenerator<RunSummary | null> {
      for await (const summary of this.#byTime(query, -1))
        if ('runId' in summary && this.#ownerOf(runRef(summary.runId)) === null) yield summary
    }
    return chosenWaiting(options, () => candidates.call(this))
  }

  /** The summary of one log, from its events; null if there are none. */
  async summaryOf(ref: LogRef, cursor = this.#indexes[ref.kind].cursorOf(null)): Promise<Summary | null> {
    if (ref.kind === 'thread') return this.#threadSummary(ref, cursor)
    const digest = await this.#runDigest(ref)
    return digest === null ? null : summaryOf(digest, this.#ownerOf(ref) !== null, cursor)
  }

  /** A run has ended with this digest: it need not be read for a list. */
  noteEnd(ref: LogRef, digest: RunDigest): void {
    const stamp = this.#stampOf(ref.kind, fileNameOf(ref.id))
    const { run: index } = this.#indexes
    if (stamp !== null && index.exists) index.add(new Map([[fileNameOf(ref.id), runEntry(stamp, digest)]]))
  }

  /** Logs were removed: the index has nothing of them either. */
  forgetGone(): void {
    for (const index of Object.values(this.#indexes)) if (index.exists) index.forgetGone()
  }

  /** The logs, and those that have an inbox only. */
  async refs(): Promise<LogRef[]> {
    const refs: LogRef[] = []
    for (const kind of ['run', 'thread'] as const) {
      const names = await fileNamesIn(folderOf(this.#folder, kind))
      const inboxes = names.flatMap((name) =>
        name.endsWith(INBOX) ? (runIdOf(name.slice(0, -INBOX.length)) ?? []) : [],
      )
      const ids = new Set([...(await this.#found(kind, new Map())).map(({ id }) => id), ...inboxes])
      for (const id of ids) refs.push({ kind, id })
    }
    return refs
  }

  /** The codec of the log has changed. */
  renew(): void {
    for (const index of Object.values(this.#indexes)) if (index.exists) index.renew()
  }

  /** Newest first; with -1 oldest first. */
  async *#byTime(query: ListQuery, direction = 1): AsyncGenerator<Summary> {
    const { kind, statuses, parentRunId, before } = query
    const phases = queriedPhases(statuses)
    const noticed = new Map<string, IndexEntry>()
    const found = await this.#found(kind, noticed)
    const index = this.#indexes[kind]
    // Else the logs are so few that none is read that need not be.
    const isKept = index.exists || found.filter(({ entry }) => entry === null).length >= FEW
    try {
      for await (const log of inPieces(found.sort((left, right) => direction * comparePlaces(left, right)))) {
        if (before !== null && comparePlaces(before, log) >= 0) continue
        if (log.entry !== null && phases?.includes(log.entry.phase as RunDigest['phase']) === false) continue
        const isOthers = parentRunId !== undefined && ![undefined, parentRunId].includes(log.parentRunId)
        if (log.entry === null && !isKept && isOthers) continue
        if (log.entry === null && !isKept && isRuledOut(query, await this.#lastOf(kind, log))) continue
        const summary = await this.#summary(kind, log, noticed)
        if (summary !== null) yield summary
      }
    } finally {
      if (isKept) index.add(noticed)
    }
  }

  /** In the order in which the index has noticed changes: it notices those that it does not know yet now. */
  async *#byChange({ kind, changedAfter = null }: ListQuery): AsyncGenerator<Summary> {
    const index = this.#indexes[kind]
    const noticed = new Map<string, IndexEntry>()
    const found = await this.#found(kind, noticed)
    for await (const log of inPieces(found)) if (log.entry === null) await this.#summary(kind, log, noticed)
    const changed = found.filter(({ name }) => noticed.has(name)).sort(this.#byLastAppend(kind))
    index.add(new Map(changed.map(({ name }) => [name, noticed.get(name) as IndexEntry])))
    index.update()
    for await (const { name, entry } of inPieces(index.after(changedAfter))) {
      const { id } = placeIn(name, entry)
      const stamp = this.#stampOf(kind, name)
      const summary = stamp === null ? null : await this.#summary(kind, { name, stamp, id, time: entry.time, entry })
      if (summary !== null) yield { ...summary, cursor: index.cursorOf(entry) }
    }
  }

  /** By the times of the files, which are coarse; this process knows its own appends. */
  #byLastAppend(kind: LogKind): (left: FoundLog, right: FoundLog) => number {
    const order = ({ id }: Place): number => lastAppends.get(pathsOf(this.#folder, { kind, id }).log) ?? 0
    const time = ({ stamp }: FoundLog): number => Number.parseFloat(stamp.split(':')[2] ?? '')
    return (left, right) => time(left) - time(right) || order(left) - order(right)
  }

  /** All logs of one kind. Those whose place only their content shows are read. */
  async #found(kind: LogKind, noticed: Map<string, IndexEntry>): Promise<FoundLog[]> {
    const files = (await fileNamesIn(folderOf(this.#folder, kind))).filter((name) => name.endsWith(ENDING))
    this.#indexes[kind].update(files.length)
    const found: FoundLog[] = []
    for await (const file of inPieces(files)) {
      const name = file.slice(0, -ENDING.length)
      const stamp = this.#stampOf(kind, name)
      if (stamp === null) continue
      const entry = this.#indexes[kind].find(name, stamp)
      const log = entry === null ? await this.#read(kind, { name, stamp }, noticed) : { ...placeIn(name, entry), entry }
      if (log !== null) found.push({ name, stamp, entry: null, ...log })
    }
    return found
  }

  /** The place of a log that the index does not know, by its first event; of a thread by its summary. */
  async #read(
    kind: LogKind,
    { name, stamp }: Pick<FoundLog, 'name' | 'stamp'>,
    noticed: Map<string, IndexEntry>,
  ): Promise<Omit<FoundLog, 'name' | 'stamp' | 'entry'> | null> {
    const path = join(folderOf(this.#folder, kind), `${name}${ENDING}`)
    const damaged = (): FirstEvent => ({ at: statSync(path).mtime.toISOString() })
    const first = await unlessDamaged<FirstEvent | undefined>(
      readFirst({ path, ref: { kind, id: runIdOf(name) ?? name }, codec: this.#codec }),
      damaged,
    )
    if (first === null || first === undefined) return null
    const { at: time, runId, threadId, parentRunId = null } = first as FirstEvent & { readonly threadId?: string }
    const id = runIdOf(name) ?? (kind === 'run' ? runId : threadId)
    if (id === undefined) return null
    if (kind === 'run') return { id, time, parentRunId }
    const summary = await this.#summary(kind, { name, stamp, id, time, entry: null }, noticed)
    return summary === null ? null : { ...placeOf(summary), summary }
  }

  /** The summary of a log of a list: from the index, or read and `noticed` for it. */
  async #summary(kind: LogKind, log: FoundLog, noticed?: Map<string, IndexEntry>): Promise<Summary | null> {
    const { id, name, stamp, entry } = log
    if (log.summary !== undefined) return log.summary
    const ref = { kind, id } as const
    if (entry !== null && entry.phase !== UNREADABLE) {
      const cursor = this.#indexes[kind].cursorOf(entry)
      const stored = JSON.parse(entry.text) as RunDigest & Omit<ThreadSummary, 'owner' | 'cursor'>
      if (kind === 'thread') return { ...stored, cursor, owner: this.#ownerOf(ref) }
      return summaryOf(stored, stored.phase === 'open' && this.#ownerOf(ref) !== null, cursor)
    }
    const summary = await unlessDamaged<Summary>(this.summaryOf(ref), (error) => this.#unreadable(kind, log, error))
    if (summary !== null) noticed?.set(name, entryOf(stamp, summary))
    return summary
  }

  async #unreadable(kind: LogKind, { id, time }: Place, { code, message }: HarnessError): Promise<Summary> {
    const ref = { kind, id }
    const cursor = this.#indexes[kind].cursorOf(null)
    const error = { code, message }
    if (kind === 'thread') {
      const times = { createdAt: time, updatedAt: time }
      return { threadId: id, ...times, lastSeq: 0, cursor, owner: this.#ownerOf(ref), digest: null, error }
    }
    const { at: updatedAt = time, seq: lastSeq = 0 } = (await this.#lastOf(kind, { id })) ?? {}
    const known = { runId: id, startedAt: time, updatedAt, lastSeq, cursor }
    return unreadableRun(this.#log, known, new HarnessError(code, message))
  }

  /** Null for a run whose first event is being written, or was cut off: none of it is stored. */
  async #runDigest(ref: LogRef): Promise<RunDigest | null> {
    try {
      return await foldRun(this.#log, ref.id)
    } catch {
      const first = await readFirst<LogEvent>(this.#fileOf(ref))
      return first === undefined ? null : foldRun(this.#log, ref.id)
    }
  }

  async #threadSummary(ref: LogRef, cursor: string): Promise<ThreadSummary | null> {
    const file = this.#fileOf(ref)
    if (!isThere(file.path)) return null
    const first = await readFirst<LogEvent>(file)
    let last = await readLast(file)
    let digest = last === undefined ? null : this.#digestOf(ref, last.seq)
    if (digest === null) for await (last of this.#log.read<LogEvent>(ref));
    if (first === undefined || last === undefined) return null
    digest ??= this.#digestOf(ref, last.seq)
    const { at: updatedAt, seq: lastSeq } = last
    const owner = this.#ownerOf(ref)
    return { threadId: ref.id, createdAt: first.at, updatedAt, lastSeq, cursor, owner, digest }
  }

  #fileOf(ref: LogRef): ReadFile {
    return { path: pathsOf(this.#folder, ref).log, ref, codec: this.#codec }
  }

  /** The digest of a thread after its last event; null if its writer passed none with that, or it was not stored. */
  #digestOf(ref: LogRef, lastSeq: number): JsonObject | null {
    const { digest: path } = pathsOf(this.#folder, ref)
    return isThere(path) ? fileDigest(this.#codec, { ref, lastSeq }, readFileSync(path, 'utf8')) : null
  }

  #ownerOf(ref: LogRef): string | null {
    return leaseOwner(pathsOf(this.#folder, ref).lease)
  }

  async #lastOf(kind: LogKind, { id }: Pick<Place, 'id'>): Promise<LogEvent | null> {
    return (await unlessDamaged(readLast(this.#fileOf({ kind, id })), () => undefined)) ?? null
  }

  /** The state of the files of a log: whatever is appended changes it. Null if there is none. */
  #stampOf(kind: LogKind, name: string): string | null {
    const base = join(folderOf(this.#folder, kind), name)
    const log = fileStamp(`${base}${ENDING}`)
    return log === null || kind === 'run' ? log : `${log}/${fileStamp(`${base}.digest.json`) ?? ''}`
  }
}

/** How the index stores its texts; null: it has none of this log in a form that can be read. */
function textCodec(kind: LogKind, codec: RecordCodec): TextCodec {
  const indexPlace = (id: string, key: string) => ({ ref: { kind, id }, part: 'index', key }) as const
  return {
    encode: (text, name, stamp) => codec.encode(text, indexPlace(name, stamp)),
    decode(stored, name, stamp) {
      try {
        return codec.decode(stored, indexPlace(name, stamp))
      } catch {
        return null
      }
    },
  }
}

function fileStamp(path: string): string | null {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats === undefined ? null : `${stats.ino}:${stats.size}:${stats.mtimeMs}`
}

function placeIn(name: string, { time, text }: IndexEntry): Place {
  const id = runIdOf(name)
  if (id !== undefined) return { id, time }
  const { runId, threadId } = JSON.parse(text) as { readonly runId?: string; readonly threadId?: string }
  return { id: runId ?? threadId ?? '', time }
}

function runEntry(stamp: string, digest: RunDigest): IndexEntry {
  return { stamp, phase: digest.phase, time: digest.startedAt, text: JSON.stringify(digest) }
}

/** What the index keeps of a log that was read. */
function entryOf(stamp: string, summary: Summary): IndexEntry {
  const { time } = placeOf(summary)
  if ('threadId' in summary) {
    const { owner: _owner, cursor: _cursor, ...stored } = summary
    if (summary.error === undefined) return { stamp, phase: '-', time, text: JSON.stringify(stored) }
    return { stamp, phase: UNREADABLE, time, text: JSON.stringify({ threadId: stored.threadId, stamp }) }
  }
  const { status, cursor: _cursor, ...stored } = summary
  if (status === 'unreadable')
    return { stamp, phase: UNREADABLE, time, text: JSON.stringify({ runId: stored.runId, stamp }) }
  return runEntry(stamp, { ...stored, phase: status === 'running' || status === 'interrupted' ? 'open' : status })
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined
}
