import { metrics, trace } from '@opentelemetry/api'
import { Harness } from 'thinharness'
import { openTelemetry } from 'thinharness/tracing'

const tracing = openTelemetry({
  tracer: trace.getTracer('shop'),
  meter: metrics.getMeter('shop'),
  agentName: 'order-desk',
})

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './notes', tracing: [tracing] })
const result = await harness.run('Which notes mention a deadline?', { metadata: { conversation_id: 'chat-17' } })

console.log(result.text)
