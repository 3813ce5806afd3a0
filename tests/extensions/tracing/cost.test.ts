import { expect, test } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import { openTelemetry } from 'thinharness/tracing'
import { harnessOf, tool } from '../../harness/support.js'
import { otel, otelMetrics } from './support.js'

/** A micro-dollar a token of input, ten of output; of what the helper says, twice that. */
const PRICES = {
  models: {
    'scripted-1': { inputPerMillion: 1, outputPerMillion: 10 },
    helper: { inputPerMillion: 2, outputPerMillion: 20 },
  },
}

test("each request has its cost in its span and in a metric, each run the sum of its own and its children's", async () => {
  const traced = otel()
  const metrics = otelMetrics()
  using helper = new ScriptedModel({ id: 'helper' }).says('Found.', { usage: { inputTokens: 50, outputTokens: 5 } })
  using model = new ScriptedModel()
    .calls('ask', {}, { usage: { inputTokens: 100, outputTokens: 1 } })
    .says('Done.', { usage: { inputTokens: 200, outputTokens: 2 } })
  const ask = tool('ask', async (_args, { spawn }) => (await spawn({ prompt: 'Look.', model: helper }).result).text)
  const tracing = [openTelemetry({ tracer: traced.tracer, meter: metrics.meter })]
  await harnessOf({ model, tools: [ask], prices: PRICES, tracing }).run('Go.')

  expect(traced.turns.map(({ name, attributes }) => [name, attributes['thinharness.model.cost_usd']])).toEqual([
    ['chat scripted-1', 0.00011],
    ['chat helper', 0.0002],
    ['chat scripted-1', 0.00022],
  ])
  const runs = ['invoke_agent thinharness', 'invoke_agent subagent.default'].map((name) => traced.named(name))
  expect(runs.map(({ attributes }) => attributes['thinharness.run.cost_usd'])).toEqual([0.00053, 0.0002])
  const cost = (await metrics.histograms()).find(
    ({ descriptor }) => descriptor.name === 'thinharness.client.operation.cost',
  )
  expect(cost?.descriptor.unit).toBe('{USD}')
  const points = cost?.dataPoints.map(({ attributes, value }) => [
    attributes['gen_ai.request.model'],
    value.count,
    value.sum,
  ])
  expect(points?.toSorted()).toEqual([
    ['helper', 1, 0.0002],
    ['scripted-1', 2, 0.00033],
  ])
})

test('no cost is reported if it is unknown or not requested', async () => {
  const traced = otel()
  const metrics = otelMetrics()
  const tracing = [openTelemetry({ tracer: traced.tracer, meter: metrics.meter })]
  for (const prices of [{}, { prices: {} }]) {
    using model = new ScriptedModel().says('Hi.')
    await harnessOf({ model, tracing, ...prices }).run('Go.')
  }
  expect(
    traced.spans.flatMap(({ attributes }) => Object.keys(attributes)).filter((name) => name.includes('cost')),
  ).toEqual([])
  const points = (await metrics.histograms()).find(({ descriptor }) => descriptor.name.includes('cost'))?.dataPoints
  expect(points ?? []).toEqual([])
})
