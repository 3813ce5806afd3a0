import type { JsonValue } from '../index.js'
import { ATTRIBUTE, SPAN_EVENT } from './names.js'
import type { OtelApi, OtelAttributes, OtelSpan, OtelSpanContext, OtelTracer } from './otel-api.js'
import { textsIn } from './spans.js'
import type { Attributes, RunSpanStart, Span, SpanError, SpanSink, SpanStart } from './spans.js'

/** Of OpenTelemetry's `SpanKind` and `SpanStatusCode`; their numbers are part of its API. */
const KIND = { internal: 0, client: 2 } as const
const STATUS_ERROR = 2

/** Passes spans to an OpenTelemetry tracer. */
export class OtelSpans implements SpanSink {
  readonly #api: OtelApi
  readonly #tracer: OtelTracer

  constructor(api: OtelApi, tracer: OtelTracer) {
    this.#api = api
    this.#tracer = tracer
  }

  startRun(span: RunSpanStart): Span {
    const earlier = parseTraceparent(span.earlier)
    const outer = this.#contextOfRun(span, this.#api.context.active(), earlier)
    const opened = this.#open(span, outer, earlier)
    return new OtelSpanInContext(this.#api, opened, this.#api.trace.setSpan(outer, opened))
  }

  start(span: SpanStart & { readonly parent: Span }): Span {
    const { context, trace } = this.#api
    const outer = span.parent instanceof OtelSpanInContext ? span.parent.context : context.active()
    const opened = this.#open(span, outer, undefined)
    return new OtelSpanInContext(this.#api, opened, trace.setSpan(outer, opened))
  }

  /** A child is nested in its call. A run that continues without an active span continues its own trace. */
  #contextOfRun({ parent }: RunSpanStart, caller: unknown, earlier: OtelSpanContext | undefined): unknown {
    if (parent instanceof OtelSpanInContext) return parent.context
    const { trace } = this.#api
    if (earlier === undefined || trace.getSpanContext(caller) !== undefined) return caller
    return trace.setSpanContext(caller, { ...earlier, isRemote: true })
  }

  #open({ name, kind, startedAt, attributes }: SpanStart, outer: unknown, link: OtelSpanContext | undefined): OtelSpan {
    return this.#tracer.startSpan(
      name,
      {
        kind: KIND[kind],
        startTime: new Date(startedAt),
        attributes: otelAttributes(attributes),
        ...(link !== undefined && { links: [{ context: link }] }),
      },
      outer,
    )
  }
}

class OtelSpanInContext implements Span {
  /** A context in which the span is the current one. */
  readonly context: unknown
  readonly #api: OtelApi
  readonly #span: OtelSpan

  constructor(api: OtelApi, span: OtelSpan, context: unknown) {
    this.#api = api
    this.#span = span
    this.context = context
  }

  get traceparent(): string | null {
    const { traceId, spanId, traceFlags } = this.#span.spanContext()
    return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
  }

  set(attributes: Attributes): void {
    this.#span.setAttributes(otelAttributes(attributes))
  }

  event(name: string, attributes: Attributes, at: string): void {
    this.#span.addEvent(name, otelAttributes(attributes), new Date(at))
  }

  fail({ type, message }: SpanError, at: string): void {
    this.set({ [ATTRIBUTE.errorType]: type })
    this.#span.setStatus({ code: STATUS_ERROR, message: message ?? type })
    // Not `recordException`: it adds a stack trace, which may quote content.
    const exception = { [SPAN_EVENT.exceptionType]: type, [SPAN_EVENT.exceptionMessage]: message ?? undefined }
    this.event(SPAN_EVENT.exception, exception, at)
  }

  end(at: string): void {
    this.#span.end(new Date(at))
  }

  within<T>(work: () => T): T {
    return this.#api.context.with(this.context, work)
  }
}

/** OpenTelemetry's attributes hold no structures: those are written as JSON text. */
function otelAttributes(attributes: Attributes): OtelAttributes {
  return Object.fromEntries(Object.entries(attributes).map(([key, value]) => [key, otelValue(value)]))
}

function otelValue(value: JsonValue | undefined): OtelAttributes[string] {
  if (value === null || value === undefined) return undefined
  if (typeof value !== 'object') return value
  return textsIn(value) ?? JSON.stringify(value)
}

function parseTraceparent(text: string | null): OtelSpanContext | undefined {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text ?? '') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) }
}
