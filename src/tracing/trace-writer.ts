import { appendFile, mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { JsonObject } from '../index.js'

/** One span that has ended: a line of a local trace. Times are ISO 8601 in UTC with milliseconds. */
export interface TraceRecord {
  readonly type: 'span'
  /** 32 hex digits: the same for a run, its children, and its continuation after a pause or a crash. */
  readonly traceId: string
  /** 16 hex digits. */
  readonly spanId: string
  readonly parentSpanId: string | null
  readonly name: string
  readonly kind: 'internal' | 'client'
  readonly startedAt: string
  readonly endedAt: string
  readonly durationMs: number
  readonly status: 'ok' | 'error'
  readonly error: { readonly type: string; readonly message: string | null } | null
  readonly attributes: JsonObject
  readonly events: readonly { readonly name: string; readonly at: string; readonly attributes: JsonObject }[]
}

const TRACE_FILE = /^[0-9a-f]{32}\.jsonl$/
const DAY_MS = 24 * 60 * 60 * 1000

/** Appends records to the files of their traces, one after the other, off the main path. */
export class TraceWriter {
  readonly #maxAgeMs: number
  readonly #cleaned = new Set<string>()
  #writing: Promise<void> = Promise.resolve()
  #hasWarned = false

  constructor(maxAgeDays: number) {
    this.#maxAgeMs = maxAgeDays * DAY_MS
  }

  write(folder: string, record: TraceRecord): void {
    this.#writing = this.#writing.then(() => this.#append(folder, record)).catch((error: unknown) => this.#warn(error))
  }

  /** Resolves when every record has been written, or is lost. */
  flush(): Promise<void> {
    return this.#writing
  }

  async #append(folder: string, record: TraceRecord): Promise<void> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    if (!this.#cleaned.has(folder)) await deleteOlder(folder, Date.now() - this.#maxAgeMs)
    this.#cleaned.add(folder)
    await appendFile(join(folder, `${record.traceId}.jsonl`), `${JSON.stringify(record)}\n`, { mode: 0o600 })
  }

  #warn(error: unknown): void {
    if (this.#hasWarned) return
    this.#hasWarned = true
    const reason = error instanceof Error ? error.message : 'unknown error'
    process.emitWarning(`Spans of a local trace are lost: ${reason}.`, 'TracingWarning')
  }
}

/** Deletes the traces of a folder that were last written before `time`. */
async function deleteOlder(folder: string, time: number): Promise<void> {
  for (const name of (await readdir(folder)).filter((each) => TRACE_FILE.test(each))) {
    const path = join(folder, name)
    // Another process may have deleted it meanwhile.
    const written = await stat(path).catch(() => null)
    if (written !== null && written.mtimeMs < time) await rm(path, { force: true })
  }
}
