import { closeSync, fdatasync, fstatSync, ftruncateSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { HarnessError, messageOf } from '../errors.js'
import { isObject, parseJson } from '../util/json.js'
import type { DurableEvent } from './events.js'
import { doesNotFollow } from './log.js'

const SYNC_EVERY_MS = 1000
const TAIL_BYTES = 65_536
const flush = promisify(fdatasync)

/** The file of one run's log, open for appending. */
export class RunFile {
  readonly #fd: number
  readonly #runId: string
  #lastSeq: number
  #timer: NodeJS.Timeout | undefined
  #syncing: Promise<void> = Promise.resolve()
  #failure: HarnessError | undefined

  private constructor(fd: number, runId: string, lastSeq: number) {
    this.#fd = fd
    this.#runId = runId
    this.#lastSeq = lastSeq
  }

  /** Opens the file, which it creates with its folder, readable by its owner alone. A torn last line is cut off. */
  static open(path: string, runId: string): RunFile {
    mkdirSync(dirname(path), { recursive: true })
    const fd = openSync(path, 'a+', 0o600)
    try {
      return new RunFile(fd, runId, mendTail(fd, runId))
    } catch (error) {
      closeSync(fd)
      throw error
    }
  }

  /** Hands events to the operating system, in one write. Throws with nothing of them kept. */
  append(events: readonly DurableEvent[]): void {
    if (this.#failure !== undefined) throw this.#failure
    const bytes = Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(''))
    for (const { seq } of events) this.#expect(seq)
    let written = 0
    try {
      while (written < bytes.length) written += writeSync(this.#fd, bytes, written)
    } catch (error) {
      this.#takeBack(written)
      throw error
    }
  }

  /** Resolves when everything so far is on the disk. */
  sync(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#syncing = this.#syncing.then(() => flush(this.#fd))
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

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#syncing.catch(() => undefined)
    closeSync(this.#fd)
  }

  /** What was written of some events may be whole ones and a torn one: neither has been kept. */
  #takeBack(bytes: number): void {
    try {
      if (bytes > 0) ftruncateSync(this.#fd, fstatSync(this.#fd).size - bytes)
    } catch {
      // Whoever opens the file next cuts off the torn one at least; what is told is why the write failed.
    }
  }

  #expect(seq: number): void {
    // A run that is resumed from a stored state goes on in a log that has not seen its beginning.
    if (seq !== this.#lastSeq + 1 && this.#lastSeq !== 0) throw doesNotFollow(this.#runId, this.#lastSeq, seq)
    this.#lastSeq = seq
  }
}

/** Cuts off what was not wholly written, and gives the number of the last event; 0 for an empty file. */
function mendTail(fd: number, runId: string): number {
  const { size } = fstatSync(fd)
  if (size === 0) return 0
  const tail = readTail(fd, size)
  const ends = tail.at(-1) === 10
  const lines = ends ? tail.subarray(0, -1) : tail
  const lineStart = lines.lastIndexOf(10) + 1
  const seq = seqIn(lines.subarray(lineStart))
  if (seq !== undefined) {
    if (!ends) writeSync(fd, '\n')
    return seq
  }
  if (ends) throw unreadable(runId)
  const whole = lines.subarray(0, Math.max(0, lineStart - 1))
  const lastSeq = lineStart === 0 ? 0 : seqIn(whole.subarray(whole.lastIndexOf(10) + 1))
  if (lastSeq === undefined) throw unreadable(runId)
  ftruncateSync(fd, size - (lines.length - lineStart))
  return lastSeq
}

function unreadable(runId: string): HarnessError {
  return new HarnessError('invalid_log', `The log of run \`${runId}\` is damaged: its last record cannot be read.`)
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
