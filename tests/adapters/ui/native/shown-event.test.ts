import { expect, test } from 'vitest'
import type { AnyRunEvent } from 'thinharness/ui'
import { shownEvent } from '#adapters/ui/native/shown-event.js'

const REPORT = {
  ...{ kind: 'background_reported', runId: 'run_1', seq: 9, at: '2026-01-01T00:00:00.000Z', durable: true },
  ...{ callId: 'call_1', toolName: 'research', childRunId: 'run_2', agent: 'helper', ok: false },
  ...{ errorType: 'provider_error', content: '`helper` has failed: 401 from https://models.internal' },
} as unknown as AnyRunEvent

test('XL-11 the report of a failed background run has the sentence of its code; a successful one its content', () => {
  expect(shownEvent(REPORT, {})).toMatchObject({
    errorType: 'provider_error',
    content: 'The model could not be reached, or refused the request.',
  })
  expect(shownEvent(REPORT, { errorText: ({ code, message }) => `${code}: ${message}` })).toMatchObject({
    content: 'provider_error: `helper` has failed: 401 from https://models.internal',
  })
  const done = { ...REPORT, ok: true, errorType: null, content: 'Found it.' } as unknown as AnyRunEvent
  expect(shownEvent(done, {})).toMatchObject({ content: 'Found it.' })
})
