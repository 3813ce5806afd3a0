import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineExtension, HarnessError, memoryLog, ModelRetry, textOf } from 'thinharness'
import type { Extension, Model, ModelDelta, RunEvent, StreamEvent } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, harnessOf, ofKind, told, tool } from '../../harness/support.js'
import { delegateTool, playing } from '../../run/children/children-support.js'
import { collect, eventsOfRun } from '../../support/collect.js'
import { maskedKeys, masking } from './masking.js'

const KEY = 'sk-SECRET1'

/** The same model, whose replies arrive in pieces of these lengths, again and again. */
function inPieces(model: ScriptedModel, lengths: readonly number[]): Model {
  return {
    ...{ provider: 'scripted', capabilities: model.capabilities, id: 'scripted-1' },
    openSession() {
      const session = model.openSession()
      return {
        turn(transcript, constants, { onDelta, ...options }) {
          const pieces = (delta: ModelDelta): void => {
            for (let at = 0, index = 0; at < delta.text.length; index++) {
              const end = at + (lengths[index % lengths.length] ?? 1)
              onDelta?.({ ...delta, text: delta.text.slice(at, end) })
              at = end
            }
          }
          return session.turn(transcript, constants, { ...options, ...(onDelta && { onDelta: pieces }) })
        },
      }
    },
  }
}

/** The texts of deltas, joined by part. */
function arrived(events: readonly StreamEvent[]): string[] {
  const parts = new Map<string, string>()
  for (const event of events) {
    if (event.kind !== 'text_delta' && event.kind !== 'reasoning_delta' && event.kind !== 'tool_input_delta') continue
    const key = `${event.kind} ${'partId' in event ? event.partId : event.callId}`
    parts.set(key, (parts.get(key) ?? '') + event.text)
  }
  return [...parts.values()]
}

const words = fc.array(fc.constantFrom('Use ', KEY, 's', 'sk', 'sk-', ' now. ', '"', '\\', 'ä', '\n'), { maxLength: 6 })
const cuts = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 4 })

test('a key is seen by no reader, wherever the stream is cut; the log, the model and the state have it', async () => {
  await fc.assert(
    fc.asyncProperty(words, cuts, async (some, lengths) => {
      const said = `It is ${some.join('')}${KEY}.`
      const log = memoryLog()
      const traced: RunEvent[] = []
      const tracing = [{ startRun: () => ({ event: (event: RunEvent) => void traced.push(event) }) }]
      const model = new ScriptedModel().calls('look', { said }, { text: said, reasoning: said }).says(said)
      const look = tool('look', (args) => args['said'])
      const harness = harnessOf({ model: inPieces(model, lengths), tools: [look], use: [masking], log, tracing })
      const stream = harness.stream('Go.')
      const events = await eventsOf(stream)
      const { resumeState, ...result } = await stream.result
      const followed = await collect(harness.follow(result.runId))
      expect(JSON.stringify([events, traced, result, followed])).not.toContain('SECRET1')
      const shown = said.replaceAll(/sk-[A-Z0-9]{4,}/g, '[key]')
      expect(arrived(events)).toEqual([shown, shown, JSON.stringify({ said: shown }), shown])
      expect([result.text, ofKind(events, 'model_message').at(-1)?.text]).toEqual([shown, shown])
      const last = events.at(-1)
      expect(last?.kind === 'run_completed' && last.result.text).toBe(shown)
      for (const kept of [await eventsOfRun(log, result.runId), model.requests.at(-1)?.entries, resumeState])
        expect(JSON.stringify(kept)).toContain(KEY)
    }),
    { numRuns: 25 },
  )
})

test('a key that lies across two parts of a reply, or is written with escapes, is not shown either', async () => {
  const parts = [
    { type: 'text' as const, text: 'Use sk-SE' },
    { type: 'text' as const, text: 'CRET1 now.' },
  ]
  const escaped = String.raw`{"key":"sk-\u0053ECRET1"}`
  const model = new ScriptedModel().replies({ calls: [{ name: 'look', arguments: escaped }] })
  const log = memoryLog()
  const harness = harnessOf({ model: model.replies({ parts }), tools: [tool('look')], use: [masking], log })
  const stream = harness.stream('Go.')
  const events = await eventsOf(stream)
  expect(ofKind(events, 'tool_call_started')[0]?.arguments).toBe('{"key":"[key]"}')
  const { transcript, text } = await stream.result
  const last = transcript.at(-1)
  expect([text, last?.role === 'assistant' && textOf(last.parts)]).toEqual(['Use [key] now.', 'Use [key] now.'])
  expect(ofKind(events, 'model_message').at(-1)?.text).toBe('Use [key] now.')
})

