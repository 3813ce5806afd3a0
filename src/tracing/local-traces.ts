import { createHash, randomBytes } from 'node:crypto'
import { homedir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { parse } from '../contracts/parse.js'
import type { JsonObject, JsonValue, Tracing } from '../index.js'
import { filledString, integer, partial } from '../util/shape.js'
import { ATTRIBUTE } from './names.js'
import { TRACE_OPTIONS, traceSettings } from './options.js'
import type { TraceOptions } from './options.js'
import { RunSpanMaker } from './run-spans.js'
import type { Attributes, RunSpanStart, Span, SpanError, SpanSink, SpanStart } from './spans.js'
import { TraceWriter } from './trace-writer.js'
import type { TraceRecord } from './trace-writer.js'

/** Content is captured unless `captureContent` says otherwise: local traces are there to be read. */
export interface LocalTracesOptions extends TraceOptions {
  /** Folder of all traces. Default `~/.thinharness/traces`. Below it each workspace has a folder of its own. */
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
    dir = join(homedir(), '.thinharness', 'traces'),
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
    const traceId = outer?.traceId ?? digest('sha256', span.parentRunId ?? span.runId, 32)
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
  return `${slug}-${digest('sha1', root, 10)}`
}

function digest(algorithm: 'sha1' | 'sha256', text: string, digits: number): string {
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
    Object.assign(this.#attributes, present(attributes))
  }

  event(name: string, attributes: Attributes, at: string): void {
    this.#events.push({ name, at, attributes: present(attributes) })
  }

  fail(error: SpanError): void {
    this.#error = error
    this.set({ [ATTRIBUTE.errorType]: error.type })
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

function present(attributes: Attributes): JsonObject {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
}
