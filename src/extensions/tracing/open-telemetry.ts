import {
  tracedAgentName,
  callErrorType,
  inDollars,
  ATTRIBUTE,
  SPAN_EVENT,
  METRIC,
  OPERATION,
  OTHER,
  OWN,
} from './attributes.js'
import { TRACE_OPTIONS, traceSettings } from './options.js'
import type { TraceOptions } from './options.js'
import { RunSpanMaker } from './run-spans.js'
import { stringList } from './span-sink.js'
import type { Attributes, RunSpanStart, Span, SpanError, SpanSink, SpanStart, EventOf } from './span-sink.js'
import type { TokenUsage } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import type { RunTrace, Tracing } from '#core/extension/run-tracer.js'
import type { RequestConstants } from '#core/model-session.js'
import type { RunEvent } from '#core/state/events.js'
import type { JsonValue } from '#util/json.js'
import { having, partial } from '#util/validate.js'

/** Content is captured only if `captureContent` asks for it. */
export interface OpenTelemetryOptions extends TraceOptions {
  /** Receives the spans. Default: no spans. */
  readonly tracer?: OtelTracer | undefined
  /** Receives the metrics. Default: no metrics. */
  readonly meter?: OtelMeter | undefined
}

const OPTIONS = partial<OpenTelemetryOptions>({
  ...TRACE_OPTIONS,
  tracer: having('an object with a method `startSpan`', 'startSpan'),
  meter: having('an object with a method `createHistogram`', 'createHistogram'),
})

/**
 * Traces runs with OpenTelemetry, by its semantic conventions for generative AI: a span for each run, request to a model
 * and tool call, and histograms of tokens and time. The run's span is nested in the span that is active when the run is
 * started, spans that tools create are nested in the span of their call. The host exports and flushes its tracer.
 *
 * Throws `invalid_options`; a run fails with `missing_dependency` when `@opentelemetry/api` is not installed.
 */
export function openTelemetry(options: OpenTelemetryOptions): Tracing {
  const given = parse(OPTIONS, options, '`openTelemetry`')
  const settings = traceSettings(given, false)
  const { tracer, meter } = given
  if (tracer === undefined && meter === undefined)
    throw invalidOptions('Expected `openTelemetry` to be given `tracer`, `meter` or both.')
  const histograms = meter === undefined ? null : createHistograms(meter)
  let loading: Promise<void> | null = null
  let spans: RunSpanMaker | null = null

  const loadSpans = async (otel: OtelTracer): Promise<void> => {
    spans = new RunSpanMaker({ sink: new OtelSpans(await loadApi(), otel), ...settings })
  }
  return {
    async load() {
      if (tracer === undefined || spans !== null) return
      loading ??= loadSpans(tracer)
      // If loading failed, the next run tries again.
      await loading.finally(() => (loading = null))
    },
    startRun(run) {
      const traces: RunTrace[] = spans === null ? [] : [spans.startRun(run)]
      if (histograms !== null) traces.push(new RunMetrics(histograms, tracedAgentName(run, settings.identity), run.at))
      return combineTraces(traces)
    },
  }
}

/** Spans, when there are any, come first. */
function combineTraces(traces: readonly RunTrace[]): RunTrace {
  const [first] = traces
  return {
    traceparent: first?.traceparent ?? null,
    event: (event) => traces.forEach((trace) => trace.event(event)),
    constants: (constants) => traces.forEach((trace) => trace.constants?.(constants)),
    within: (scope, work) => (first?.within === undefined ? work() : first.within(scope, work)),
  }
}

async function loadApi(): Promise<OtelApi> {
  try {
    return await import('@opentelemetry/api')
  } catch (cause) {
    const message =
      'Tracing with OpenTelemetry needs the package `@opentelemetry/api`: `npm install @opentelemetry/api`.'
    throw new HarnessError('missing_dependency', message, { cause })
  }
}

/** Of OpenTelemetry's `SpanKind` and `SpanStatusCode`; their numbers are part of its API. */
const KIND = { internal: 0, client: 2 } as const
const STATUS_ERROR = 2

/** Passes spans to an OpenTelemetry tracer. */
class OtelSpans implements SpanSink {
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

  fail({ type, message, failure }: SpanError, at: string): void {
    this.set({ [ATTRIBUTE.errorType]: type, [OWN.failure]: failure })
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
  return stringList(value) ?? JSON.stringify(value)
}

function parseTraceparent(text: string | null): OtelSpanContext | undefined {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text ?? '') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) }
}

