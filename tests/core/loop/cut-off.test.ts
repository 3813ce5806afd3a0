import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { Harness, HarnessStream, Model, RunReport, StreamEvent } from 'thinharness'
import { anthropic, fromAiSdk, openai, openrouter } from 'thinharness/providers'
import { ScriptedModel, scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { FakeLanguageModel, finished } from '../../providers/ai-sdk/support.js'
import { failureOf, harnessOf, ofKind, tool, until } from '../../harness/support.js'
import { eventsIn } from '../../run/resume/pause-support.js'

const NEVER = new Promise<never>(() => undefined)
const WORDS = 'The first half of an answer, which is followed by the second half of that answer.'

/** Models over HTTP, by API. */
const MODELS: Readonly<Record<string, (provider: ScriptedProvider) => Model>> = {
  responses: ({ url }) => openai('gpt-5.5', { apiKey: 'any', baseUrl: url.responses, chain: true }),
  messages: ({ url }) => anthropic('claude-sonnet-5', { apiKey: 'any', baseUrl: url.messages }),
  chat: ({ url }) => openrouter('x/y', { apiKey: 'any', baseUrl: url.openrouter }),
}

/** A model that gives a part of its reply and then nothing more, whatever its signal says; then it is as scripted. */
function stuck(then = new ScriptedModel()): Model {
  const { provider, id, capabilities } = then
  let isFirst = true
  const openSession: Model['openSession'] = () => {
    if (!isFirst) return then.openSession()
    isFirst = false
    return {
      turn: (_transcript, _constants, { onDelta }) => {
        onDelta?.({ kind: 'reasoning_delta', text: 'Hm.' })
        onDelta?.({ kind: 'text_delta', text: 'Half of ' })
        onDelta?.({ kind: 'text_delta', text: 'it \ud83d' })
        onDelta?.({ kind: 'tool_input_delta', text: '{"pla', callId: 'call_1', toolName: 'look' })
        return NEVER
      },
    }
  }
  return { provider, id, capabilities, openSession }
}

/** The events of a stream that are read until it ends, however it ends. */
function read(stream: HarnessStream): StreamEvent[] {
  const events: StreamEvent[] = []
  const reading = async (): Promise<void> => {
    for await (const event of stream) events.push(event)
  }
  reading().catch(() => undefined)
  return events
}

function textIn(events: readonly StreamEvent[]): string {
  return ofKind(events, 'text_delta')
    .map(({ text }) => text)
    .join('')
}

/** Begins a run, and ends it by `stop` when some text has arrived. */
async function stopped(
  harness: Harness,
  stop: (stream: HarnessStream, controller: AbortController) => unknown,
): Promise<{ readonly run: RunReport; readonly events: readonly StreamEvent[] }> {
  const controller = new AbortController()
  const stream = harness.stream('Go.', { signal: controller.signal, runId: 'run_1' })
  const events = read(stream)
  await until(() => textIn(events) !== '')
  await stop(stream, controller)
  const { run } = await failureOf(stream.result)
  return { run, events }
}

describe('a reply that is cut off because its run is aborted', () => {
  test.each<[string, Parameters<typeof stopped>[1]]>([
    ['by its signal', (_stream, controller) => controller.abort()],
    ['by `stream.cancel()`', (stream) => stream.cancel()],
  ])('%s keeps its text, without calls and reasoning', async (_name, stop) => {
    const log = memoryLog()
    const harness = harnessOf({ model: stuck(), tools: [tool('look')], log })
    const { run } = await stopped(harness, stop)
    expect(run.stopReason).toBe('cancelled')
    expect(run.transcript).toMatchObject([
      { role: 'user' },
      { role: 'assistant', finishReason: 'cancelled', parts: [{ type: 'text', text: 'Half of it ' }] },
    ])
    expect(run.transcript).toHaveLength(2)
    expect(run.usage).toMatchObject({ modelRequests: 1, inputTokens: 0, outputRetries: 0 })
    const events = await eventsIn(log, 'run_1')
    expect(events.slice(-2)).toMatchObject([
      { kind: 'model_message', resolution: { kind: 'ask_again', reason: 'aborted' } },
      { kind: 'run_failed', code: 'cancelled' },
    ])
    expect((await failureOf(harness.replay(events))).run.transcript).toEqual(run.transcript)
  })

  test('by the limit of time or by the end of the harness keeps its text', async () => {
    const late = harnessOf({ model: stuck(), limits: { timeMs: 50 } })
    const error = await failureOf(late.stream('Go.').result)
    expect([error.code, error.run.transcript[1]]).toMatchObject(['limit_reached', { finishReason: 'cancelled' }])
    const closed = harnessOf({ model: stuck() })
    const { run } = await stopped(closed, () => closed.close())
    expect(run.transcript[1]).toMatchObject({ finishReason: 'cancelled' })
  })

  test('is in the conversation of a run that continues it by id, by state and by entries', async () => {
    for (const by of ['id', 'state', 'entries'] as const) {
      using then = new ScriptedModel().says('The other half.')
      const harness = harnessOf({ model: stuck(then), log: memoryLog() })
      const { run } = await stopped(harness, (stream) => stream.cancel())
      const history = { id: { runId: 'run_1' }, state: run.resumeState!, entries: run.transcript }[by]
      const result = await harness.run('Go on.', { history })
      expect(result.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
      expect(result.text).toBe('The other half.')
    }
  })

  test('is continued by `retry`, which tells the model', async () => {
    using then = new ScriptedModel().says('All of it.')
    const harness = harnessOf({ model: stuck(then), log: memoryLog() })
    await stopped(harness, (stream) => stream.cancel())
    const result = await harness.retry('run_1')
    expect(result.text).toBe('All of it.')
    expect(result.transcript).toMatchObject([
      { role: 'user' },
      { role: 'assistant', finishReason: 'cancelled' },
      {
        role: 'user',
        notice: true,
        content: [{ text: expect.stringMatching(/was cut off before its end/) as string }],
      },
      { role: 'assistant' },
    ])
    expect(result.usage.outputRetries).toBe(0)
  })

  test('is nothing if no text has arrived, or the request was not streamed', async () => {
    const model = new ScriptedModel().waits(NEVER).says('Never.')
    const controller = new AbortController()
    const running = failureOf(harnessOf({ model }).run('Go.', { signal: controller.signal }))
    await until(() => model.heard.length === 1)
    controller.abort()
    expect((await running).run).toMatchObject({ transcript: [{ role: 'user' }], usage: { modelRequests: 0 } })
  })

  test.each(Object.keys(MODELS))(
    'over HTTP its text and reported usage are kept, and the next request is accepted: %s',
    async (api) => {
      await using provider = await scriptedProvider()
      const reply = { text: WORDS, usage: { inputTokens: 70, outputTokens: 3 } }
      provider.breaks('idle', { after: 6, reply }).says('The end.')
      const harness = harnessOf({ model: MODELS[api]!(provider), log: memoryLog() })
      const { run, events } = await stopped(harness, (_stream, controller) => controller.abort())
      const [, partial] = run.transcript
      expect(partial).toMatchObject({ finishReason: 'cancelled', parts: [{ type: 'text', text: textIn(events) }] })
      expect(run.usage.inputTokens).toBe(api === 'messages' ? 70 : 0)
      const result = await harness.run('Go on.', { history: { runId: 'run_1' } })
      expect(result.text).toBe('The end.')
      expect(JSON.stringify(provider.requests[1]?.body)).toContain(JSON.stringify(textIn(events)).slice(1, -1))
    },
  )

  test('of a model of the AI SDK its text is kept, and the next request has it', async () => {
    const half = [{ type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: 'Half.' }, NEVER]
    const whole = [{ type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: 'Whole.' }, finished()]
    const model = new FakeLanguageModel([half, whole])
    const harness = harnessOf({ model: fromAiSdk(model), log: memoryLog() })
    const { run } = await stopped(harness, (_stream, controller) => controller.abort())
    expect(run.transcript[1]).toMatchObject({ finishReason: 'cancelled', parts: [{ type: 'text', text: 'Half.' }] })
    const stream = harness.stream('Go on.', { history: { runId: 'run_1' } })
    expect((await stream.result).text).toBe('Whole.')
    expect(JSON.stringify(model.calls[1])).toContain('Half.')
  })

  test('with a cost limit it costs what was reserved for it, also when the run is retried', async () => {
    using then = new ScriptedModel().says('All of it.')
    const prices = { models: { [then.id]: { inputPerMillion: 1, outputPerMillion: 1 } } }
    const harness = harnessOf({ model: stuck(then), log: memoryLog(), prices, limits: { costUsd: 1 } })
    const { run } = await stopped(harness, (stream) => stream.cancel())
    expect(run.usage.costUsd).toBeGreaterThan(0.01)
    const result = await harness.retry('run_1')
    expect(result.usage.costUsd).toBeGreaterThan(run.usage.costUsd!)
  })
})
