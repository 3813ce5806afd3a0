import { createHash, randomBytes } from 'node:crypto'
import { basename, join } from 'node:path'
import type { JsonObject, JsonValue } from '../index.js'
import { ATTRIBUTE } from './names.js'
import type { Attributes, RunSpanStart, Span, SpanError, SpanSink, SpanStart } from './spans.js'
import type { TraceRecord } from './trace-record.js'

/** Takes a record for the trace that is named by its folder and its id. */
export type Keep = (folder: string, record: TraceRecord) => void

/** Makes records of spans, one folder for each workspace. */
export class LocalSpans implements SpanSink {
  readonly #folder: string
  readonly #keep: Keep

  constructor(folder: string, keep: Keep) {
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
