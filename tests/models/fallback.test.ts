import { describe, expect, test } from 'vitest'
import { Harness, HarnessError, memoryLog } from 'thinharness'
import type { Model, ModelTurn, TurnOptions } from 'thinharness'
import { byComplexity, fallback, route } from 'thinharness/models'
import type { RouteRequest } from 'thinharness/models'
import { webSearch } from 'thinharness/providers'
import { ScriptedModel } from 'thinharness/testing'
import { collect } from '../support/collect.js'
import { eventsOf, failureOf, harnessOf, ofKind, tool } from '../harness/support.js'

/** A model of this name, which says `text` unless `fails` has an error for the request. */
function saying(
  id: string,
  text: string,
  fails: (HarnessError | null)[] = [],
  beside: Partial<Model> = {},
): Model & { asked: number } {
  const model = {
    ...{ provider: id, id, capabilities: {}, asked: 0 },
    ...beside,
    openSession: () => ({
      turn: (_view: unknown, _constants: unknown, { onDelta }: TurnOptions): Promise<ModelTurn> => {
        model.asked += 1
        const error = fails.shift() ?? null
        if (error !== null) return Promise.reject(error)
        onDelta?.({ kind: 'text_delta', text })
        const parts = [{ type: 'text', text }] as const
        const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
        return Promise.resolve({
          entry: { role: 'assistant', parts, provider: id, model: id, finishReason: 'stop', usage } as never,
        })
      },
    }),
  }
  return model
}

const failing = (failure: HarnessError['failure']): HarnessError =>
  new HarnessError('provider_error', 'No.', failure === undefined ? {} : { failure })

const DIRECT = { retries: 0, maxWaitMs: 0 }

