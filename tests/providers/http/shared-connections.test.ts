import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { Harness, defineTool } from 'thinharness'
import type { Model, ToolSpec } from 'thinharness'
import { limited } from 'thinharness/models'
import { openai } from 'thinharness/providers'
import { loopback } from '../../support/loopback.js'

const RUNS = 50
const USAGE = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }
const CALL = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'pay', arguments: '{}' }
const SAID = { type: 'message', id: 'm_1', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] }

function reply(response: ServerResponse, output: object): void {
  const whole = { id: 'r_1', object: 'response', status: 'completed', model: 'm', output: [output], usage: USAGE }
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole))
}

/** Answers like a model that calls the tool once. */
function play(response: ServerResponse, { body }: { readonly body: string }): void {
  reply(response, body.includes('function_call_output') ? SAID : CALL)
}

function payTool(handler: () => string | Promise<string>, requiresApproval = false): ToolSpec {
  return defineTool({
    ...{ name: 'pay', description: 'Pays.', requiresApproval, handler },
    parameters: { type: 'object', properties: {}, additionalProperties: false },
  })
}

function modelOf(server: { readonly url: string }): Model {
  return openai('m', { apiKey: 'k', baseUrl: server.url, maxRetries: 1 })
}

function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}

describe('runs that wait hold no connection', () => {
  test('for a person: 50 runs at once share a few, which are free, and no timer is left', async () => {
    await using server = await loopback(play)
    const model = limited(modelOf(server), { concurrency: 4 })
    const harness = new Harness({ model, tools: [payTool(() => 'Paid.', true)], builtinTools: [] })
    const before = timers()
    const results = await Promise.all(Array.from({ length: RUNS }, () => harness.run('Pay.')))
    expect(results.map(({ pending }) => pending.length)).toEqual(Array.from({ length: RUNS }, () => 1))
    expect(server.received).toHaveLength(RUNS)
    expect(server.connections.size).toBeLessThanOrEqual(4)
    // The free connections and the test runner have some; no run has one.
    expect(timers() - before).toBeLessThan(RUNS / 2)

    // All are free: the next runs take them.
    await Promise.all(Array.from({ length: 4 }, () => harness.run('Pay.')))
    expect(new Set(server.received.map(({ connection }) => connection)).size).toBeLessThanOrEqual(4)
    await harness.close()
  })

  test('for a tool: one connection serves all of them, one after the other', async () => {
    await using server = await loopback(play)
    let arrived = 0
    const release: (() => void)[] = []
    const tool = payTool(() => {
      arrived += 1
      return new Promise((resolve) => release.push(() => resolve('Paid.')))
    })
    const harness = new Harness({ model: modelOf(server), tools: [tool], builtinTools: [] })
    const runs: Promise<{ readonly text: string }>[] = []
    for (let count = 1; count <= RUNS; count++) {
      const entered = new Promise<void>((resolve) => {
        const look = (): void => {
          if (arrived === count) resolve()
          else setImmediate(look)
        }
        look()
      })
      runs.push(harness.run('Pay.'))
      await entered
    }
    expect(server.received.map(({ connection }) => connection)).toEqual(Array.from({ length: RUNS }, () => 0))
    for (const go of release) go()
    for (const { text } of await Promise.all(runs)) expect(text).toBe('Done.')
    await harness.close()
  })

  test('for the next attempt: another run takes the connection meanwhile', async () => {
    let refusals = 0
    await using server = await loopback((response, { body }) => {
      if (!body.includes('refuse')) return reply(response, SAID)
      refusals += 1
      response.writeHead(429, { 'retry-after': '60' }).end('{"error":{"message":"Slow down."}}')
    })
    const harness = new Harness({ model: modelOf(server), builtinTools: [] })
    const abort = new AbortController()
    const refused = async (): Promise<void> => {
      for await (const event of harness.stream('refuse', { signal: abort.signal })) {
        if (event.kind !== 'transport_retry') continue
        expect((await harness.run('Go.')).text).toBe('Done.')
        abort.abort()
      }
    }
    await expect(refused()).rejects.toThrow('The run was cancelled.')
    expect(refusals).toBe(1)
    expect(server.received.map(({ connection }) => connection)).toEqual([0, 0])
    await harness.close()
  })
})

test('a burst opens as many connections as it has requests on their way, and the next burst opens none', async () => {
  const held: (() => void)[] = []
  await using server = await loopback((response, request) => {
    held.push(() => play(response, request))
    // All are on their way before the first answer.
    if (held.length === RUNS) for (const answer of held.splice(0)) answer()
  })
  const harness = new Harness({ model: modelOf(server), tools: [payTool(() => 'Paid.')], builtinTools: [] })
  for (let burst = 0; burst < 2; burst++) {
    const results = await Promise.all(Array.from({ length: RUNS }, () => harness.run('Pay.')))
    for (const { text } of results) expect(text).toBe('Done.')
  }
  expect(server.received).toHaveLength(4 * RUNS)
  expect(new Set(server.received.map(({ connection }) => connection)).size).toBe(RUNS)
  await harness.close()
})
