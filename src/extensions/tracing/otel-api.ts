/**
 * As much of `@opentelemetry/api` 1.x as is used here, by structure: the published declarations name no optional package.
 */

/** A `Tracer`, as `trace.getTracer(…)` or a provider's `getTracer(…)` gives one. */
export interface OtelTracer {
  startSpan(name: string, options?: OtelSpanOptions, context?: unknown): OtelSpan
}

export interface OtelSpanOptions {
  kind?: number
  attributes?: OtelAttributes
  links?: { context: OtelSpanContext }[]
  startTime?: Date
}

export type OtelAttributes = Record<string, string | number | boolean | string[] | undefined>

export interface OtelSpanContext {
  traceId: string
  spanId: string
  traceFlags: number
  isRemote?: boolean
}

export interface OtelSpan {
  spanContext(): OtelSpanContext
  setAttributes(attributes: OtelAttributes): unknown
  addEvent(name: string, attributes?: OtelAttributes, time?: Date): unknown
  setStatus(status: { code: number; message?: string }): unknown
  end(time?: Date): void
}

/** A `Meter`, as `metrics.getMeter(…)` gives one. */
export interface OtelMeter {
  createHistogram(name: string, options?: OtelInstrumentOptions): OtelHistogram
}

export interface OtelInstrumentOptions {
  unit?: string
  description?: string
  advice?: { explicitBucketBoundaries?: number[] }
}

export interface OtelHistogram {
  record(value: number, attributes?: OtelAttributes): void
}

/** The package itself. */
export interface OtelApi {
  readonly context: {
    active(): unknown
    with<T>(context: unknown, work: () => T): T
  }
  readonly trace: {
    setSpan(context: unknown, span: OtelSpan): unknown
    setSpanContext(context: unknown, span: OtelSpanContext): unknown
    getSpanContext(context: unknown): OtelSpanContext | undefined
  }
}
