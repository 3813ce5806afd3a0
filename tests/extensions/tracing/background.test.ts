import { expect, test } from 'vitest'
import { openTelemetry } from 'thinharness/tracing'
import { hand, played, worker } from '../../run/children/background-support.js'
import { otel } from './support.js'

test('TC-06 a background run is nested in the run that it works for, and its report is an event there', async () => {
  const traced = otel()
  const { harness } = played(
    { 'Go.': [hand('Look.'), 'I wait.', 'Done.'], 'Look.': ['Seen.'] },
    { subagents: [worker()], tracing: [openTelemetry({ tracer: traced.tracer })] },
  )
  const { text, runId } = await harness.run('Go.')
  expect(text).toBe('Done.')
  const parents = new Map(traced.spans.map((span) => [span.name, span.parentSpanContext?.spanId]))
  const top = traced.spans.find(({ attributes }) => attributes['thinharness.run.id'] === runId && isRun(attributes))
  expect(parents.get('invoke_agent subagent.worker')).toBe(top?.spanContext().spanId)
  const told = traced.spans.flatMap(({ events }) => events).filter(({ name }) => name.endsWith('.background_reported'))
  expect(told.map(({ attributes }) => attributes)).toEqual([
    { call_id: 'call_1', run_id: expect.stringMatching(/^run_/) as string, agent: 'worker', ok: true },
  ])
})

function isRun(attributes: Readonly<Record<string, unknown>>): boolean {
  return attributes['gen_ai.operation.name'] === 'invoke_agent'
}
