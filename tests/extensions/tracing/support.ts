import { context } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import type { HistogramMetricData } from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { memoryLog } from 'thinharness'
import type { DurableEvent, Model, RunLog, Tracing } from 'thinharness'
import type { RunTrace, TracedRun } from '#core/extension/run-tracer.js'
import { ScriptedModel } from 'thinharness/testing'
import type { TraceRecord } from 'thinharness/tracing'
import { harnessOf, tool } from '../../harness/support.js'
import { eventsOfRun } from '../../support/collect.js'

/** The real SDK, its spans in memory. */
export function otel() {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  return {
    tracer: provider.getTracer('test'),
    get spans(): ReadableSpan[] {
      return exporter.getFinishedSpans()
    },
    get tree(): string {
      return treeOf(
        exporter.getFinishedSpans().map((span) => ({
          id: span.spanContext().spanId,
          parent: span.parentSpanContext?.spanId ?? null,
          name: span.name,
          startedAt: span.startTime[0] * 1000 + span.startTime[1] / 1e6,
        })),
      )
    },
    /** The spans of requests, in the order in which they ended. */
    get turns(): ReadableSpan[] {
      return exporter.getFinishedSpans().filter(({ name }) => name.startsWith('chat '))
    },
    named(name: string): ReadableSpan {
      return only(
        exporter.getFinishedSpans().filter((span) => span.name === name),
        name,
      )
    },
  }
}

/** Makes the SDK's context manager the one of this process until the test ends. */
export function useContextManager(): void {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  onTestFinished(() => context.disable())
}

/** The real SDK's metrics; `points` are `name{attributes}` with count and sum. */
export function otelMetrics() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const provider = new MeterProvider({ readers: [reader] })
  onTestFinished(() => provider.shutdown())
  return {
    meter: provider.getMeter('test'),
    async histograms(): Promise<HistogramMetricData[]> {
      await provider.forceFlush()
      const metrics =
        exporter
          .getMetrics()
          .at(-1)
          ?.scopeMetrics.flatMap((scope) => scope.metrics) ?? []
      return metrics.filter((metric): metric is HistogramMetricData => 'dataPoints' in metric)
    },
  }
}

/** All files below a folder, their paths from it. */
export async function filesIn(folder: string): Promise<string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  return found
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()
}

/** All records below a folder. */
export async function recordsIn(folder: string): Promise<TraceRecord[]> {
  const texts = await Promise.all((await filesIn(folder)).map((file) => readFile(join(folder, file), 'utf8')))
  return texts.flatMap((text) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as TraceRecord),
  )
}

export function recordTree(records: readonly TraceRecord[]): string {
  return treeOf(
    records.map(({ spanId, parentSpanId, name, startedAt }) => {
      return { id: spanId, parent: parentSpanId, name, startedAt: Date.parse(startedAt) }
    }),
  )
}

/** Names of spans, one a line, each deeper than its parent, in the order of their start (then: of their end). */
function treeOf(spans: readonly { id: string; parent: string | null; name: string; startedAt: number }[]): string {
  const ids = new Set(spans.map(({ id }) => id))
  const below = (parent: string | null, depth: number): string[] =>
    spans
      .filter((span) => (span.parent !== null && ids.has(span.parent) ? span.parent : null) === parent)
      .sort((one, other) => one.startedAt - other.startedAt)
      .flatMap(({ id, name }) => [`${'  '.repeat(depth)}${name}`, ...below(id, depth + 1)])
  return below(null, 0).join('\n')
}

function only<T>(items: readonly T[], what: string): T {
  const [first] = items
  if (first === undefined || items.length > 1) throw new Error(`Expected one ${what}, found ${items.length}.`)
  return first
}

/** Texts of all attributes and events of all spans. */
export function allTextOf(spans: readonly ReadableSpan[]): string {
  return JSON.stringify(spans.map(({ name, attributes, events, status }) => ({ name, attributes, events, status })))
}

/** What a span of a request says of its messages. */
export function messagesOf(span: ReadableSpan | undefined): { readonly input: unknown; readonly output: unknown } {
  const parsed = (attribute: string): unknown => {
    const value = span?.attributes[attribute]
    return typeof value === 'string' ? JSON.parse(value) : value
  }
  return { input: parsed('gen_ai.input.messages'), output: parsed('gen_ai.output.messages') }
}

/** A model that says by which name it answers. */
export function answeringAs(responseModel: string, responseId: string): Model {
  const scripted = new ScriptedModel().says('Hi.')
  return {
    ...{ provider: scripted.provider, id: scripted.id, capabilities: scripted.capabilities },
    openSession: () => {
      const session = scripted.openSession()
      return { turn: async (...asked) => ({ ...(await session.turn(...asked)), responseModel, responseId }) }
    },
  }
}

/** The events of a run that may call the tool `subagent`. */
export async function eventsOf(model: ScriptedModel, prompt: string): Promise<DurableEvent[]> {
  const log = memoryLog()
  await harnessOf({ model, tools: [tool('subagent')], log }).run(prompt, { runId: 'run' })
  return eventsIn(log, 'run')
}

/** What a log has of a run. */
export async function eventsIn(log: RunLog, runId: string): Promise<DurableEvent[]> {
  const events = await eventsOfRun(log, runId)
  return events
}

/** Begins the trace of a run whose events are there already. */
export function begun(tracing: Tracing, events: readonly DurableEvent[], as: Partial<TracedRun>): RunTrace {
  const runId = as.agentName ?? 'parent'
  const at = events[0]?.at ?? ''
  const top = { parentRunId: null, parentToolCallId: null, agentName: null }
  return tracing.startRun({ runId, ...top, metadata: {}, root: '/work', at, resumed: false, traceparent: null, ...as })
}
