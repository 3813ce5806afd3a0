import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { Harness } from 'thinharness'
import { fallback } from 'thinharness/models'
import { anthropic } from 'thinharness/providers'
import { CERTIFICATE, KEY } from '../../support/certificate.js'
import { loopback, rawLoopback } from '../../support/loopback.js'
import { SocketStage } from '../openai/socket-stage.js'
import { errorOf, requestOf, transportTo } from '../support.js'

const TO = { path: '/answer', headers: {} }
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'

afterEach(() => void vi.unstubAllEnvs())

/** Resolves when the condition holds. */
async function until(holds: () => boolean): Promise<void> {
  await vi.waitUntil(holds, { timeout: 4_000, interval: 5 })
}

describe('a connection that was opened ahead', () => {
  test('is taken by the next request, and nothing was sent over it before', async () => {
    const sent: number[] = []
    await using server = await rawLoopback((socket) => {
      sent.push(0)
      socket.on('data', (bytes) => {
        sent[sent.length - 1] = bytes.length
        socket.write(OK)
      })
    })
    const transport = transportTo('default', server.url)
    await transport.connect?.(TO)
    await until(() => sent.length === 1)
    expect(sent).toEqual([0])
    for (let count = 0; count < 3; count++) expect(await transport.send(requestOf())).toEqual({})
    expect(sent).toHaveLength(1)
    expect(sent[0]).toBeGreaterThan(0)
  })

  test('is one, however often it is asked for, and none while another one is idle', async () => {
    await using server = await loopback((response) => response.end('{}'))
    const transport = transportTo('default', server.url)
    await transport.connect?.(TO)
    await transport.connect?.(TO)
    await transport.send(requestOf())
    await transport.connect?.(TO)
    await transport.send(requestOf())
    expect(server.received.map(({ connection }) => connection)).toEqual([0, 0])
    expect(server.connections.size).toBe(1)
  })

  test('goes to one of several requests at once', async () => {
    await using server = await loopback((response) => response.end('{}'))
    const transport = transportTo('default', server.url)
    await transport.connect?.(TO)
    await Promise.all([1, 2, 3].map(() => transport.send(requestOf())))
    expect(new Set(server.received.map(({ connection }) => connection)).size).toBe(3)
    expect(server.connections.size).toBe(3)
  })

  test('and closed by the server is no failure of the next request', async () => {
    const opened: Socket[] = []
    await using server = await rawLoopback((socket) => {
      opened.push(socket)
      socket.on('data', () => socket.write(OK))
    })
    const transport = transportTo('default', server.url)
    await transport.connect?.(TO)
    await until(() => opened.length === 1)
    opened[0]?.end()
    await until(() => server.connections.size === 0)
    expect(await transport.send(requestOf())).toEqual({})
    expect(opened).toHaveLength(2)
  })

  test('and reset when the request comes is retried at once, as a kept one', async () => {
    let count = 0
    await using server = await rawLoopback((socket) => {
      count += 1
      const isFirst = count === 1
      socket.on('data', () => (isFirst ? socket.resetAndDestroy() : socket.write(OK)))
    })
    const transport = transportTo('default', server.url)
    await transport.connect?.(TO)
    expect(await errorOf(transport.send(requestOf()))).toMatchObject({ retryable: true, retryAfterMs: 0 })
    expect(await transport.send(requestOf())).toEqual({})
  })

  test('has its TLS handshake behind it', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    let handshakes = 0
    const server = createTlsServer({ key: KEY, cert: CERTIFICATE }, (_request, response) => response.end('{}'))
    server.on('secureConnection', () => (handshakes += 1))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const transport = transportTo('default', `https://127.0.0.1:${(server.address() as AddressInfo).port}`)
    await transport.connect?.(TO)
    await until(() => handshakes === 1)
    expect(await transport.send(requestOf())).toEqual({})
    expect(handshakes).toBe(1)
    server.closeAllConnections()
    server.close()
  })

  test('is an error if it cannot be opened, and within the time for connections', async () => {
    const closed = await rawLoopback(() => undefined)
    await closed[Symbol.asyncDispose]()
    const refused = transportTo('default', closed.url)
    const error = await errorOf(refused.connect?.(TO) ?? Promise.resolve())
    expect(error).toMatchObject({ code: 'provider_error', failure: 'connection' })
  })
})

describe('harness.connect()', () => {
  const REPLY = {
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-5', stop_reason: 'end_turn' },
    ...{ content: [{ type: 'text', text: 'Hello.' }], usage: { input_tokens: 1, output_tokens: 1 } },
  }

  test('opens the connection of the model, and sends no request', async () => {
    await using server = await loopback((response) => response.end(JSON.stringify(REPLY)))
    await using harness = new Harness({ model: anthropic('claude-sonnet-5', { apiKey: 'k', baseUrl: server.url }) })
    await harness.connect()
    await until(() => server.connections.size === 1)
    expect(server.received).toEqual([])
    expect((await harness.run('Hello.')).text).toBe('Hello.')
    expect(server.received.map(({ connection }) => connection)).toEqual([0])
  })

  test('connects to all candidates of a model, and to those that there are', async () => {
    await using one = await loopback((response) => response.end(JSON.stringify(REPLY)))
    const gone = await rawLoopback(() => undefined)
    await gone[Symbol.asyncDispose]()
    await using two = await loopback((response) => response.end(JSON.stringify(REPLY)))
    const model = fallback(
      [one, gone, two].map(({ url }) => anthropic('claude-sonnet-5', { apiKey: 'k', baseUrl: url })),
    )
    await using harness = new Harness({ model })
    await harness.connect()
    await until(() => one.connections.size === 1 && two.connections.size === 1)
  })

  test('warns the next run if no connection could be opened', async () => {
    const gone = await rawLoopback(() => undefined)
    await gone[Symbol.asyncDispose]()
    const model = anthropic('claude-sonnet-5', { apiKey: 'k', baseUrl: gone.url, maxRetries: 0 })
    await using harness = new Harness({ model })
    await harness.connect()
    const warnings: string[] = []
    const stream = harness.stream('Hello.')
    const failure = await (async () => {
      for await (const event of stream) if (event.kind === 'warning') warnings.push(event.message)
    })().catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'provider_error', failure: 'connection' })
    expect(warnings).toEqual([
      expect.stringMatching(/^No connection to `anthropic:claude-sonnet-5` could be opened ahead: /),
    ])
  })

  test('without a key asks for it, and opens nothing', async () => {
    vi.stubEnv('ANTHROPIC_API_KEY', '')
    await using server = await loopback((response) => response.end('{}'))
    const harness = new Harness({ model: anthropic('claude-sonnet-5', { baseUrl: server.url }) })
    await expect(harness.connect()).rejects.toMatchObject({ code: 'missing_key' })
    expect(server.connections.size).toBe(0)
  })

  test('opens one WebSocket, which the first run takes', async () => {
    await using stage = await SocketStage.open(2)
    const harness = stage.harness()
    await harness.connect()
    await harness.connect()
    expect([stage.server.opened, stage.requests]).toEqual([1, []])
    expect((await harness.run('Go.')).text).toBe('Done.')
    expect(stage.server.opened).toBe(1)
    expect((await harness.run('Go.')).text).toBe('Done.')
    expect(stage.server.opened).toBe(2)
  })
})
