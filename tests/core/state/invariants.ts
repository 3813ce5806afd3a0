import { expect } from 'vitest'
import type { DurableEvent, TranscriptEntry } from 'thinharness'
import { toolCallsOf } from '#contracts/entry.js'

/** H2 to H5 of a conversation that is closed: each call has one result, under its id, in the order of the calls. */
export function checkTranscript(transcript: readonly TranscriptEntry[]): void {
  expect(transcript.map(({ id }) => id)).toEqual(transcript.map((_, index) => `e${index + 1}`))
  const made: string[] = []
  for (const [index, entry] of transcript.entries()) {
    if (entry.role !== 'assistant') continue
    const calls = toolCallsOf(entry.parts).map(({ callId }) => callId)
    const answers = transcript.slice(index + 1, index + 1 + calls.length)
    expect(answers.map((answer) => (answer.role === 'tool' ? answer.callId : answer.role))).toEqual(calls)
    made.push(...calls)
  }
  expect(new Set(made).size).toBe(made.length)
  expect(transcript.filter(({ role }) => role === 'tool')).toHaveLength(made.length)
}

/** H1 and H7 of the log of one run: numbered without gaps, and no tool starts before the reply that calls it is kept. */
export function checkLog(events: readonly DurableEvent[]): void {
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
  const called = new Set<string>()
  for (const event of events) {
    if (event.kind === 'model_message') {
      for (const { callId } of toolCallsOf(event.entry.parts)) called.add(callId)
    }
    if (event.kind === 'tool_call_started') expect([...called]).toContain(event.callId)
  }
}
