import { makeFolder } from './file-paths.js'
import { HarnessError, messageOf } from '#contracts/errors.js'
import type { LogEvent } from '#core/log/log.js'
import { lastSeqOf, nameOf } from '#core/log/ref.js'
import type { LogRef } from '#core/log/ref.js'
import type { RecordCodec } from '../codec/log-codec.js'
import { eventIn, lineOf } from './encoded-lines.js'
import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  fsync,
  ftruncateSync,
  openSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

const SYNC_EVERY_MS = 1000
const TAIL_BYTES = 65_536

export interface LogWriter {
  /** An owner's file is its own: a claim of another process replaces it. Other writers share it with the log's next owner. */
  readonly isOwner: boolean
  /** Throws if the writer may not write to the file `fd`, or no longer; null: before the file is open. */
  readonly check: (fd: number | null) => void
  /** Is called when the file system refuses to sync the file; null: that is a failure. */
  readonly onRefusal: (() => void) | null
  readonly codec: RecordCodec
}

/** The file of one log, open for appending. */
export class LogFile {
  /** Null while the file is parked. */
  #fd: number | null
  readonly path: string
  readonly #ref: LogRef
  readonly #writer: LogWriter
  /** Identifies the file: another one may get its name. */
  readonly #inode: number
  #size: number
  #lastSeq: number
  #isNew: boolean
  /** Bytes of the last append. */
  #appended = 0
  /** Syncs of the file that have not ended: it keeps its descriptor. */
  #syncs = 0
  #timer: NodeJS.Timeout | undefined
  #syncing: Promise<void> = Promise.resolve()
  #failure: HarnessError | undefined

  private constructor(path: string, ref: LogRef, writer: LogWriter) {
    this.path = path
    this.#ref = ref
    this.#writer = writer
    const fd = openFile(path)
    this.#fd = fd
    try {
      // Not before the file is open: from here on it is this writer's, or one that another claim has replaced.
      writer.check(fd)
      this.#lastSeq = mendTail(fd, ref, writer.codec)
      this.#isNew = this.#lastSeq === 0
      const { ino, size } = fstatSync(fd)
      this.#inode = ino
      this.#size = size
    } catch (error) {
      closeSync(fd)
      throw error
    }
    openFiles.add(this)
  }

  /** Opens the file, which it creates with its folder, readable by its owner alone. A torn last line is cut off. */
  static open(path: string, ref: LogRef, writer: LogWriter): LogFile {
    writer.check(null)
    return new LogFile(path, ref, writer)
  }

  /** Passes events to the operating system, in one write. Throws if none of them is stored. */
  append(events: readonly LogEvent[]): void {
    if (this.#failure !== undefined) throw this.#failure
    const lastSeq = lastSeqOf(this.#ref, this.#lastSeq, events)
    let text = ''
    for (const event of events) text += `${lineOf(this.#writer.codec, this.#ref, event)}\n`
    const bytes = Buffer.from(text)
    this.#checkFile()
    const fd = (this.#fd ??= this.#reopened())
    if (!this.#writer.isOwner) this.#writer.check(fd)
    let written = 0
    try {
      while (written < bytes.length) written += writeSync(fd, bytes, written)
      this.#writer.check(fd)
    } catch (error) {
      this.#takeBack(fd, written)
      throw error
    }
    this.#lastSeq = lastSeq
    this.#size += bytes.length
    this.#appended = bytes.length
  }

  /** Resolves when everything so far is on the disk. */
  sync(by = fdatasync): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#syncs += 1
    this.#syncing = this.#syncing.then(() => this.#sync(by))
    return this.#syncing
  }

  /** As `sync`, by a call that shows whether the file can be synced at all. */
  trySync(): Promise<void> {
    return this.sync(fsync)
  }

  /** Takes the last append back, whose sync has failed, and throws the failure. */
  readonly undo = (failure: unknown): never => {
    if (this.#fd !== null && fstatSync(this.#fd).size === this.#size) this.#takeBack(this.#fd, this.#appended)
    throw failure
  }

  /** Syncs within a second. A failure is thrown by the next append. */
  syncSoon(): void {
    this.#timer ??= setTimeout(() => {
      this.sync().catch((error: unknown) => {
        this.#failure = new HarnessError('store_failure', `The log could not be synced: ${messageOf(error)}`, {
          cause: error,
        })
      })
    }, SYNC_EVERY_MS).unref()
  }

