import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { expect, test } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import { localTraces, openTelemetry, otlpJson } from 'thinharness/tracing'
import { failureOf, harnessOf, tool } from '../../harness/support.js'
import { collector, shapeOf, spansIn } from './collector.js'
import type { OtlpDocument } from './collector.js'
import { recordsIn } from './support.js'
import { temporaryFolder } from '../../support/folder.js'

test('a run reaches a collector by the real OTLP/HTTP exporter, and a local trace of it holds the same in OTLP', async () => {
  const collected = await collector()
  const exporter = new OTLPTraceExporter({ url: collected.url })
  const provider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] })
  const dir = temporaryFolder()
  const tracing = [
    openTelemetry({ tracer: provider.getTracer('thinharness'), captureContent: true }),
    localTraces({ dir }),
  ]
  const script = () => new ScriptedModel().calls('a', { x: 0.5 }, { reasoning: 'Hm.' }).calls('missing').fails('Down.')
  await using harness = harnessOf({ model: script(), tools: [tool('a')], settings: { temperature: 0.5 }, tracing })
  await failureOf(harness.run('Go.', { runId: 'run_1' }))
  await provider.shutdown()
  await harness.close()

  expect(collected.requests.map(({ path, type }) => [path, type])).toEqual([['/v1/traces', 'application/json']])
  const sent = collected.spans
  expect(sent.map(({ name }) => name)).toEqual([
    'chat scripted-1',
    'execute_tool a',
    'chat scripted-1',
    'execute_tool missing',
    'chat scripted-1',
    'invoke_agent thinharness',
  ])
  expect(sent[0]?.traceId).toMatch(/^[0-9a-f]{32}$/)
  expect(sent[0]?.startTimeUnixNano).toMatch(/^\d{19}$/)
  const document = otlpJson(await recordsIn(dir)) as unknown as OtlpDocument
  expect(shapeOf(spansIn(document))).toEqual(shapeOf(sent))
})

test('a missing collector harms no run', async () => {
  const exporter = new OTLPTraceExporter({ url: 'http://127.0.0.1:1/v1/traces', timeoutMillis: 100 })
  const provider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] })
  using model = new ScriptedModel().says('Hi.')
  const harness = harnessOf({ model, tracing: [openTelemetry({ tracer: provider.getTracer('thinharness') })] })
  expect((await harness.run('Hi?')).text).toBe('Hi.')
  await provider.shutdown().catch(() => undefined)
})