test('a structured answer arrives from what readers may see', async () => {
  const model = new ScriptedModel().answers({ key: KEY, others: [KEY, 'sk'] })
  const outputType = z.object({ key: z.string(), others: z.array(z.string()) })
  const stream = harnessOf({ model: inPieces(model, [1]), outputType, use: [masking] }).stream('Go.')
  const events = await eventsOf(stream)
  expect(JSON.stringify(events)).not.toContain('SECRET')
  const answer = { key: '[key]', others: ['[key]', 'sk'] }
  expect(ofKind(events, 'output_delta').at(-1)?.output).toEqual(answer)
  expect((await stream.result).output).toEqual(answer)
})

test('an answer that no longer fits its schema as readers see it is blocked', async () => {
  const outputType = z.object({ key: z.string().startsWith('sk-') })
  const harness = harnessOf({ model: new ScriptedModel().answers({ key: KEY }), outputType, use: [masking] })
  const { code, message, run } = await failureOf(harness.run('Go.'))
  expect([code, message.includes('SECRET'), run.usage.modelRequests]).toEqual(['guard_blocked', false, 1])
})

/** Blocks replies with the word `bomb`. */
const blocking = defineExtension({
  name: 'blocking',
  output() {
    let seen = ''
    return {
      text(piece) {
        seen += piece
        if (seen.includes('bomb')) throw new HarnessError('guard_blocked', 'Not about that.')
        return piece
      },
      end: () => '',
    }
  },
})

test.each([true, false])(
  'a blocked reply is stored with its usage, shown to nobody, and not in the next run: deltas %s',
  async (deltas) => {
    const log = memoryLog()
    const model = new ScriptedModel().says('A bomb is made of').says('Hello.')
    const traced: RunEvent[] = []
    const tracing = [{ startRun: () => ({ event: (event: RunEvent) => void traced.push(event) }) }]
    const harness = harnessOf({ model: inPieces(model, [3]), use: [blocking], log, tracing })
    const { events, thrown } = await told(harness.stream('Go.', { runId: 'run_1', deltas }))
    const { code, run } = thrown as HarnessError
    expect([code, run?.usage.modelRequests, run?.usage.outputTokens]).toEqual(['guard_blocked', 1, 5])
    expect(JSON.stringify([events.filter(({ durable }) => durable), traced, run])).not.toContain('bomb')
    expect(ofKind(events, 'model_message')).toMatchObject([
      { blocked: 'Not about that.', entry: { parts: [] }, text: '' },
    ])
    if (deltas) expect(events.findLast(({ durable }) => !durable)?.kind).toBe('deltas_withdrawn')
    const stored = ofKind(await eventsOfRun(log, 'run_1'), 'model_message')
    expect(stored).toMatchObject([{ blocked: 'Not about that.', entry: { usage: { outputTokens: 5 } } }])
    expect(JSON.stringify(stored)).toContain('A bomb is made of')
    // Also for a harness that has no filter.
    const other = harnessOf({ model, log })
    expect(JSON.stringify(await collect(other.follow('run_1')))).not.toContain('bomb')
    await other.run('And now?', { history: { runId: 'run_1' } })
    expect(JSON.stringify(model.requests.at(-1)?.entries)).not.toContain('bomb')
  },
)

test('a run whose reply was blocked fails again when it is recovered, and asks anew when it is retried', async () => {
  const log = memoryLog()
  const model = new ScriptedModel().says('A bomb.').says('A cake.')
  const harness = harnessOf({ model, use: [blocking], log })
  await failureOf(harness.run('Go.', { runId: 'run_1' }))
  expect((await failureOf(harness.recover('run_1'))).code).toBe('guard_blocked')
  expect((await harness.retry('run_1')).text).toBe('A cake.')
  expect(JSON.stringify(model.requests.at(-1)?.entries)).toContain('Not about that.')
  expect(JSON.stringify(model.requests.at(-1)?.entries)).not.toContain('bomb')
})