  /** Syncs first if a sync is due. Throws if that fails; the file is closed in any case. */
  async close(): Promise<void> {
    try {
      await (this.#timer === undefined ? this.#syncing.catch(() => undefined) : this.sync())
    } finally {
      this.#closeNow()
    }
  }

  /** Gives its descriptor to another file until its next append. False if it has none, or needs it now. */
  park(): boolean {
    if (this.#fd === null || this.#syncs > 0 || this.#timer !== undefined) return false
    this.#closeNow()
    return true
  }

  #closeNow(): void {
    openFiles.delete(this)
    if (this.#fd !== null) closeSync(this.#fd)
    this.#fd = null
  }

  /** The parked file, which must not be created again. */
  #reopened(): number {
    const fd = openSync(this.path, constants.O_RDWR | constants.O_APPEND)
    openFiles.add(this)
    return fd
  }

  /** Throws if the file was removed, moved, replaced or changed by something else: the log would be lost or damaged. */
  #checkFile(): void {
    const stats = statSync(this.path, { throwIfNoEntry: false })
    if (stats?.ino === this.#inode && stats.size === this.#size) return
    if (this.#fd !== null) this.#writer.check(this.#fd)
    const change = stats === undefined ? 'is gone' : stats.ino === this.#inode ? 'was changed' : 'was replaced'
    const message = `The log of ${nameOf(this.#ref)} cannot be continued: its file \`${this.path}\` ${change} during the run.`
    throw new HarnessError('store_failure', message)
  }

  async #sync(by: typeof fdatasync): Promise<void> {
    const { onRefusal } = this.#writer
    try {
      if (this.#fd !== null) await promisify(by)(this.#fd)
    } catch (error) {
      if (onRefusal === null || !isSyncRefused(error)) throw error
      onRefusal()
    } finally {
      this.#syncs -= 1
    }
    if (!this.#isNew) return
    this.#isNew = false
    await withDescriptor(() => syncFolder(dirname(this.path)))
  }

  /** A part of some events may have been written: whole ones and a torn one. None of them counts as stored. */
  #takeBack(fd: number, bytes: number): void {
    try {
      if (bytes > 0) ftruncateSync(fd, fstatSync(fd).size - bytes)
    } catch {
      // The next writer cuts off the torn one; the error of the write is reported.
    }
  }
}

/** Some shared and network file systems cannot sync. */
const REFUSALS: readonly (string | undefined)[] = ['EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']
const FOLDER_REFUSALS = [...REFUSALS, 'EACCES', 'EBADF', 'EISDIR', 'EPERM']

export function isSyncRefused(error: unknown, refusals = REFUSALS): boolean {
  return refusals.includes((error as NodeJS.ErrnoException).code)
}

/** The log files of this process that have a descriptor, the earliest opened first. */
const openFiles = new Set<LogFile>()

/** How long to wait for a free descriptor before the next attempt, in ms. */
const DESCRIPTOR_MS = 25

/** Does `work` again as long as the process or the machine has no descriptor for it: log files that are idle give up theirs. */
export async function withDescriptor<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!lacksDescriptor(error)) throw error
      await freeDescriptor()
    }
  }
}

export function lacksDescriptor(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EMFILE' || code === 'ENFILE'
}

/** Resolves when it is worth trying again. */
export async function freeDescriptor(): Promise<void> {
  for (const file of openFiles) if (file.park()) return
  await delay(DESCRIPTOR_MS)
}

/** Opens a file for appending, which is created with its folder if it does not exist. */
function openFile(path: string): number {
  try {
    return openSync(path, 'a+', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    makeFolder(dirname(path))
    return openSync(path, 'a+', 0o600)
  }
}

/**
 * Syncs the names in a folder: without it, a new file may be lost in a crash of the machine. A file system that cannot do that is
 * left alone, as is Windows, which cannot open folders and does not need this.
 */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return
  try {
    const folder = await open(path)
    await folder.sync().finally(() => folder.close())
  } catch (error) {
    if (!isSyncRefused(error, FOLDER_REFUSALS)) throw error
  }
}

