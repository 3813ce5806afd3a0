import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { DurableEvent, LogRef, LogStore } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { Sessions } from 'thinharness/session'
import { digestOf, digestText, eventOf, storedText } from '#store/short/short-form.js'
import { eventsOfRun } from '../support/collect.js'
import { harnessOf, tool } from '../harness/support.js'

const CORPUS = new URL('../corpus/', import.meta.url).pathname

function linesIn(folder: string): readonly string[] {
  const names = readdirSync(join(CORPUS, folder)).filter((name) => name.endsWith('.jsonl'))
  return names.flatMap((name) =>
    readFileSync(join(CORPUS, folder, name), 'utf8')
      .trimEnd()
      .split('\n'),
  )
}

function logOf(event: DurableEvent | { readonly threadId: string }): { readonly kind: 'run' | 'thread'; id: string } {
  return 'threadId' in event ? { kind: 'thread', id: event.threadId } : { kind: 'run', id: event.runId }
}

async function collected(log: LogStore): Promise<readonly object[]> {
  const events: object[] = []
  for await (const { runId } of log.list()) events.push(...(await eventsOfRun(log, runId)))
  for await (const { threadId } of log.list({ kind: 'thread' }))
    for await (const event of log.read({ kind: 'thread', id: threadId })) events.push(event)
  return events
}

describe('the short form of events', () => {
  test.each(['v1', 'v2'])('keeps every event of the corpus, member for member (%s)', (folder) => {
    for (const line of linesIn(folder)) {
      const event = JSON.parse(line) as DurableEvent
      const text = storedText(logOf(event), event)
      expect(text.length).toBeLessThanOrEqual(line.length)
      expect(eventOf(logOf(event), text)).toEqual(event)
    }
  })

  test('is read as an earlier version has written it (tests/corpus/short), and still written so', () => {
    const lines = readFileSync(join(CORPUS, 'short', 'form-1.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
    expect(lines.length).toBeGreaterThan(30)
    for (const line of lines) {
      const { log, stored, event } = JSON.parse(line) as { log: LogRef; stored: string; event: DurableEvent }
      expect(eventOf(log, stored)).toEqual(event)
      expect(JSON.parse(storedText(log, event))).toEqual(JSON.parse(stored))
    }
  })

  test('keeps the order of the members of the events of a conversation', async () => {
    using model = new ScriptedModel().calls('a').says('Done.').says('Again.')
    const log = memoryLog()
    const harness = harnessOf({ model, tools: [tool('a')] })
    const sessions = new Sessions({ log, harness })
    const chat = await sessions.open('t:1')
    for (const prompt of ['One.', 'Two.']) await (await chat.send(prompt)).done
    await sessions.close()
    const events = (await collected(log)) as DurableEvent[]
    expect(new Set(events.map(({ kind }) => kind as string))).toContain('message_queued')
    for (const event of events) {
      const text = storedText(logOf(event), event)
      expect(JSON.stringify(eventOf(logOf(event), text))).toBe(JSON.stringify(event))
      // In a file, which may get another name.
      const named = storedText(logOf(event), event, { isFile: true })
      expect(JSON.stringify(eventOf({ ...logOf(event), id: 'copy' }, named))).toBe(JSON.stringify(event))
      if (event.kind === 'run_completed') expect(text.length).toBeLessThan(JSON.stringify(event).length / 3)
    }
  })

  test.each<[string, object]>([
    ['of a kind that is not known', { kind: 'own', runId: 'a', durable: true, parentRunId: null, more: [1] }],
    ['that lacks members', { kind: 'run_completed', runId: 'a', durable: true }],
    ['of another run', { kind: 'run_completed', runId: 'b' }],
    ['with a member `form`', { kind: 'own', form: 1, runId: 'a' }],
    [
      'with a member `__proto__`',
      JSON.parse('{"kind":"own","runId":"a","durable":true,"__proto__":{"x":1}}') as object,
    ],
    ['without anything else', { kind: 'own' }],
  ])('keeps an event %s', (_, members) => {
    const event = { seq: 3, at: '2026-01-01T00:00:00.000Z', ...members } as unknown as DurableEvent
    const run = { kind: 'run', id: 'a' } as const
    const read = eventOf(run, storedText(run, event))
    expect(JSON.stringify(read)).toBe(JSON.stringify(event))
  })

  test('gives each reader arrays and objects of its own', () => {
    const [line = ''] = linesIn('v2').filter((each) => each.includes('"run_started"') && each.includes('"history":[]'))
    const event = JSON.parse(line) as DurableEvent & { kind: 'run_started' }
    const text = storedText(logOf(event), event)
    const read = eventOf(logOf(event), text) as typeof event
    ;(read.history as unknown[]).push('changed')
    expect(eventOf(logOf(event), text)).toEqual(event)
  })

  test('refuses a form that it does not know', () => {
    expect(eventOf({ kind: 'run', id: 'a' }, '{"form":2,"kind":"own","seq":1,"at":""}')).toBeUndefined()
  })

  test('leaves a digest without what its row says', () => {
    const used = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
    const ofModel = { modelRequests: 2, ...used, costUsd: null }
    const counts = { toolCalls: 0, cancelledToolCalls: 0, outputRetries: 0, toolRetries: {}, hookFailures: 0 }
    const usage = { ...counts, ...ofModel, children: { modelRequests: 0, toolCalls: 0 }, byModel: { 'p:m': ofModel } }
    const times = { startedAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-01T00:00:01.000Z' }
    const row = { runId: 'run_a', ...times, lastSeq: 4 }
    const rest = { provider: 'p', model: 'm', metadata: {}, usage, pending: [], parent: null, error: null }
    for (const [phase, stopReason, endedAt] of [
      ['completed', 'end_turn', times.updatedAt],
      ['open', null, null],
    ] as const) {
      const digest = { ...row, phase, stopReason, endedAt, ...rest }
      const text = digestText(digest, row)
      expect(text.length).toBeLessThan(JSON.stringify(digest).length / 2)
      expect(digestOf(text, row)).toEqual(digest)
    }
  })
})