/** The histograms of all runs. */
type Histograms = { readonly [Name in keyof typeof METRIC]: OtelHistogram }

function createHistograms(meter: OtelMeter): Histograms {
  const createHistogram = ({ name, boundaries, ...texts }: (typeof METRIC)[keyof typeof METRIC]): OtelHistogram =>
    meter.createHistogram(name, { ...texts, advice: { explicitBucketBoundaries: [...boundaries] } })
  return {
    tokens: createHistogram(METRIC.tokens),
    duration: createHistogram(METRIC.duration),
    cost: createHistogram(METRIC.cost),
  }
}

/** Measures one run: tokens, cost and time of each request, time of each tool call and of the run. */
class RunMetrics implements RunTrace {
  readonly #histograms: Histograms
  readonly #agent: OtelAttributes
  readonly #startedAt: string
  #model: OtelAttributes = {}
  /** The start of the current request. */
  #askedAt: string | null = null
  /** Its turns are computed: they are no requests. */
  #isProgram = false
  #offered: ReadonlySet<string> = new Set()

  constructor(histograms: Histograms, agentName: string, startedAt: string) {
    this.#histograms = histograms
    this.#agent = { [ATTRIBUTE.agentName]: agentName }
    this.#startedAt = startedAt
  }

  constants({ tools }: RequestConstants): void {
    this.#offered = new Set(tools.map(({ name }) => name))
  }

  event(event: RunEvent): void {
    if (event.kind === 'run_started' || event.kind === 'model_request_started') {
      this.#model = { [ATTRIBUTE.provider]: event.provider, [ATTRIBUTE.requestModel]: event.model }
    }
    if (event.kind === 'run_started') this.#isProgram = event.rules.computed === true
    if (event.kind === 'model_request_started' && !this.#isProgram) this.#askedAt = event.at
    if (event.kind === 'model_message' && !this.#isProgram) this.#replied(event)
    if (event.kind === 'tool_call_completed') this.#called(event)
    if (event.kind === 'run_completed') this.#ended(event.at, {})
    if (event.kind === 'run_failed')
      this.#ended(event.at, { ...errorAttributes(event.code), [OWN.failure]: event.failure })
  }

  #replied({ at, entry, responseModel, cost }: EventOf<'model_message'>): void {
    const attributes = { ...this.#turn(), ...(responseModel !== null && { [ATTRIBUTE.responseModel]: responseModel }) }
    this.#tokens(entry.usage, attributes)
    if (cost !== undefined) this.#histograms.cost.record(inDollars(cost), attributes)
    this.#measure(attributes, this.#askedAt ?? at, at)
    this.#askedAt = null
  }

  #tokens({ inputTokens, outputTokens }: TokenUsage, attributes: OtelAttributes): void {
    const { tokens } = this.#histograms
    if (inputTokens !== null) tokens.record(inputTokens, { ...attributes, [ATTRIBUTE.tokenType]: 'input' })
    if (outputTokens !== null) tokens.record(outputTokens, { ...attributes, [ATTRIBUTE.tokenType]: 'output' })
  }

  #called(event: EventOf<'tool_call_completed'>): void {
    const { toolName, durationMs } = event
    const attributes = {
      [ATTRIBUTE.operation]: OPERATION.tool,
      [ATTRIBUTE.toolName]: this.#offered.has(toolName) ? toolName : OTHER,
      ...errorAttributes(callErrorType(event)),
    }
    this.#histograms.duration.record(durationMs / 1000, attributes)
  }

  #ended(at: string, failed: OtelAttributes): void {
    if (this.#askedAt !== null) this.#measure({ ...this.#turn(), ...failed }, this.#askedAt, at)
    this.#askedAt = null
    const attributes = { [ATTRIBUTE.operation]: OPERATION.run, ...this.#model, ...this.#agent, ...failed }
    this.#measure(attributes, this.#startedAt, at)
  }

  #turn(): OtelAttributes {
    return { [ATTRIBUTE.operation]: OPERATION.turn, ...this.#model }
  }

  #measure(attributes: OtelAttributes, from: string, to: string): void {
    this.#histograms.duration.record(Math.max(0, Date.parse(to) - Date.parse(from)) / 1000, attributes)
  }
}

function errorAttributes(type: string | null): OtelAttributes {
  return type === null ? {} : { [ATTRIBUTE.errorType]: type }
}

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
