import { expect, test } from 'vitest'
import { HarnessError, ModelRetry } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { openTelemetry } from 'thinharness/tracing'
import { failureOf, harnessOf, tool } from '../../harness/support.js'
import { otelMetrics } from './support.js'

type Point = readonly [attributes: object, count: number, sum: unknown]

/** Attributes with the number of measurements and their sum. */
async function pointsOf(metrics: ReturnType<typeof otelMetrics>, name: string): Promise<Point[]> {
  const metric = (await metrics.histograms()).find(({ descriptor }) => descriptor.name === name)
  const points = metric?.dataPoints.map(({ attributes, value }): Point => [attributes, value.count, value.sum])
  return sorted(points ?? [])
}

function sorted(points: readonly Point[]): Point[] {
  const key = ([attributes]: Point): string => JSON.stringify(Object.entries(attributes).toSorted())
  return points.toSorted((one, other) => (key(one) < key(other) ? -1 : 1))
}

const A_TIME: unknown = expect.any(Number)
const TURN = {
  'gen_ai.operation.name': 'chat',
  'gen_ai.provider.name': 'scripted',
  'gen_ai.request.model': 'scripted-1',
}
const REPLIED = { ...TURN, 'gen_ai.response.model': 'scripted-1' }

test('tokens and requests, calls and the run are measured by the conventions', async () => {
  const metrics = otelMetrics()
  using model = new ScriptedModel()
    .calls('a', {}, { usage: { inputTokens: 100, outputTokens: 7 } })
    .says('Done.', { usage: { inputTokens: 120, outputTokens: 3 } })
  await harnessOf({ model, tools: [tool('a')], tracing: [openTelemetry({ meter: metrics.meter })] }).run('Go.')
  expect(await pointsOf(metrics, 'gen_ai.client.token.usage')).toEqual(
    sorted([
      [{ ...REPLIED, 'gen_ai.token.type': 'input' }, 2, 220],
      [{ ...REPLIED, 'gen_ai.token.type': 'output' }, 2, 10],
    ]),
  )
  expect(await pointsOf(metrics, 'gen_ai.client.operation.duration')).toEqual(
    sorted([
      [REPLIED, 2, A_TIME],
      [{ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'a' }, 1, A_TIME],
      [{ ...TURN, 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'thinharness' }, 1, A_TIME],
    ]),
  )
  const [tokens] = (await metrics.histograms()).filter(({ descriptor }) => descriptor.unit === '{token}')
  expect(tokens?.dataPoints[0]?.value.buckets.boundaries.slice(0, 4)).toEqual([1, 4, 16, 64])
})

test('a failure has its class, and an unknown tool no name of its own', async () => {
  const metrics = otelMetrics()
  const down = new HarnessError('provider_error', 'Down.', { status: 503 })
  using model = new ScriptedModel().callsAll([{ name: 'invented' }, { name: 'a' }]).fails(down)
  const failing = tool('a', () => {
    throw new ModelRetry('Again.')
  })
  const harness = harnessOf({ model, tools: [failing], tracing: [openTelemetry({ meter: metrics.meter })] })
  await failureOf(harness.run('Go.'))
  const failed = { 'error.type': 'provider_error', 'thinharness.failure': 'overloaded' }
  expect(await pointsOf(metrics, 'gen_ai.client.operation.duration')).toEqual(
    sorted([
      [{ ...TURN, ...failed }, 1, A_TIME],
      [REPLIED, 1, A_TIME],
      [
        { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': '_OTHER', 'error.type': 'NotFound' },
        1,
        expect.any(Number),
      ],
      [
        { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'a', 'error.type': 'ModelRetry' },
        1,
        expect.any(Number),
      ],
      [
        { ...TURN, 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'thinharness', ...failed },
        1,
        expect.any(Number),
      ],
    ]),
  )
})

test('a provider that reports no tokens yields none', async () => {
  const metrics = otelMetrics()
  using model = new ScriptedModel().says('Hi.', { usage: null })
  await harnessOf({ model, tracing: [openTelemetry({ meter: metrics.meter })] }).run('Hi?')
  expect(await pointsOf(metrics, 'gen_ai.client.token.usage')).toEqual([])
})
