import { closeSync, fdatasync, fstatSync, ftruncateSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { HarnessError, messageOf } from '../errors.js'
import { isObject, parseJson } from '../util/json.js'
import type { DurableEvent } from './events.js'

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
    return new RunFile(fd, runId, mendTail(fd))
  }

  /** Hands events to the operating system, in one write. Throws, with nothing of them reported as kept. */
  append(events: readonly DurableEvent[]): void {
    if (this.#failure !== undefined) throw this.#failure
    const bytes = Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join(''))
    for (const { seq } of events) this.#expect(seq)
    for (let written = 0; written < bytes.length;) written += writeSync(this.#fd, bytes, written)
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

  #expect(seq: number): void {
    // A run that is resumed from a stored state goes on in a log that has not seen its beginning.
    if (seq !== this.#lastSeq + 1 && this.#lastSeq !== 0) {
      const message = `The log of run \`${this.#runId}\` ends with event ${this.#lastSeq}: it does not take event ${seq}.`
      throw new HarnessError(seq === 1 ? 'run_exists' : 'store_failure', message)
    }
    this.#lastSeq = seq
  }
}

/** Cuts off what was not wholly written, and gives the number of the last event; 0 for an empty file. */
function mendTail(fd: number): number {
  const { size } = fstatSync(fd)
  if (size === 0) return 0
  const tail = readTail(fd, size)
  const ends = tail.at(-1) === 10
  const torn = ends ? tail.subarray(0, -1) : tail
  const lineStart = torn.lastIndexOf(10) + 1
  const seq = seqIn(torn.subarray(lineStart))
  if (seq !== undefined) {
    if (!ends) writeSync(fd, '\n')
    return seq
  }
  if (ends) throw new HarnessError('invalid_log', 'The last record of the log cannot be read.')
  ftruncateSync(fd, size - (torn.length - lineStart))
  return lineStart === 0 ? 0 : (seqIn(torn.subarray(torn.lastIndexOf(10, lineStart - 2) + 1, lineStart - 1)) ?? 0)
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
