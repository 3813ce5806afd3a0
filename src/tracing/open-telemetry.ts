import { invalidOptions, parse } from '../contracts/parse.js'
import { HarnessError } from '../index.js'
import type { RunTrace, Tracing } from '../index.js'
import { agentNameOf } from './attributes.js'
import { TRACE_OPTIONS, traceSettings } from './options.js'
import type { TraceOptions } from './options.js'
import type { OtelApi, OtelMeter, OtelTracer } from './otel-api.js'
import { OtelSpans } from './otel-spans.js'
import { histogramsOf, RunMetrics } from './run-metrics.js'
import { RunSpanMaker } from './run-spans.js'
import { having, partial } from '../util/shape.js'

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
  const histograms = meter === undefined ? null : histogramsOf(meter)
  let loading: Promise<void> | null = null
  let spans: RunSpanMaker | null = null

  const load = async (otel: OtelTracer): Promise<void> => {
    spans = new RunSpanMaker({ sink: new OtelSpans(await loadApi(), otel), ...settings })
  }
  return {
    async load() {
      if (tracer === undefined || spans !== null) return
      loading ??= load(tracer)
      // If loading failed, the next run tries again.
      await loading.finally(() => (loading = null))
    },
    startRun(run) {
      const traces: RunTrace[] = spans === null ? [] : [spans.startRun(run)]
      if (histograms !== null) traces.push(new RunMetrics(histograms, agentNameOf(run, settings.identity), run.at))
      return both(traces)
    },
  }
}

/** Spans, when there are any, come first. */
function both(traces: readonly RunTrace[]): RunTrace {
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
