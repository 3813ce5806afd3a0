import { closeSync, fdatasync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs'
import { statSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { HarnessError, messageOf } from '../contracts/errors.js'
import { lastSeqOf, nameOf } from '../run/log/ref.js'
import type { LogEvent } from '../run/log/log.js'
import type { LogRef } from '../run/log/ref.js'
import { isObject, parseJson } from '../util/json.js'
import { makeFolder } from './folder.js'

const SYNC_EVERY_MS = 1000
const TAIL_BYTES = 65_536

export interface Writer {
  /** An owner's file is its own: a claim of another process replaces it. Other writers share it with the log's next owner. */
  readonly isOwner: boolean
  /** Throws if the writer may not write to the file `fd`, or no longer; null: before the file is open. */
  readonly check: (fd: number | null) => void
}

/** The file of one log, open for appending. */
export class LogFile {
  readonly #fd: number
  readonly #path: string
  readonly #ref: LogRef
  readonly #writer: Writer
  /** Identifies the file: another one may get its name. */
  readonly #inode: number
  #size: number
  #lastSeq: number
  #isNew: boolean
  #timer: NodeJS.Timeout | undefined
  #syncing: Promise<void> = Promise.resolve()
  #failure: HarnessError | undefined

  private constructor(path: string, ref: LogRef, writer: Writer) {
    this.#path = path
    this.#ref = ref
    this.#writer = writer
    this.#fd = openFile(path)
    try {
      // Not before the file is open: from here on it is this writer's, or one that another claim has replaced.
      writer.check(this.#fd)
      this.#lastSeq = mendTail(this.#fd, ref)
      this.#isNew = this.#lastSeq === 0
      const { ino, size } = fstatSync(this.#fd)
      this.#inode = ino
      this.#size = size
    } catch (error) {
      closeSync(this.#fd)
      throw error
    }
  }

  /** Opens the file, which it creates with its folder, readable by its owner alone. A torn last line is cut off. */
  static open(path: string, ref: LogRef, writer: Writer): LogFile {
    writer.check(null)
    return new LogFile(path, ref, writer)
  }

  /** Passes events to the operating system, in one write. Throws if none of them is stored. */
  append(events: readonly LogEvent[]): void {
    if (this.#failure !== undefined) throw this.#failure
    const lastSeq = lastSeqOf(this.#ref, this.#lastSeq, events)
    const bytes = Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(''))
    if (!this.#writer.isOwner) this.#writer.check(this.#fd)
    this.#checkFile()
    let written = 0
    try {
      while (written < bytes.length) written += writeSync(this.#fd, bytes, written)
      this.#writer.check(this.#fd)
    } catch (error) {
      this.#takeBack(written)
      throw error
    }
    this.#lastSeq = lastSeq
    this.#size += bytes.length
  }

  /** Resolves when everything so far is on the disk. */
  sync(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#syncing = this.#syncing.then(() => this.#sync())
    return this.#syncing
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
      closeSync(this.#fd)
    }
  }

  /** Throws if the file was removed, moved, replaced or changed by something else: the log would be lost or damaged. */
  #checkFile(): void {
    const found = statSync(this.#path, { throwIfNoEntry: false })
    if (found?.ino === this.#inode && found.size === this.#size) return
    this.#writer.check(this.#fd)
    const change = found === undefined ? 'is gone' : found.ino === this.#inode ? 'was changed' : 'was replaced'
    const message = `The log of ${nameOf(this.#ref)} cannot be continued: its file \`${this.#path}\` ${change} during the run.`
    throw new HarnessError('store_failure', message)
  }

  async #sync(): Promise<void> {
    await promisify(fdatasync)(this.#fd)
    if (!this.#isNew) return
    this.#isNew = false
    await syncFolder(dirname(this.#path))
  }

  /** A part of some events may have been written: whole ones and a torn one. None of them counts as stored. */
  #takeBack(bytes: number): void {
    try {
      if (bytes > 0) ftruncateSync(this.#fd, fstatSync(this.#fd).size - bytes)
    } catch {
      // The next writer cuts off the torn one; the error of the write is reported.
    }
  }
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

/** Syncs the names in a folder: without it, a new file may be lost in a crash of the machine. */
async function syncFolder(path: string): Promise<void> {
  // Windows cannot open folders, and does not need this.
  if (process.platform === 'win32') return
  const folder = await open(path)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Cuts off a torn last line, and gives the number of the last event; 0 for an empty file. */
export function mendTail(fd: number, ref: LogRef): number {
  const { size } = fstatSync(fd)
  if (size === 0) return 0
  const tail = readTail(fd, size)
  const ends = tail.at(-1) === 10
  const lines = ends ? tail.subarray(0, -1) : tail
  const lineStart = lines.lastIndexOf(10) + 1
  const offset = size - tail.length + lineStart
  const seq = seqIn(lines.subarray(lineStart))
  if (seq !== undefined) {
    if (!ends) writeSync(fd, '\n')
    return seq
  }
  if (ends) throw unreadable(ref, offset)
  const whole = lines.subarray(0, Math.max(0, lineStart - 1))
  const previous = whole.lastIndexOf(10) + 1
  const lastSeq = lineStart === 0 ? 0 : seqIn(whole.subarray(previous))
  if (lastSeq === undefined) throw unreadable(ref, size - tail.length + previous)
  ftruncateSync(fd, offset)
  return lastSeq
}

function unreadable(ref: LogRef, offset: number): HarnessError {
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

function seqIn(line: Buffer): number | undefined {
  const parsed = parseJson(line.toString())
  const seq = parsed.ok && isObject(parsed.value) ? parsed.value['seq'] : undefined
  return typeof seq === 'number' ? seq : undefined
}