test('a filter that throws a `ModelRetry` has the model asked again', async () => {
  const again: Extension = {
    name: 'again',
    output: () => ({
      text(piece) {
        if (piece.includes('bomb')) throw new ModelRetry('Speak of cakes.')
        return piece
      },
      end: () => '',
    }),
  }
  const model = new ScriptedModel().says('A bomb.').says('A cake.')
  const stream = harnessOf({ model, use: [again] }).stream('Go.')
  const events = await eventsOf(stream)
  expect([(await stream.result).text, JSON.stringify(events).includes('bomb')]).toEqual(['A cake.', false])
  expect(JSON.stringify(model.requests.at(-1)?.entries)).toContain('Speak of cakes.')
})

test.each<[string, Extension['output']]>([
  ['throws', () => ({ text: () => expect.fail(`Oh, ${KEY}`), end: () => '' })],
  ['returns no text', () => ({ text: () => 1 as never, end: () => '' })],
  ['answers later', () => ({ text: () => Promise.resolve('') as never, end: () => '' })],
  ['is no filter', () => null as never],
])('a filter that %s fails the run with `hook_failed`, and nothing of the reply is shown', async (_how, output) => {
  const harness = harnessOf({ model: new ScriptedModel().says(`It is ${KEY}.`), use: [{ name: 'broken', output }] })
  const { events, thrown } = await told(harness.stream('Go.'))
  expect((thrown as HarnessError).code).toBe('hook_failed')
  expect(JSON.stringify(events)).not.toContain('SECRET')
})

test('what is withheld is dropped when deltas are withdrawn', async () => {
  const model = new ScriptedModel().replies(({ options }) => {
    options.onDelta?.({ kind: 'text_delta', text: 'Old sk-SEC' })
    options.onRetry?.({ attempt: 1, delayMs: 0, reason: 'broken', status: null, withdrawn: true })
    return 'New sk'
  })
  const stream = harnessOf({ model, use: [masking] }).stream('Go.')
  const texts = ofKind(await eventsOf(stream), 'text_delta').map(({ text }) => text)
  expect(texts.join('|')).toMatch(/^Old \|New\|? \|sk$/)
})

test('child runs have the filter too; the run that started one reads what that one said', async () => {
  const model = playing({ go: [['delegate'], 'Done.'], a: [`${KEY}.`] })
  const harness = harnessOf({ model, tools: [delegateTool('delegate', { a: [] })], use: [masking] })
  const stream = harness.stream('go')
  const events = await eventsOf(stream)
  const { resumeState: _, ...result } = await stream.result
  expect(JSON.stringify([events, result])).not.toContain('SECRET')
  expect(JSON.stringify(model.requests.at(-1)?.entries)).toContain(KEY)
})

test('the message of an error, its cause and its report are filtered', async () => {
  const model = new ScriptedModel().replies({ text: `No: ${KEY}.`, finishReason: 'refusal', refusal: `No: ${KEY}.` })
  const { events, thrown } = await told(harnessOf({ model, use: [masking] }).stream('Go.'))
  const { code, message, cause, run } = thrown as HarnessError
  expect([code, message.includes('[key]')]).toEqual(['unexpected_model_behavior', true])
  const { resumeState: _, ...report } = run ?? {}
  expect(`${JSON.stringify([events, report])} ${message} ${String(cause)}`).not.toContain('SECRET')
})

test('several filters read one after the other, the outermost first; a run can have its own', async () => {
  const wrap = (name: string): Extension => ({
    name,
    forRun: () => ({ output: () => ({ text: (piece) => piece, end: () => `(${name})` }) }),
  })
  const stream = harnessOf({ model: new ScriptedModel().says('Hi'), use: [wrap('a'), wrap('b')] }).stream('Go.')
  await eventsOf(stream)
  expect((await stream.result).text).toBe('Hi(a)(b)')
  expect(maskedKeys().text('x', '1')).toBe('x')
})
