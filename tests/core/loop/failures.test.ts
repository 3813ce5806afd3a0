import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { HarnessError, ModelRetry } from 'thinharness'
import type { HarnessOptions, Hook, Model } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, failureOf, harnessOf, tool } from '../../harness/support.js'

describe('the error of a failed run', () => {
  test.each<[string, Error, object]>([
    [
      'a provider error',
      new HarnessError('provider_error', 'Overloaded.', { status: 529, retryable: true, retryAfterMs: 7 }),
      { code: 'provider_error', message: 'Overloaded.', status: 529, retryable: true, retryAfterMs: 7 },
    ],
    [
      'unexpected behaviour',
      new HarnessError('unexpected_model_behavior', 'Odd.'),
      { code: 'unexpected_model_behavior', message: 'Odd.' },
    ],
    [
      'an error of the harness',
      new HarnessError('missing_key', 'No key.'),
      { code: 'missing_key', message: 'No key.' },
    ],
    ['a plain error', new TypeError('Broken.'), { code: 'error', message: 'The run failed: Broken.' }],
  ])('HC-03 a failure of a model is a `HarnessError` with code, cause and run: %s', async (_name, thrown, expected) => {
    using model = new ScriptedModel().calls('a').fails(thrown)
    const stream = harnessOf({ model, tools: [tool('a')] }).stream('Go.', { runId: 'run_f' })
    const events = await eventsOf(stream)
    const error = await failureOf(stream.result)
    expect(error).toMatchObject(expected)
    expect(error.cause).toBe(thrown)
    const { code } = error
    const stopReason = ['provider_error', 'unexpected_model_behavior'].includes(code) ? code : 'error'
    expect(events.at(-1)).toMatchObject({ kind: 'run_failed', code, stopReason, message: error.message })
    expect(error.run).toMatchObject({
      runId: 'run_f',
      stopReason,
      usage: { modelRequests: 1, toolCalls: 1 },
      toolCallRecords: [{ call: { id: 'call_1', name: 'a', arguments: '{}' } }],
      transcript: [{ role: 'user' }, { role: 'assistant' }, { role: 'tool' }],
      resumeState: { kind: 'run_state', runId: 'run_f', phase: { at: 'ended', stopReason } },
    })
    expect(error.run.responses).toHaveLength(1)
  })

  test('HC-03 a thrown value that is not an error is still the cause', async () => {
    const turn = async (): Promise<never> => {
      throw 'A text.' as unknown as Error
    }
    const model: Model = { provider: 'p', id: 'm', capabilities: {}, openSession: () => ({ turn }) }
    const error = await failureOf(harnessOf({ model }).run('Go.'))
    expect(error).toMatchObject({ code: 'error', message: 'The run failed: A text.', cause: 'A text.' })
  })

  test('HC-03 a model that returns nothing, or throws synchronously, fails its run with a clear error', async () => {
    const modelOf = (turn: () => unknown): Model => {
      return { provider: 'p', id: 'm', capabilities: {}, openSession: () => ({ turn: turn as never }) }
    }
    const nothing = await failureOf(harnessOf({ model: modelOf(() => Promise.resolve(undefined)) }).run('Go.'))
    expect(nothing).toMatchObject({
      code: 'provider_error',
      message: 'Model `p:m` returned an invalid turn: expected an object, got `undefined`.',
    })
    const price = { inputPerMillion: 1, outputPerMillion: 1 }
    const priced = { prices: { models: { 'p:m': price } }, limits: { costUsd: 1 } }
    const unpaid = modelOf(() => Promise.resolve({ entry: { role: 'assistant', parts: [], finishReason: 'stop' } }))
    expect(await failureOf(harnessOf({ model: unpaid, ...priced }).run('Go.'))).toMatchObject({
      code: 'provider_error',
      message: 'Model `p:m` returned an invalid turn: `entry.provider` must be a string, got `undefined`.',
    })
    const thrown = new RangeError('At once.')
    const throwing = modelOf(() => {
      throw thrown
    })
    expect(await failureOf(harnessOf({ model: throwing }).run('Go.'))).toMatchObject({ code: 'error', cause: thrown })
  })
})

describe('a run without a result', () => {
  const blocking: Hook = { event: 'user_prompt_submit', handler: () => ({ cancel: 'No.' }) }
  const picky = tool('picky', () => Promise.reject(new ModelRetry('Again.')))

  test.each<[string, HarnessOptions<unknown>, ScriptedModel, string]>([
    ['RS-15 a limit', { limits: { modelRequests: 1 } }, new ScriptedModel().calls('a'), 'limit_reached'],
    ['RS-16 a provider failure', {}, new ScriptedModel().calls('a').fails('Down.'), 'provider_error'],
    ['RS-17 a spent retry budget', { toolRetries: 0 }, new ScriptedModel().calls('picky'), 'tool_retries_exceeded'],
    ['RS-18 a hook that cancels', { hooks: [blocking] }, new ScriptedModel(), 'cancelled_by_hook'],
    [
      'RS-19 an invalid output',
      { outputType: z.object({ n: z.number() }), outputRetries: 0 },
      new ScriptedModel().calls('final_result', { n: 'x' }),
      'output_validation_failed',
    ],
  ])('%s gives none, but the work so far, closed so that it can be continued', async (_name, options, model, code) => {
    const error = await failureOf(harnessOf<unknown>({ model, tools: [tool('a'), picky], ...options }).run('Go.'))
    model.assertDone()
    expect(error).toMatchObject({
      code,
      run: { stopReason: code, resumeState: { phase: { at: 'ended', stopReason: code } } },
    })
    expect(error.run.transcript.at(-1)?.role).not.toBe('assistant')
  })
})
