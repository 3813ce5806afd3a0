import { expect, test } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { Model, ModelSession, ModelTurn, TurnOptions } from 'thinharness'
import { anthropic, openai, openaiChat } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import { NO_TOKENS } from '#contracts/entry.js'
import { eventsIn } from '../../run/resume/pause-support.js'
import { temporaryFolder } from '../../support/folder.js'
import { failureOf, gate, harnessOf, kinds, ofKind, told, tool } from '../../harness/support.js'

const place = temporaryFolder()

type Run = Parameters<Model['openSession']>[0]

function reply(text: string): ModelTurn {
  const parts =
    text === 'look'
      ? ([{ type: 'tool_call', callId: 'c', name: 'look', arguments: '{}' }] as const)
      : ([{ type: 'text', text }] as const)
  const finishReason = text === 'look' ? 'tool_calls' : 'stop'
  return { entry: { role: 'assistant', parts, provider: 'own', model: 'm', finishReason, usage: NO_TOKENS } }
}

/** A model that answers by a function of the options of its turns. */
function modelOf(answer: (options: TurnOptions) => Promise<string> | string, open?: (run: Run) => void): Model {
  const turn: ModelSession['turn'] = async (_view, _constants, options) => reply(await answer(options))
  return {
    ...{ provider: 'own', id: 'm', capabilities: {} },
    openSession: (run) => {
      open?.(run)
      return { turn }
    },
  }
}

test('a model knows the run that its session is for, and the number of the turn', async () => {
  const [runs, turns]: [Run[], unknown[]] = [[], []]
  const model = modelOf(
    ({ turn = 0 }) => {
      turns.push(turn)
      return turn < 3 ? 'look' : 'Done.'
    },
    (run) => runs.push(run),
  )
  const harness = harnessOf({ model, tools: [tool('look')] })
  const { runId } = await harness.run('Go.', { metadata: { user: 'u' }, labels: { agent: 'sql' } })
  expect(runs).toEqual([{ runId, agentName: null, metadata: { user: 'u' }, labels: { agent: 'sql' }, purpose: 'main' }])
  expect(turns).toEqual([1, 2, 3])
})

test.each(['responses', 'chat', 'messages'] as const)(
  'a caller of a model decides that it repeats nothing (%s)',
  async (api) => {
    await using provider = await scriptedProvider()
    provider.fails(429, { headers: { 'retry-after': '0' } })
    const options = { apiKey: 'any', baseUrl: provider.url[api], maxRetries: 5 }
    const inner = { responses: openai, chat: openaiChat, messages: anthropic }[api]('gpt-5.5', options)
    const model: Model = {
      ...{ provider: inner.provider, id: inner.id, capabilities: inner.capabilities },
      openSession: (run) => {
        const session = inner.openSession(run)
        return { turn: (view, constants, given) => session.turn(view, constants, { ...given, retries: 0 }) }
      },
    }
    expect(await failureOf(harnessOf({ model }).run('Go.'))).toMatchObject({ failure: 'rate_limit', status: 429 })
    expect(provider.requests).toHaveLength(1)
  },
)

test('a reply from a cache of replies says so', async () => {
  const turn: ModelSession['turn'] = async () => ({ ...reply('Done.'), cached: true })
  const model: Model = { provider: 'own', id: 'm', capabilities: {}, openSession: () => ({ turn }) }
  const { events } = await told(harnessOf({ model }).stream('Go.'))
  expect(ofKind(events, 'model_message')).toMatchObject([{ cached: true }])
})

test('a request that waits tells the readers of the run, and is not stored', async () => {
  const log = memoryLog()
  const model = modelOf(({ waiting }) => {
    waiting?.({ reason: 'rate_limit', ms: 1200 })
    return 'Done.'
  })
  const stream = harnessOf({ model, log }).stream('Go.')
  const { events } = await told(stream)
  expect(ofKind(events, 'request_waiting')).toMatchObject([{ reason: 'rate_limit', ms: 1200, durable: false }])
  expect(kinds(await eventsIn(log, stream.runId))).not.toContain('request_waiting')
})

test('a request that was submitted is given back, once, to the process that recovers the run', async () => {
  const log = fileLog(`${place}/submitted`)
  const asked = gate()
  const submits = modelOf(async ({ submitted }) => {
    await submitted?.('batch_1')
    asked.open()
    return new Promise(() => undefined)
  })
  const left = harnessOf({ model: submits, tools: [tool('look')], log })
  const reading = told(left.stream('Go.', { runId: 'run_1' }))
  await asked.opened
  await left.close()
  const { events } = await reading
  expect(ofKind(events, 'request_submitted')).toMatchObject([{ provider: 'own', id: 'batch_1', durable: true }])
  const given: unknown[] = []
  const model = modelOf(({ resume }) => {
    given.push(resume)
    return given.length === 1 ? 'look' : 'Done.'
  })
  const next = harnessOf({ model, tools: [tool('look')], log })
  expect((await next.recover('run_1')).text).toBe('Done.')
  expect(given).toEqual([{ provider: 'own', id: 'batch_1' }, undefined])
  expect((await next.replay(await eventsIn(log, 'run_1'))).text).toBe('Done.')
})
