import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { openTelemetry } from 'thinharness/tracing'

const { LANGFUSE_PUBLIC_KEY = '', LANGFUSE_SECRET_KEY = '' } = process.env
const keys = Buffer.from(`${LANGFUSE_PUBLIC_KEY}:${LANGFUSE_SECRET_KEY}`).toString('base64')
const exporter = new OTLPTraceExporter({
  url: 'https://cloud.langfuse.com/api/public/otel/v1/traces',
  headers: { authorization: `Basic ${keys}` },
})

/** Call `await provider.shutdown()` before the process ends: it sends the last spans. */
export const provider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] })
export const tracing = openTelemetry({ tracer: provider.getTracer('shop'), agentName: 'order-desk' })
