import { createHash, randomBytes } from 'node:crypto'
import { homedir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { appendFile, mkdir, readdir, rm, stat } from 'node:fs/promises'
import { parse } from '#contracts/parse.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import type { Tracing } from '#core/extension/run-tracer.js'
import { filledString, integer, partial } from '#util/validate.js'
import { environment } from '#util/platform/node.js'
import { ATTRIBUTE, OWN } from './attributes.js'
import { TRACE_OPTIONS, traceSettings } from './options.js'
import type { TraceOptions } from './options.js'
import { RunSpanMaker } from './run-spans.js'
import type { Attributes, RunSpanStart, Span, SpanError, SpanSink, SpanStart } from './span-sink.js'

/** Content is captured unless `captureContent` says otherwise: local traces are there to be read. */
export interface LocalTracesOptions extends TraceOptions {
  /** Folder of all traces. Default: the environment's `THINHARNESS_TRACES`, else `~/.thinharness/traces`. Below it each workspace has a folder of its own. */
  readonly dir?: string | undefined
  /** Traces that are older, in days, are deleted when a process writes the first one of their workspace. Default 30. */
  readonly maxAgeDays?: number | undefined
}

const OPTIONS = partial<LocalTracesOptions>({ ...TRACE_OPTIONS, dir: filledString, maxAgeDays: integer(1) })

/**
 * Traces runs into files of this machine, to be read with `jq` or turned into OpenTelemetry's JSON with `otlpJson`: one
 * JSONL file a trace, one span (`TraceRecord`) a line, children before their parents. Files can be read by their owner
 * alone, and are written asynchronously, so that a trace never makes a run wait: a process that is
 * killed loses the lines that it had not written yet. Traces contain messages unless `captureContent` is false: treat them like the
 * data that runs work on.
 *
 * Throws `invalid_options`.
 */
export function localTraces(options: LocalTracesOptions = {}): Tracing {
  const {
    dir = environment('THINHARNESS_TRACES') ?? join(homedir(), '.thinharness', 'traces'),
    maxAgeDays = 30,
    ...settings
  } = parse(OPTIONS, options, '`localTraces`')
  const writer = new TraceWriter(maxAgeDays)
  const sink = new LocalSpans(resolve(dir), (folder, record) => writer.write(folder, record))
  const maker = new RunSpanMaker({ sink, ...traceSettings(settings, true) })
  return {
    startRun: (run) => maker.startRun(run),
    flush: () => writer.flush(),
  }
}

/** Makes records of spans, one folder for each workspace. */
class LocalSpans implements SpanSink {
  readonly #folder: string
  readonly #keep: (folder: string, record: TraceRecord) => void

  constructor(folder: string, keep: (folder: string, record: TraceRecord) => void) {
    this.#folder = folder
    this.#keep = keep
  }

  startRun(span: RunSpanStart): Span {
    const outer = span.parent instanceof LocalSpan ? span.parent : null
    // Derived from the run id: a run that continues, here or elsewhere, continues its trace.
    const traceId = outer?.traceId ?? hexDigest('sha256', span.parentRunId ?? span.runId, 32)
    const folder = join(this.#folder, folderName(span.root))
    return new LocalSpan(span, traceId, (record) => this.#keep(folder, record))
  }

  start(span: SpanStart & { readonly parent: Span }): Span {
    if (!(span.parent instanceof LocalSpan)) throw new TypeError('Expected the parent to be a local span.')
    return span.parent.child(span)
  }
}

/** Name of a workspace's folder: readable, and different for each path. */
function folderName(root: string): string {
  const slug = basename(root)
    .replaceAll(/[^A-Za-z0-9_.-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
  return `${slug}-${hexDigest('sha1', root, 10)}`
}

function hexDigest(algorithm: 'sha1' | 'sha256', text: string, digits: number): string {
  return createHash(algorithm).update(text).digest('hex').slice(0, digits)
}

class LocalSpan implements Span {
  readonly traceId: string
  readonly #spanId = randomBytes(8).toString('hex')
  readonly #start: SpanStart
  readonly #keep: (record: TraceRecord) => void
  readonly #attributes: Record<string, JsonValue> = {}
  readonly #events: TraceRecord['events'][number][] = []
  #error: SpanError | null = null
  #ended = false

  constructor(start: SpanStart, traceId: string, keep: (record: TraceRecord) => void) {
    this.traceId = traceId
    this.#start = start
    this.#keep = keep
    this.set(start.attributes)
  }

  /** Local traces need none: their ids follow from the run's. */
  get traceparent(): null {
    return null
  }

  child(start: SpanStart): Span {
    return new LocalSpan(start, this.traceId, this.#keep)
  }

  set(attributes: Attributes): void {
    Object.assign(this.#attributes, presentAttributes(attributes))
  }

  event(name: string, attributes: Attributes, at: string): void {
    this.#events.push({ name, at, attributes: presentAttributes(attributes) })
  }

  fail(error: SpanError): void {
    this.#error = error
    this.set({ [ATTRIBUTE.errorType]: error.type, [OWN.failure]: error.failure })
  }

  end(endedAt: string): void {
    if (this.#ended) return
    this.#ended = true
    const { name, kind, startedAt, parent } = this.#start
    this.#keep({
      type: 'span',
      traceId: this.traceId,
      spanId: this.#spanId,
      parentSpanId: parent instanceof LocalSpan ? parent.#spanId : null,
      name,
      kind,
      startedAt,
      endedAt,
      durationMs: Math.max(0, Date.parse(endedAt) - Date.parse(startedAt)),
      status: this.#error === null ? 'ok' : 'error',
      error: this.#error,
      attributes: this.#attributes,
      events: this.#events,
    })
  }

  within<T>(work: () => T): T {
    return work()
  }
}

function presentAttributes(attributes: Attributes): JsonObject {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
}

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
class TraceWriter {
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
