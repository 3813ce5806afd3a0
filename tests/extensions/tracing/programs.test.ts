import { expect, test } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import { openTelemetry } from 'thinharness/tracing'
import { harnessOf, tool } from '../../harness/support.js'
import { runScript } from '../../run/children/program-support.js'
import { otel } from './support.js'

test('a program has spans of its calls, and none of requests', async () => {
  const traced = otel()
  const tracing = openTelemetry({ tracer: traced.tracer, captureContent: true })
  const tools = [runScript((call) => call('square')), tool('square', () => 4)]
  const model = new ScriptedModel().calls('run_script').says('Done.')
  await harnessOf({ model, tools, tracing: [tracing] }).run('Go.')
  const requests = traced.spans.filter(({ attributes }) => attributes['gen_ai.operation.name'] === 'chat')
  expect(requests).toHaveLength(2)
  expect(traced.tree).toContain('execute_tool square')
})
