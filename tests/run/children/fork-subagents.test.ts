import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { Model } from 'thinharness'
import { anthropic, openai, openaiCompatible } from 'thinharness/providers'
import { ScriptedModel, scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { subagent } from 'thinharness/tools'
import { envelopeIn } from './subagents-support.js'
import { harnessOf, tool } from '../../harness/support.js'

const FORK = subagent({ defaultAgent: { history: 'fork' } })
const noop = tool('noop')

/** A relay in front of a provider that keeps the bytes of every request. */
async function relay(origin: string): Promise<{ readonly url: string; readonly bodies: string[] }> {
  const bodies: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      bodies.push(body.toString())
      // `fetch` sets those of the connection itself.
      const own = ['host', 'content-length', 'connection', 'transfer-encoding']
      const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !own.includes(name)))
      fetch(`${origin}${request.url ?? ''}`, { method: 'POST', headers: headers as Record<string, string>, body }).then(
        async (answer) => {
          response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
          response.end(await answer.text())
        },
        () => response.destroy(),
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies }
}

const ADAPTERS: readonly (readonly [string, (url: string) => Model, keyof ScriptedProvider['url'], string])[] = [
  ['openai', (baseUrl) => openai('gpt-5.5', { apiKey: 'any', baseUrl }), 'responses', 'input'],
  ['openaiCompatible', (baseUrl) => openaiCompatible('local', { baseUrl }), 'chat', 'messages'],
  ['anthropic', (baseUrl) => anthropic('claude-sonnet-5', { apiKey: 'any', baseUrl }), 'messages', 'messages'],
]

describe('a forked subagent', () => {
  test.each(ADAPTERS)(
    'SB-131 its first request repeats the last one of its caller byte for byte, then continues (%s)',
    async (_, make, api, list) => {
      await using provider = await scriptedProvider()
      const { url, bodies } = await relay(new URL(provider.url[api]).origin)
      provider
        .calls('noop', { n: 1 })
        .callsAll([{ name: 'noop' }, { name: 'subagent', arguments: { task: 'The fork’s task.' } }], { text: 'Both.' })
        .says('Forked.')
        .says('Done.')
      const model = make(`${url}${new URL(provider.url[api]).pathname.replace(/\/$/, '')}`)
      const harness = harnessOf({ model, tools: [noop, FORK], instructions: 'Be brief.' })
      const result = await harness.run('Go.')
      await harness.close()
      expect(result.text).toBe('Done.')
      const [, parent, child] = bodies.map((body) => JSON.parse(body) as Record<string, unknown>)
      const { [list]: said, ...constants } = parent!
      const { [list]: saidByChild, ...childConstants } = child!
      expect(JSON.stringify(childConstants)).toBe(JSON.stringify(constants))
      expect(JSON.stringify((saidByChild as unknown[]).slice(0, (said as unknown[]).length))).toBe(JSON.stringify(said))
      // The very bytes: all of the caller's request up to the end of what was said.
      const end = bodies[1]!.indexOf(JSON.stringify(said)) + JSON.stringify(said).length - 1
      expect(bodies[2]!.slice(0, end)).toBe(bodies[1]!.slice(0, end))
      expect(bodies[2]).toContain('The fork’s task.')
    },
  )

  test('SB-132 it knows the conversation, and has a result for each call of the open batch, in any order of completion', async () => {
    const heard: string[] = []
    for (const slowness of [0, 20]) {
      const first = tool('first', () => new Promise((resolve) => setTimeout(resolve, slowness)))
      const model = new ScriptedModel()
        .callsAll([{ name: 'first' }, { name: 'subagent', arguments: { task: 'Your part.' } }])
        .says('Mine.')
        .says('Done.')
      const { toolCallRecords } = await harnessOf({ model, tools: [first, FORK] }).run('Go.')
      expect(envelopeIn(toolCallRecords[1])).toMatchObject({
        ok: true,
        content: 'Mine.',
        metadata: { tool_mode: 'fork' },
      })
      const [parent, child] = model.requests
      expect(child?.constants).toEqual(parent?.constants)
      heard.push(JSON.stringify([child?.heard, child?.entries.map(({ at: _, ...entry }) => entry)]))
    }
    expect(heard[0]).toBe(heard[1])
    expect(heard[0]).toContain('you are the copy')
    expect(heard[0]).toContain('leave this call alone')
    expect(heard[0]).toContain('Your part.')
  })

  test('it answers as its caller does, in the same output type', async () => {
    const outputType = z.object({ n: z.number() })
    const model = new ScriptedModel()
      .calls('subagent', { task: 'Count.' })
      .calls('final_result', { n: 2 })
      .calls('final_result', { n: 3 })
    const result = await harnessOf({ model, outputType, outputMode: 'tool', tools: [FORK] }).run('Go.')
    expect(envelopeIn(result.toolCallRecords[0])).toMatchObject({
      content: '{"n":2}',
      metadata: { structured_output: true },
    })
    expect(result.output).toEqual({ n: 3 })
  })

  test('it has the same tools and settings as its caller: others are rejected', async () => {
    const spawner = tool(
      'spawner',
      (_, context) => context.spawn({ prompt: 'x', history: 'fork', instructions: 'Other.' }).result,
    )
    const model = new ScriptedModel().calls('spawner').says('Done.')
    const { toolCallRecords } = await harnessOf({ model, tools: [spawner] }).run('Go.')
    expect(toolCallRecords[0]?.output).toContain('With `fork` a child has its parent')
    const wrong = harnessOf({
      subagents: [{ name: 'a', description: 'A.', history: 'fork', model: 'openai:gpt-5.5' }],
      model: new ScriptedModel().calls('subagent', { task: 'x', agent: 'a' }).says('Done.'),
    })
    const result = await wrong.run('Go.')
    expect(result.toolCallRecords[0]?.output).toContain('With `fork` a child has its parent')
  })
})