/** Cuts off a torn last line, and gives the number of the last event; 0 for an empty file. */
export function mendTail(fd: number, ref: LogRef, codec: RecordCodec): number {
  const { size } = fstatSync(fd)
  if (size === 0) return 0
  const tail = readTail(fd, size)
  const ends = tail.at(-1) === 10
  const lines = ends ? tail.subarray(0, -1) : tail
  const lineStart = lines.lastIndexOf(10) + 1
  const offset = size - tail.length + lineStart
  const lineSeq = (line: Buffer): number | undefined => eventIn(codec, ref, line.toString())?.seq
  const seq = lineSeq(lines.subarray(lineStart))
  if (seq !== undefined) {
    if (!ends) writeSync(fd, '\n')
    return seq
  }
  if (ends) throw unreadableLogError(ref, offset)
  const whole = lines.subarray(0, Math.max(0, lineStart - 1))
  const previous = whole.lastIndexOf(10) + 1
  const lastSeq = lineStart === 0 ? 0 : lineSeq(whole.subarray(previous))
  if (lastSeq === undefined) throw unreadableLogError(ref, size - tail.length + previous)
  ftruncateSync(fd, offset)
  return lastSeq
}

function unreadableLogError(ref: LogRef, offset: number): HarnessError {
  const message = `The log of ${nameOf(ref)} is damaged: its last record, at byte ${offset}, cannot be read.`
  return new HarnessError('invalid_log', message)
}

/** The end of the file, from the beginning of its last whole line or before. */
function readTail(fd: number, size: number): Buffer {
  for (let length = Math.min(TAIL_BYTES, size); ; length = Math.min(length * 4, size)) {
    const tail = Buffer.alloc(length)
    readSync(fd, tail, 0, length, size - length)
    const lines = tail.toString('latin1').split('\n').length - 1
    if (length === size || lines > 2) return tail
  }
}

/** The part of a log file that is read first to find its last event, in bytes. */
const LAST_BYTES = 16 * 1024

/**
 * The events in a log file that are numbered above `after`. A torn last line is no event. Throws `invalid_log` with the
 * number and the byte of a record that is damaged, or that does not follow the one before.
 */
export function readEvents<Event extends LogEvent>(file: ReadFile, after: number): AsyncGenerator<Event> {
  return new LogTail<Event>(file).read(after)
}

/** The file of a log that is read. */
export interface ReadFile {
  readonly path: string
  readonly ref: LogRef
  readonly codec: RecordCodec
}

/** A file of at most so many new bytes is read at once. */
const SHORT_BYTES = 64 * 1024

/** Reads a log file again and again. Of a file that has only grown, it reads the new records alone. */
export class LogTail<Event extends LogEvent> {
  readonly #file: ReadFile
  #inode: number | undefined
  #lines: Lines<Event>

  constructor(file: ReadFile) {
    this.#file = file
    this.#lines = new Lines(file)
  }

