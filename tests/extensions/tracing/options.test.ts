import { metrics, trace } from '@opentelemetry/api'
import { expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import { localTraces, openTelemetry } from 'thinharness/tracing'
import type { LocalTracesOptions, OpenTelemetryOptions } from 'thinharness/tracing'

const tracer = trace.getTracer('test')
const meter = metrics.getMeter('test')

test.each<[object, string]>([
  [{}, 'Expected `openTelemetry` to be given `tracer`, `meter` or both.'],
  [
    { tracer, capturecontent: true },
    'Unknown option of `openTelemetry`: `capturecontent`. Did you mean `captureContent`?',
  ],
  [{ tracer: {} }, 'Expected `tracer` of `openTelemetry` to be an object with a method `startSpan`, got an object.'],
  [
    { meter: {} },
    'Expected `meter` of `openTelemetry` to be an object with a method `createHistogram`, got an object.',
  ],
  [
    { tracer, captureContent: 'all' },
    'Expected `captureContent` of `openTelemetry` to be a boolean or an object, got `all`.',
  ],
  [
    { tracer, captureContent: { message: true } },
    'Unknown option of `openTelemetry`: `captureContent.message`. Did you mean `messages`?',
  ],
  [{ tracer, redact: /x/ }, 'Expected `redact` of `openTelemetry` to be a function, got an object.'],
])('openTelemetry rejects %j', (options, message) => {
  expect(() => openTelemetry(options as OpenTelemetryOptions)).toThrow(new HarnessError('invalid_options', message))
})

test.each<[object, string]>([
  [{ directory: '/x' }, 'Unknown option of `localTraces`: `directory`.'],
  [{ dir: '' }, 'Expected `dir` of `localTraces` to be a string that is not empty, got an empty string.'],
  [{ maxAgeDays: 0 }, 'Expected `maxAgeDays` of `localTraces` to be a whole number from 1 up, got `0`.'],
])('localTraces rejects %j', (options, message) => {
  expect(() => localTraces(options as LocalTracesOptions)).toThrow(HarnessError)
  expect(() => localTraces(options as LocalTracesOptions)).toThrow(message)
})

test('the tracer and the meter of the API are accepted as they are', () => {
  expect(openTelemetry({ tracer, meter })).toMatchObject({ startRun: expect.any(Function) as unknown })
})
