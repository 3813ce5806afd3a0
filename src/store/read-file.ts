import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { HarnessError } from '#contracts/errors.js'
import { nameOf } from '#core/log/ref.js'
import { parseEvent } from '#core/log/log.js'
import type { LogEvent } from '#core/log/log.js'
import type { LogRef } from '#core/log/ref.js'
import { withDescriptor } from './log-file.js'

/** The part of a log file that is read first to find its last event, in bytes. */
const LAST_BYTES = 16 * 1024

/**
 * The events in a log file that are numbered above `after`. A torn last line is no event. Throws `invalid_log` with the
 * number and the byte of a record that is damaged, or that does not follow the one before.
 */
export function readEvents<Event extends LogEvent>(path: string, ref: LogRef, after: number): AsyncGenerator<Event> {
  return new LogTail<Event>(path, ref).read(after)
}

/** A file of at most so many new bytes is read at once. */
const SHORT_BYTES = 64 * 1024

/** Reads a log file again and again. Of a file that has only grown, it reads the new records alone. */
export class LogTail<Event extends LogEvent> {
  readonly #path: string
  readonly #ref: LogRef
  #inode: number | undefined
  #lines: Lines<Event>

  constructor(path: string, ref: LogRef) {
    this.#path = path
    this.#ref = ref
    this.#lines = new Lines(ref)
  }

  async *read(after: number): AsyncGenerator<Event> {
    const stats = statSync(this.#path, { throwIfNoEntry: false })
    if (stats === undefined) return
    const hasGrown = stats.ino === this.#inode && stats.size >= this.#lines.offset
    if (!hasGrown) this.#lines = new Lines(this.#ref)
    this.#inode = stats.ino
    const lines = this.#lines
    lines.dropRest()
    const short = stats.size - lines.offset <= SHORT_BYTES ? readNow(this.#path, lines.offset, stats.size) : null
    const chunks: Iterable<Buffer> | AsyncIterable<Buffer> = short === null ? await this.#stream() : [short]
    for await (const chunk of chunks) for (const event of lines.in(chunk)) if (event.seq > after) yield event
    const last = lines.last()
    if (last !== undefined && last.seq > after) yield last
  }

  async #stream(): Promise<AsyncIterable<Buffer>> {
    const file = await withDescriptor(() => open(this.#path))
    return file.createReadStream({ start: this.#lines.offset })
  }
}

/** The bytes of a file from `start` to `end`, without waiting: a stream costs ten times as much. Null if that fails. */
function readNow(path: string, start: number, end: number): Buffer | null {
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

/** The first event in a log file; none in an empty one. Reads no more of the file than that. */
export async function readFirst<Event extends LogEvent>(path: string, ref: LogRef): Promise<Event | undefined> {
  const file = await withDescriptor(() => open(path))
  try {
    const lines = new Lines<Event>(ref)
    for (;;) {
      const { bytesRead, buffer } = await file.read({ buffer: Buffer.alloc(4096) })
      if (bytesRead === 0) return lines.last()
      for (const event of lines.in(buffer.subarray(0, bytesRead))) return event
    }
  } finally {
    await file.close()
  }
}

/** The last event in a log file, read from its end; none if it has none there that can be read. */
export async function readLast(path: string): Promise<LogEvent | undefined> {
  const file = await withDescriptor(() => open(path))
  try {
    const { size } = await file.stat()
    for (let length = Math.min(size, LAST_BYTES); ; length = Math.min(size, length * 8)) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, size - length)
      const lines = buffer.subarray(0, bytesRead)
      const end = lines.lastIndexOf(10)
      const start = end <= 0 ? -1 : lines.lastIndexOf(10, end - 1)
      const unended = end === -1 ? undefined : parseEvent(lines.toString('utf8', end + 1))
      if (unended !== undefined) return unended
      if (start < 0 && length < size) continue
      return parseEvent(end === -1 ? lines.toString() : lines.toString('utf8', start + 1, end))
    }
  } finally {
    await file.close()
  }
}

/** Cuts a file into its records, and checks each. */
class Lines<Event extends LogEvent> {
  readonly #ref: LogRef
  #rest: Buffer[] = []
  #record = 0
  #offset = 0
  #lastSeq = 0

  constructor(ref: LogRef) {
    this.#ref = ref
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
      yield this.#checked(parseEvent(line.toString()) as Event | undefined, line.length + 1)
    }
    this.#rest.push(chunk.subarray(start))
  }

  /** The event in a last line that does not end as one; nothing in a torn one. */
  last(): Event | undefined {
    const line = Buffer.concat(this.#rest)
    const event = parseEvent(line.toString()) as Event | undefined
    if (event !== undefined) return this.#following(event, this.#offset, this.#record + 1)
    // A thread that was not created, or is being created at this moment, is one that does not exist.
    if (this.#record === 0 && this.#ref.kind !== 'thread') throw cutWithinFirst(this.#ref)
    return undefined
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