  async *read(after: number): AsyncGenerator<Event> {
    const stats = statSync(this.#file.path, { throwIfNoEntry: false })
    if (stats === undefined) return
    const hasGrown = stats.ino === this.#inode && stats.size >= this.#lines.offset
    if (!hasGrown) this.#lines = new Lines(this.#file)
    this.#inode = stats.ino
    const lines = this.#lines
    lines.dropRest()
    const short = stats.size - lines.offset <= SHORT_BYTES ? readNow(this.#file.path, lines.offset, stats.size) : null
    const chunks: Iterable<Buffer> | AsyncIterable<Buffer> = short === null ? await this.#stream() : [short]
    for await (const chunk of chunks) for (const event of lines.in(chunk)) if (event.seq > after) yield event
    const last = lines.last()
    if (last !== undefined && last.seq > after) yield last
  }

  async #stream(): Promise<AsyncIterable<Buffer>> {
    const file = await withDescriptor(() => open(this.#file.path))
    return file.createReadStream({ start: this.#lines.offset })
  }
}

/** The bytes of a file from `start` to `end`, without waiting: a stream costs ten times as much. Null if that fails. */
export function readNow(path: string, start: number, end: number): Buffer | null {
  try {
    const fd = openSync(path, 'r')
    try {
      const bytes = Buffer.allocUnsafe(end - start)
      return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, start))
    } finally {
      closeSync(fd)
    }
  } catch {
    return null
  }
}

/** The first event in a log file; none if it is not there yet. Reads no more of the file than that. */
export async function readFirst<Event extends LogEvent>(read: ReadFile): Promise<Event | undefined> {
  const file = await withDescriptor(() => open(read.path))
  try {
    const lines = new Lines<Event>(read)
    for (;;) {
      const { bytesRead, buffer } = await file.read({ buffer: Buffer.alloc(4096) })
      if (bytesRead === 0) return lines.unended()
      for (const event of lines.in(buffer.subarray(0, bytesRead))) return event
    }
  } finally {
    await file.close()
  }
}

/** The last event in a log file, read from its end; none if it has none there that can be read. */
export async function readLast({ path, ref, codec }: ReadFile): Promise<LogEvent | undefined> {
  const parsed = (line: string): LogEvent | undefined => eventIn(codec, ref, line)
  const file = await withDescriptor(() => open(path))
  try {
    const { size } = await file.stat()
    for (let length = Math.min(size, LAST_BYTES); ; length = Math.min(size, length * 8)) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, size - length)
      const lines = buffer.subarray(0, bytesRead)
      const end = lines.lastIndexOf(10)
      const start = end <= 0 ? -1 : lines.lastIndexOf(10, end - 1)
      const unended = end === -1 ? undefined : parsed(lines.toString('utf8', end + 1))
      if (unended !== undefined) return unended
      if (start < 0 && length < size) continue
      return parsed(end === -1 ? lines.toString() : lines.toString('utf8', start + 1, end))
    }
  } finally {
    await file.close()
  }
}

/** Cuts a file into its records, and checks each. */
class Lines<Event extends LogEvent> {
  readonly #ref: LogRef
  readonly #codec: RecordCodec
  #rest: Buffer[] = []
  #record = 0
  #offset = 0
  #lastSeq = 0

  constructor({ ref, codec }: ReadFile) {
    this.#ref = ref
    this.#codec = codec
  }

  /** The byte after the last whole record. */
  get offset(): number {
    return this.#offset
  }

  /** Forgets the piece of a record that has not ended: it is read again. */
  dropRest(): void {
    this.#rest = []
  }

  /** The events that end in the next piece of the file. */
  *in(chunk: Buffer): Generator<Event> {
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const line = Buffer.concat([...this.#rest, chunk.subarray(start, end)])
      this.#rest = []
      start = end + 1
      yield this.#checked(this.#eventIn(line), line.length + 1)
    }
    this.#rest.push(chunk.subarray(start))
  }

  /** The event in a last line that does not end as one; nothing in a torn one. */
  last(): Event | undefined {
    const event = this.unended()
    // A thread that was not created, or is being created at this moment, is one that does not exist.
    if (event === undefined && this.#record === 0 && this.#ref.kind !== 'thread') throw cutWithinFirst(this.#ref)
    return event
  }

  /** As `last`, and nothing also if it is the first. */
  unended(): Event | undefined {
    const event = this.#eventIn(Buffer.concat(this.#rest))
    return event && this.#following(event, this.#offset, this.#record + 1)
  }

  #eventIn(line: Buffer): Event | undefined {
    return eventIn(this.#codec, this.#ref, line.toString()) as Event | undefined
  }

  #checked(event: Event | undefined, length: number): Event {
    const offset = this.#offset
    this.#record += 1
    this.#offset += length
    if (event === undefined) throw this.#damaged('cannot be read', offset, this.#record)
    this.#lastSeq = this.#following(event, offset, this.#record).seq
    return event
  }

  #following(event: Event, offset: number, record: number): Event {
    if (this.#lastSeq === 0 || event.seq === this.#lastSeq + 1) return event
    throw this.#damaged(`is event ${event.seq} where ${this.#lastSeq + 1} was to come`, offset, record)
  }

  #damaged(what: string, offset: number, record: number): HarnessError {
    const message = `The log of ${nameOf(this.#ref)} is damaged: record ${record}, at byte ${offset}, ${what}.`
    return new HarnessError('invalid_log', message)
  }
}

function cutWithinFirst(ref: LogRef): HarnessError {
  return new HarnessError(
    'invalid_log',
    `The log of ${nameOf(ref)} was cut within its first record: none of its events was stored, so it cannot continue.`,
  )
}
