import { appendFile, mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { JsonObject } from '../index.js'
import { CONTENT, OWN } from './names.js'

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

/** How long a record may wait in memory, in ms. */
const WRITE_EVERY_MS = 200
/** Records that may wait; further ones are dropped and counted. */
const MOST_WAITING = 4096
/** A file of a trace has at most this part of its folder's size, so that old parts of a long trace can be deleted. */
const PARTS = 8
/** Largest part of a file for a line, and for one write. */
const LINES = 4

const REMEMBERED_TRACES = 256

const TRACE_FILE = /^([0-9a-f]{32})(?:\.(\d+))?\.jsonl$/

interface Waiting {
  readonly folder: string
  readonly record: TraceRecord
}

/** Writes records of traces to files, off the main path and within bounds. */
export class TraceWriter {
  readonly #maxBytes: number
  #waiting: Waiting[] = []
  #timer: NodeJS.Timeout | null = null
  #writing: Promise<void> = Promise.resolve()
  /** Bytes in each known folder; counted again before a deletion. */
  readonly #folders = new Map<string, number>()
  /** The current part of each trace; a forgotten one is looked up. */
  readonly #parts = new Map<string, number>()
  #lost = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  write(folder: string, record: TraceRecord): void {
    if (this.#waiting.length >= MOST_WAITING) {
      this.#lose(1, 'they arrived faster than they could be written')
      return
    }
    this.#waiting.push({ folder, record })
    // Not unref'd: a process that has nothing else to do stays until its traces are written.
    this.#timer ??= setTimeout(() => void this.flush(), WRITE_EVERY_MS)
  }

  /** Resolves when everything that waits has been written, or counted as lost. */
  flush(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#writing = this.#writing.then(() => this.#writeWaiting())
    return this.#writing
  }

  async #writeWaiting(): Promise<void> {
    const longest = this.#maxBytes / PARTS / LINES
    for (let first = this.#waiting.shift(); first !== undefined; first = this.#waiting.shift()) {
      const { folder, record } = first
      const lines = [lineOf(record, longest)]
      let length = lines[0]?.length ?? 0
      // Later records of the same trace are written with it, in pieces that do not hold up the process for long.
      for (let next = this.#waiting[0]; next?.record.traceId === record.traceId; next = this.#waiting[0]) {
        if (length > longest) break
        this.#waiting.shift()
        const line = lineOf(next.record, longest)
        length += line.length
        lines.push(line)
      }
      await this.#append(folder, record.traceId, lines)
    }
  }

  async #append(folder: string, traceId: string, lines: readonly string[]): Promise<void> {
    try {
      await this.#makeRoom(folder)
      const text = lines.join('')
      await appendFile(await this.#fileFor(folder, traceId), text, { mode: 0o600 })
      this.#folders.set(folder, (this.#folders.get(folder) ?? 0) + Buffer.byteLength(text))
    } catch (error) {
      // The folder may have been removed: it is created again for the next write.
      this.#folders.delete(folder)
      this.#lose(lines.length, error instanceof Error ? error.message : 'unknown error')
    }
  }

  /** The file of a trace that has room: `<trace id>.jsonl`, then `<trace id>.2.jsonl`, and so on. */
  async #fileFor(folder: string, traceId: string): Promise<string> {
    const key = join(folder, traceId)
    const part = this.#parts.get(key) ?? (await lastPartOf(folder, traceId))
    const isFull = (await sizeOf(pathOf(key, part))) >= this.#maxBytes / PARTS
    this.#parts.delete(key)
    this.#parts.set(key, isFull ? part + 1 : part)
    const [oldest] = this.#parts.keys()
    if (oldest !== undefined && this.#parts.size > REMEMBERED_TRACES) this.#parts.delete(oldest)
    return pathOf(key, isFull ? part + 1 : part)
  }

  async #makeRoom(folder: string): Promise<void> {
    const known = this.#folders.get(folder)
    if (known === undefined) await mkdir(folder, { recursive: true, mode: 0o700 })
    // Room for as much as can be written until this is asked again.
    const most = this.#maxBytes - this.#maxBytes / PARTS
    if (known === undefined || known > most) this.#folders.set(folder, await deleteOldest(folder, most))
  }

  #lose(records: number, why: string): void {
    if (this.#lost === 0) process.emitWarning(`Spans of a local trace are lost: ${why}.`, 'TracingWarning')
    this.#lost += records
  }
}

/** A record as a line. One that is too long for its file is written without content. */
function lineOf(record: TraceRecord, longest: number): string {
  const line = JSON.stringify(record)
  if (line.length <= longest) return `${line}\n`
  const content: readonly string[] = Object.values(CONTENT)
  const kept = Object.entries(record.attributes).filter(([name]) => !content.includes(name))
  const attributes = { ...Object.fromEntries(kept), [OWN.contentLeftOut]: true }
  return `${JSON.stringify({ ...record, attributes })}\n`
}

/** The last part of a trace that is there; those before it may have been deleted. */
async function lastPartOf(folder: string, traceId: string): Promise<number> {
  const parts = (await readdir(folder)).flatMap((name) => {
    const [, id, part = '1'] = TRACE_FILE.exec(name) ?? []
    return id === traceId ? [Number(part)] : []
  })
  return Math.max(1, ...parts)
}

function pathOf(trace: string, part: number): string {
  return part === 1 ? `${trace}.jsonl` : `${trace}.${part}.jsonl`
}

function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  )
}

/** Deletes the oldest traces of a folder until at most `most` bytes are left; resolves to the bytes left. */
async function deleteOldest(folder: string, most: number): Promise<number> {
  const found = await tracesIn(folder)
  let left = found.reduce((sum, { size }) => sum + size, 0)
  for (const { path, size } of found.sort((one, other) => one.mtimeMs - other.mtimeMs)) {
    if (left <= most) break
    await rm(path, { force: true })
    left -= size
  }
  return left
}

async function tracesIn(folder: string): Promise<{ path: string; size: number; mtimeMs: number }[]> {
  const names = (await readdir(folder)).filter((name) => TRACE_FILE.test(name))
  const found = names.map(async (name) => {
    const path = join(folder, name)
    const { size, mtimeMs } = await stat(path)
    return { path, size, mtimeMs }
  })
  // Another process may have deleted one meanwhile.
  const settled = await Promise.allSettled(found)
  return settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
}