describe('a fallback', () => {
  test('goes on with the next candidate in the middle of a batch, and stays with it in the run', async () => {
    const first = new ScriptedModel().calls('look').replies({ fault: 'error', error: failing('auth') })
    const second = saying('second', 'Seen.')
    const harness = harnessOf({ model: fallback([first, second], DIRECT), tools: [tool('look')] })
    const { text, transcript } = await harness.run('Go.')
    expect(text).toBe('Seen.')
    const answered = transcript.flatMap((entry) => (entry.role === 'assistant' ? [entry.model] : []))
    expect(answered).toEqual(['scripted-1', 'second'])
  })

  test.each(['invalid', 'content'] as const)('asks nobody else after `%s`', async (failure) => {
    const [first, second] = [saying('a', 'A', [failing(failure)]), saying('b', 'B')]
    const error = await failureOf(harnessOf({ model: fallback([first, second], DIRECT) }).run('Go.'))
    expect([error.code, error.failure, second.asked]).toEqual(['provider_error', failure, 0])
  })

  test('asks only candidates with a larger window when the conversation is too long for one', async () => {
    const window = (contextTokens: number): Partial<Model> => ({ capabilities: { contextTokens } })
    const small = saying('small', 'S', [failing('context')], window(1_000))
    const same = saying('same', 'S', [], window(1_000))
    const large = saying('large', 'L', [], window(100_000))
    const model = fallback([small, same, large], { ...DIRECT, window: 'first' })
    expect((await harnessOf({ model }).run('Go.')).text).toBe('L')
    expect([small.asked, same.asked]).toEqual([1, 0])
  })

  test('leaves out a candidate that cannot take the media of the conversation, if another one can', async () => {
    const texts = saying('texts', 'T', [], { capabilities: { inputs: [] } })
    const eyes = saying('eyes', 'E', [], { capabilities: { inputs: ['image'] } })
    const image = { type: 'image', mediaType: 'image/png', data: 'iVBORw0KGgo=' } as const
    const { text } = await harnessOf({ model: fallback([texts, eyes], DIRECT) }).run([image])
    expect([text, texts.asked]).toEqual(['E', 0])
  })

  test('leaves out a candidate that has not the hosted tools of the run, if another one has', async () => {
    const files = saying('files', 'F', [], { capabilities: { hostedTools: ['file_search'] } })
    const web = saying('web', 'W', [], { capabilities: { hostedTools: ['web_search'] } })
    const { text } = await harnessOf({ model: fallback([files, web], DIRECT), tools: [webSearch()] }).run('Go.')
    expect([text, files.asked]).toEqual(['W', 0])
  })

  test('an option that a candidate cannot take is left out for it, with one warning in a run', async () => {
    const efforts: unknown[] = []
    const listening = (id: string, reasoningEfforts: readonly 'low'[] | undefined, turns: Model): Model => ({
      ...{ provider: id, id, capabilities: { reasoningEfforts } },
      openSession: (run) => {
        const session = turns.openSession(run)
        return {
          turn: (view, constants, options) => {
            efforts.push([id, constants.settings.reasoningEffort])
            return session.turn(view, constants, options)
          },
        }
      },
    })
    const first = listening(
      'thinks',
      undefined,
      new ScriptedModel().calls('look').fails(failing('auth')).fails(failing('auth')),
    )
    const second = listening('answers', [], new ScriptedModel().calls('look').says('Done.'))
    const model = fallback([first, second], { ...DIRECT, recoverMs: 0 })
    const harness = harnessOf({ model, tools: [tool('look')], settings: { reasoningEffort: 'high' } })
    const warnings = ofKind(await eventsOf(harness.stream('Go.')), 'warning').map(({ message }) => message)
    expect(efforts).toEqual([
      ['thinks', 'high'],
      ['thinks', 'high'],
      ['answers', undefined],
      ['thinks', 'high'],
      ['answers', undefined],
    ])
    expect(warnings).toEqual([
      "The setting `reasoningEffort: 'high'` was left out for `answers:answers`, which is no reasoning model.",
    ])
  })

  test('names the first failure that `on` may decide about, with its candidate', async () => {
    const seen: unknown[] = []
    const [first, second] = [saying('a', 'A', [failing('auth')]), saying('b', 'B')]
    const on = (failure: string, candidate: object): 'fail' => {
      seen.push([failure, candidate])
      return 'fail'
    }
    await failureOf(harnessOf({ model: fallback([first, second], { ...DIRECT, on }) }).run('Go.'))
    expect(seen).toEqual([['auth', { provider: 'a', model: 'a' }]])
    expect(second.asked).toBe(0)
  })

  test('a candidate that failed often is not asked, also by other runs; with none left the error says when', async () => {
    const fails = Array.from({ length: 9 }, () => failing('auth'))
    const only = saying('a', 'A', fails)
    const harness = harnessOf({ model: fallback([only], { ...DIRECT, breaker: { failures: 2, openMs: 50_000 } }) })
    for (const round of [1, 2, 3]) {
      const error = await failureOf(harness.run(`Go ${round}.`))
      expect(error.failure).toBe(round < 3 ? 'auth' : 'overloaded')
      if (round === 3) expect(error.retryAfterMs).toBeGreaterThan(40_000)
    }
    expect(only.asked).toBe(2)
  })

  test('text of a candidate that failed after it began is withdrawn, and stands in no transcript', async () => {
    const broken: Model = {
      ...{ provider: 'a', id: 'a', capabilities: {} },
      openSession: () => ({
        turn: (_view, _constants, { onDelta }) => {
          onDelta?.({ kind: 'text_delta', text: 'Half an' })
          return Promise.reject(failing('server'))
        },
      }),
    }
    const log = memoryLog()
    const run = harnessOf({ model: fallback([broken, saying('b', 'Whole.')], DIRECT), log }).stream('Go.')
    const events = await collect(run)
    const shown = events.flatMap((event) =>
      event.kind === 'text_delta' ? [event.text] : event.kind === 'deltas_withdrawn' ? ['withdrawn'] : [],
    )
    expect(shown).toEqual(['Half an', 'withdrawn', 'Whole.'])
    const { text, runId } = await run.result
    expect(text).toBe('Whole.')
    expect(JSON.stringify(await collect(log.read({ kind: 'run', id: runId })))).not.toContain('Half an')
  })

  test('is the first of its candidates by name, and can what all of them can', () => {
    const one = saying('a', 'A', [], {
      capabilities: { supportsJsonSchemaOutput: true, contextTokens: 9, inputs: ['image'] },
    })
    const two = saying('b', 'B', [], { capabilities: { contextTokens: 5, inputs: ['file'], maxOutputTokens: 7 } })
    const model = fallback([one, fallback([two])])
    expect([model.provider, model.id, model.candidates?.map(({ id }) => id)]).toEqual(['a', 'a', ['a', 'b']])
    expect(model.capabilities).toMatchObject({
      supportsJsonSchemaOutput: false,
      contextTokens: 5,
      inputs: ['image', 'file'],
    })
  })

  test.each<[string, () => unknown, string]>([
    ['no candidate', () => fallback([]), 'at least one model, got an empty list'],
    ['a candidate that is none', () => fallback([7 as never]), 'Expected a candidate to be a model'],
    ['an unknown option', () => fallback(['openai:x'], { retrys: 1 } as never), 'Did you mean `retries`?'],
    ['an unknown provider', () => fallback(['opnai:x']), 'Did you mean `openai`?'],
    ['a route without models', () => route({}), 'at least one model'],
  ])('%s is refused', (_, make, message) => expect(make).toThrow(message))
})

describe('a route', () => {
  test('asks the model that the chooser names; an unknown key, and an error, mean `main`', async () => {
    const answers = async (choose: (request: RouteRequest) => string): Promise<string> => {
      const models = { cheap: saying('c', 'Cheap.'), main: saying('m', 'Main.') }
      return (await harnessOf({ model: route(models, choose) }).run('Go.')).text
    }
    expect(await answers(() => 'cheap')).toBe('Cheap.')
    expect(await answers(() => 'nobody')).toBe('Main.')
    expect(
      await answers(() => {
        throw new Error('Oops.')
      }),
    ).toBe('Main.')
  })

  test('the chooser learns the length of the newest turn', async () => {
    const tokens: number[] = []
    const model = route({ main: saying('m', 'Main.') }, (request) => {
      tokens.push(request.tokens)
      return byComplexity()(request)
    })
    const harness = new Harness({ model, builtinTools: [] })
    const first = await harness.run('word '.repeat(2_000))
    await harness.run('Hi.', { history: first.transcript })
    expect(tokens[0]).toBeGreaterThan(2_000)
    expect(tokens[1]).toBeLessThan(20)
  })

  test.each([
    [10, 'cheap'],
    [500, 'standard'],
    [1_500, 'premium'],
  ] as const)('%s tokens are %s', (tokens, key) => {
    const request = { purpose: 'main', tokens, turn: 1, hasTools: false, metadata: {}, labels: {} }
    expect(byComplexity()(request)).toBe(key)
  })
})
