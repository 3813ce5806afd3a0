import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, ToolResult } from 'thinharness'
import type { ToolSpec } from 'thinharness'
import { fileTools } from 'thinharness/tools'
import { ScriptedModel } from 'thinharness/testing'
import { loadSdk } from '#adapters/mcp/sdk/load-sdk.js'
import { mcpHttp, serveMcp } from '#adapters/mcp/index.js'
import type { McpServer } from '#adapters/mcp/index.js'
import { serverSettings } from '#adapters/mcp/client/server-options.js'
import { serverAt } from '#adapters/mcp/client/mcp-server.js'
import { tool } from '../../../harness/support.js'
import { folderWith } from '../../../toolbox/support.js'
import { call, contextOf, textOf, toolNamed, toolsOf } from '../support.js'

const clock = defineTool({
  name: 'clock',
  description: 'Tells the time.',
  parameters: z.object({ zone: z.enum(['utc', 'local']) }),
  annotations: { readOnly: true },
  handler: ({ zone }) =>
    new ToolResult({ content: `noon ${zone}`, parts: [{ type: 'image', data: 'aWk=', mediaType: 'image/png' }] }),
})

const eras: [string, () => ReturnType<typeof loadSdk>][] = [
  ['the newest revision', async () => loadSdk()],
  ['an older revision', async () => loadSdk('legacy')],
]

describe.each(eras)('a harness served over HTTP, to a client of %s', (_era, load) => {
  const client = (url: string): McpServer =>
    serverAt(
      { kind: 'http', url: new URL(url), fetch, auth: null },
      serverSettings({ id: 'served' }, { defaultId: '', reach: {} }),
      load,
    )

  test('it runs, reports progress, and returns the answer', async () => {
    const model = new ScriptedModel().calls('clock', { zone: 'utc' }).says('It is noon.')
    await using harness = new Harness({ model, builtinTools: [], tools: [clock] })
    await using serving = await serveMcp(harness, { transport: {}, description: 'Knows the time.' })
    await using server = client(serving.url ?? '')
    const heard: unknown[] = []

    const answer = call(
      server,
      'run',
      { prompt: 'What time is it?' },
      { progress: (update) => void heard.push(update) },
    )

    expect(await textOf(answer)).toBe('It is noon.')
    expect(heard.slice(0, 2)).toEqual([
      { progress: 1, message: 'Asking the model' },
      { progress: 2, message: 'Calling clock' },
    ])
    expect(await toolNamed(server, 'run')).toMatchObject({ description: 'Knows the time.' })
  })

  test('chosen tools are offered too, with their schema, hints and images', async () => {
    await using harness = new Harness({ model: new ScriptedModel(), builtinTools: [] })
    await using serving = await serveMcp(harness, { transport: {}, tools: [clock] })
    await using server = client(serving.url ?? '')

    expect((await toolsOf(server)).map(({ name, annotations }) => [name, annotations])).toEqual([
      ['run', {}],
      ['clock', { readOnly: true }],
    ])
    expect(await call(server, 'clock', { zone: 'utc' })).toMatchObject({
      content: 'noon utc\n[image: image/png]',
      parts: [{ type: 'image', data: 'aWk=', mediaType: 'image/png' }],
    })
    expect(await call(server, 'clock', { zone: 'mars' })).toMatchObject({ kind: 'failed', errorType: 'MCPToolError' })
  })

  test('a run that its client cancels is cancelled', async () => {
    let harness = new Harness()
    let started = (): void => undefined
    const running = new Promise<void>((resolve) => (started = resolve))
    const cancelled = new Promise<void>((resolve) => {
      const wait = defineTool({
        name: 'wait',
        description: 'Waits.',
        parameters: z.object({}),
        handler: (_args, { signal }) =>
          new Promise((_, reject) => {
            started()
            signal.addEventListener('abort', () => {
              resolve()
              reject(new Error('stopped'))
            })
          }),
      })
      harness = new Harness({ model: new ScriptedModel().calls('wait', {}), builtinTools: [], tools: [wait] })
    })
    await using serving = await serveMcp(harness, { transport: {} })
    await using server = client(serving.url ?? '')
    const run = await toolNamed(server, 'run')
    const stop = new AbortController()

    const outcome = run.call({ prompt: 'Wait.' }, contextOf({ signal: stop.signal })).catch((error: unknown) => error)
    await running
    stop.abort(new Error('enough'))

    expect(await outcome).toMatchObject({ message: 'enough' })
    await cancelled
    await harness.close()
  })
})

test('the newest revision that both sides support is used', async () => {
  await using served = new Harness({ model: new ScriptedModel(), builtinTools: [] })
  await using serving = await serveMcp(served, { transport: {} })
  const sdk = await loadSdk()
  const nothing = (): undefined => undefined

  const connection = await sdk.open({
    endpoint: { kind: 'http', url: new URL(serving.url ?? ''), fetch, auth: null },
    connectMs: 5_000,
    asks: { elicit: null, sample: null, roots: null },
    onToolsChanged: nothing,
    onClosed: nothing,
    onStderr: nothing,
    onProblem: nothing,
  })

  expect(connection.protocolVersion).toBe('2026-07-28')
  await connection.close()
})

