import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import { answer } from '../../../../examples/mcp/script.js'
import { serverEnvironment } from '#adapters/mcp/client/server-environment.js'
import { loadSdk } from '#adapters/mcp/sdk/load-sdk.js'
import type { McpServer } from '#adapters/mcp/index.js'
import { serverSettings } from '#adapters/mcp/client/server-options.js'
import { serverAt } from '#adapters/mcp/client/mcp-server.js'
import { call, contextOf, textOf, toolNamed, toolsOf } from '../support.js'

/** The example's server: a harness with the tool `stock`, served by a process of its own. */
const PROGRAM = fileURLToPath(new URL('../../../../.build/examples/mcp/server.js', import.meta.url))

function served(model: string, load = loadSdk): McpServer {
  const { execPath: command } = process
  return serverAt(
    {
      kind: 'stdio',
      command,
      args: [PROGRAM],
      env: serverEnvironment({ THINHARNESS_MODEL: model }),
      cwd: null,
      confine: null,
    },
    serverSettings({ id: 'served' }, { defaultId: '', reach: {} }),
    load,
  )
}

/** A provider that takes requests and never answers; resolves when its client has hung up. */
async function silentProvider(): Promise<
  AsyncDisposable & { model: string; asked: Promise<void>; left: Promise<void> }
> {
  const server = createServer()
  const asked = new Promise<void>((resolve) => void server.once('request', () => resolve()))
  const left = new Promise<void>((resolve) => {
    server.once('request', (_request, response) => void response.once('close', resolve))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    model: `local:silent@http://127.0.0.1:${port}/v1`,
    asked,
    left,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

describe.each([
  ['the newest revision', async () => loadSdk()],
  ['an older revision', async () => loadSdk('legacy')],
])('a harness served over stdio, to a client of %s', (_era, load) => {
  test('it offers `run` and the chosen tools, reports progress, and answers', async () => {
    await using provider = await scriptedProvider()
    provider.always(answer)
    await using server = served(`local:scripted@${provider.url.chat}`, load)
    const heard: unknown[] = []

    expect((await toolsOf(server)).map(({ name, description }) => [name, description])).toEqual([
      ['run', 'Answers questions about current and future stock.'],
      ['stock', 'How many tins of a tea are in stock.'],
    ])
    expect(await textOf(call(server, 'stock', { tea: 'Oolong' }))).toBe('12 in stock.')
    const progress = (update: unknown): void => void heard.push(update)
    expect(await textOf(call(server, 'run', { prompt: 'When does Assam come?' }, { progress }))).toBe(
      'There is none. More arrives on Tuesday.',
    )
    expect(heard.slice(0, 3)).toEqual([
      { progress: 1, message: 'Asking the model' },
      { progress: 2, message: 'Calling stock' },
      { progress: 3, message: 'stock has ended' },
    ])
  })

  test('a run that its client cancels is cancelled, and the server continues', async () => {
    await using provider = await silentProvider()
    await using server = served(provider.model, load)
    const run = await toolNamed(server, 'run')
    const stop = new AbortController()

    const outcome = run.call({ prompt: 'Wait.' }, contextOf({ signal: stop.signal })).catch((error: unknown) => error)
    await provider.asked
    stop.abort(new Error('enough'))

    expect(await outcome).toMatchObject({ message: 'enough' })
    await provider.left
    expect(await textOf(call(server, 'stock', { tea: 'Assam' }))).toBe('0 in stock.')
  })
})

test('standard output holds only the protocol, and the process ends with its client, even during a run', async () => {
  await using provider = await silentProvider()
  const child = spawn(process.execPath, [PROGRAM], { env: serverEnvironment({ THINHARNESS_MODEL: provider.model }) })
  const heard = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (piece: Buffer) => (heard[name] += String(piece)))
  const ended = once(child, 'exit')
  const send = (message: object): void => void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const clientInfo = { name: 'by hand', version: '1' }

  send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } })
  send({ method: 'notifications/initialized' })
  send({ id: 2, method: 'tools/call', params: { name: 'stock', arguments: { tea: 'Assam' } } })
  send({ id: 3, method: 'tools/call', params: { name: 'run', arguments: { prompt: 'Wait.' } } })
  await provider.asked
  child.stdin.end()

  expect(await ended).toEqual([0, null])
  await provider.left
  const messages = heard.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as object)
  expect(messages).toMatchObject([
    { jsonrpc: '2.0', id: 1, result: { serverInfo: { name: 'warehouse' } } },
    { jsonrpc: '2.0', id: 2, result: { content: [{ type: 'text', text: '0 in stock.' }] } },
  ])
  expect(heard.stderr).toBe(`The warehouse uses the model ${provider.model}.\nStock request for Assam.\n`)
})