test('a chosen tool works in the root of the harness, within its time limit, and is not called if a person must approve', async () => {
  const root = await folderWith({ 'a.txt': 'in the root' })
  const called: unknown[] = []
  const drop = (name: string, requiresApproval: NonNullable<ToolSpec['requiresApproval']>): ToolSpec =>
    defineTool({
      name,
      description: 'Drops.',
      parameters: z.object({ all: z.boolean().default(false) }),
      requiresApproval,
      handler: (args) => void called.push([name, args]),
    })
  const slow = tool('slow', () => new Promise(() => undefined), { timeoutMs: 50 })
  const broken = (): never => {
    throw new Error('no rule')
  }
  const tools = [
    ...fileTools().slice(0, 1),
    drop('never', true),
    drop('ruled', ({ all }) => all === true),
    drop('broken', broken),
    slow,
  ]
  await using harness = new Harness({ model: new ScriptedModel(), root, builtinTools: [] })
  await using serving = await serveMcp(harness, { transport: {}, tools })
  await using server = mcpHttp({ url: serving.url ?? '' })
  const asked = 'This call requires an approval, which is not possible here. It was not executed.'

  expect(await textOf(call(server, 'read', { path: 'a.txt' }))).toContain('in the root')
  expect(await call(server, 'never')).toMatchObject({ kind: 'failed', content: asked })
  expect(await call(server, 'ruled', { all: true })).toMatchObject({ kind: 'failed', content: asked })
  expect(await call(server, 'broken')).toMatchObject({
    kind: 'failed',
    content: expect.stringContaining('no rule') as unknown,
  })
  expect(await call(server, 'slow')).toMatchObject({
    kind: 'failed',
    content: 'The tool was ended after 50 ms; whether it did its work is unknown.',
  })
  expect(called).toEqual([])
  await call(server, 'ruled')
  expect(called).toEqual([['ruled', { all: false }]])
})

test('a run that waits for a person is a clear error', async () => {
  const drop = defineTool({
    name: 'drop',
    description: 'Drops.',
    parameters: z.object({}),
    requiresApproval: true,
    handler: () => 'gone',
  })
  await using paused = new Harness({ model: new ScriptedModel().calls('drop', {}), builtinTools: [], tools: [drop] })
  await using serving = await serveMcp(paused, { transport: {} })
  await using server = mcpHttp({ url: serving.url ?? '' })

  expect(await call(server, 'run', { prompt: 'Drop it.' })).toMatchObject({
    kind: 'failed',
    content: 'The run is waiting for a person and has no answer yet (approval_required).',
  })
})

test('only clients with the token, the right host name and no foreign origin are served', async () => {
  await using guarded = new Harness({ model: new ScriptedModel(), builtinTools: [] })
  await using serving = await serveMcp(guarded, { transport: { token: 't0ken' } })
  const url = serving.url ?? ''
  const authorization = 'Bearer t0ken'
  const status = async (headers: Record<string, string>, at = url): Promise<number> =>
    (await fetch(at, { method: 'POST', headers, body: '{}' })).status
  await using server = mcpHttp({ url, headers: { authorization } })

  expect((await toolsOf(server)).map(({ name }) => name)).toEqual(['run'])
  expect(await status({})).toBe(401)
  expect(await status({ authorization: 'Bearer t0ke' })).toBe(401)
  expect(await status({ authorization, origin: 'https://evil.test' })).toBe(403)
  expect(await status({ authorization }, url.replace('/mcp', '/other'))).toBe(404)
})

test('a request over 10 MiB is rejected, and the next one is served', async () => {
  await using harness = new Harness({ model: new ScriptedModel(), builtinTools: [] })
  await using serving = await serveMcp(harness, { transport: {}, tools: [clock] })
  const url = serving.url ?? ''
  await using server = mcpHttp({ url })
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const status = async (nameChars: number): Promise<number | string> => {
    const clientInfo = { name: 'x'.repeat(nameChars), version: '1' }
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
    return fetch(url, { method: 'POST', headers, body }).then(
      (response) => response.status,
      () => 'cut off',
    )
  }

  expect(await status(1024 * 1024)).toBe(200)
  expect([400, 413, 'cut off']).toContain(await status(11 * 1024 * 1024))
  expect(await textOf(call(server, 'clock', { zone: 'utc' }))).toContain('noon utc')
})

test('a token of an OAuth provider goes with every request', async () => {
  await using guarded = new Harness({ model: new ScriptedModel(), builtinTools: [] })
  await using serving = await serveMcp(guarded, { transport: { token: 't0ken' } })
  const auth = {
    redirectUrl: undefined,
    clientMetadata: { redirect_uris: [] },
    clientInformation: () => undefined,
    tokens: () => ({ access_token: 't0ken', token_type: 'bearer' }),
  }
  await using server = mcpHttp({ url: serving.url ?? '', auth })

  expect((await toolsOf(server)).map(({ name }) => name)).toEqual(['run'])
})

test.each<[string, unknown, string]>([
  ['a tool called run', { transport: {}, tools: [{ ...clock, name: 'run' }] }, 'Two tools have the name `run`'],
  ['an address that others can reach, without a token', { transport: { host: '0.0.0.0' } }, 'Expected a `token`'],
  ['an unknown option', { transport: {}, port: 1 }, 'Unknown option of `serveMcp`: `port`.'],
  ['no transport', {}, 'Expected `transport` of `serveMcp`'],
])('%s is rejected', async (_name, options, message) => {
  await using refused = new Harness({ model: new ScriptedModel(), builtinTools: [] })

  await expect(serveMcp(refused, options as never)).rejects.toThrow(message)
})
