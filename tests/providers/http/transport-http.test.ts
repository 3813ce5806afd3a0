import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { RequestGuard } from '#providers/http/request-guard.js'
import { timeLimitsOf } from '#providers/http/options.js'
import { loopback, rawLoopback } from '../../support/loopback.js'
import { CERTIFICATE, KEY } from '../../support/certificate.js'
import { errorOf, readStream, requestOf, transportTo } from '../support.js'

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'

afterEach(() => void vi.unstubAllEnvs())

describe('kept connections', () => {
  test('one connection serves request after request, of all models', async () => {
    await using server = await loopback((response, { headers }) => {
      response.end(headers.accept === 'text/event-stream' ? 'data: 1\n\ndata: [DONE]\n\n' : '{}')
    })
    for (let count = 0; count < 3; count++) {
      const transport = transportTo('default', server.url)
      await transport.send(requestOf())
      await readStream(transport.stream(requestOf()))
    }
    expect(server.received.map((request) => request.connection)).toEqual([0, 0, 0, 0, 0, 0])
  })

  test('an error of the provider does not close the connection', async () => {
    await using server = await loopback((response) => response.writeHead(429).end('{"error":"slow down"}'))
    const transport = transportTo('default', server.url)
    await errorOf(transport.send(requestOf()))
    await errorOf(transport.send(requestOf()))
    expect(server.received.map((request) => request.connection)).toEqual([0, 0])
  })

  test('a kept connection that the server has closed is retried at once, on a fresh one', async () => {
    const old = new Set<Socket>()
    let opened = 0
    await using server = await rawLoopback((socket) => {
      opened += 1
      socket.on('data', () => {
        if (old.has(socket)) socket.resetAndDestroy()
        else socket.write(OK)
      })
    })
    const transport = transportTo('default', server.url)
    await Promise.all([1, 2, 3].map(() => transport.send(requestOf())))
    for (const socket of server.connections) old.add(socket)
    expect(old.size).toBe(3)

    const error = await errorOf(transport.send(requestOf()))
    expect(error).toMatchObject({ code: 'provider_error', retryable: true, retryAfterMs: 0, status: undefined })
    expect(await transport.send(requestOf())).toEqual({})
    expect(opened).toBe(4)
  })

  test('PR-23 a kept connection that breaks in the middle of an answer is a failure, not retried as a closed one', async () => {
    let count = 0
    await using server = await rawLoopback((socket) => {
      socket.on('data', () => {
        count += 1
        if (count === 1) socket.write(OK)
        else socket.write('HTTP/1.1 200 OK\r\n', () => setTimeout(() => socket.resetAndDestroy(), 20))
      })
    })
    const transport = transportTo('default', server.url)
    await transport.send(requestOf())
    const error = await errorOf(transport.send(requestOf()))
    expect(error).toMatchObject({ code: 'provider_error', retryable: true, retryAfterMs: undefined })
    expect(count).toBe(2)
  })

  test('they do not keep the process alive', async () => {
    // The server has its own thread, so that only the client's handles are counted here.
    const code = `const { createServer } = require('node:http')
      const { parentPort } = require('node:worker_threads')
      const server = createServer((request, response) => { request.resume(); response.end('{}') })
      server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`
    const worker = new Worker(code, { eval: true })
    try {
      const [port] = (await once(worker, 'message')) as [number]
      const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
      const before = sockets()
      const transport = transportTo('default', `http://127.0.0.1:${port}`)
      await transport.send(requestOf())
      await vi.waitFor(() => expect(sockets()).toBe(before))
      await transport.close()
    } finally {
      await worker.terminate()
    }
  })

  test('closing the last user closes them; others lose nothing', async () => {
    // Other tests of this file have left users: a new copy of the module has none.
    vi.resetModules()
    const { httpExchange } = await import('#providers/http/node-exchange.js')
    await using server = await loopback((response) => response.end('{}'))
    const [first, second] = [httpExchange(), httpExchange()]
    const post = async (exchange: typeof first): Promise<void> => {
      const guard = new RequestGuard({ signal: new AbortController().signal }, timeLimitsOf())
      const answer = await exchange.post({ url: new URL(server.url), headers: {}, body: [] }, guard)
      while ((await answer.read()) !== null);
      guard.finish()
      guard.release()
    }
    for (const exchange of [first, second, second]) await post(exchange)
    await first.close()
    await first.close()
    await post(second)
    expect(server.received.map((request) => request.connection)).toEqual([0, 0, 0, 0])
    await second.close()
    await vi.waitFor(() => expect(server.connections.size).toBe(0))
  })

  test('200 requests at once each get their own answer', async () => {
    await using server = await loopback((response, { body }) => response.end(JSON.stringify({ echo: body })))
    const transport = transportTo('default', server.url)
    const numbers = Array.from({ length: 200 }, (_, number) => String(number))
    const replies = await Promise.all(numbers.map((number) => transport.send(requestOf(undefined, number))))
    expect(replies).toEqual(numbers.map((echo) => ({ echo })))
  })
})

test('a server that sends faster than it is read is slowed down, and resumes when it is read', async () => {
  const event = `data: "${'x'.repeat(65_536)}"\n\n`
  const all = 2000
  let written = 0
  await using server = await loopback((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const pour = (): void => {
      while (written < all && !response.destroyed) {
        written += 1
        if (!response.write(event)) return
      }
      response.end()
    }
    response.on('drain', pour)
    pour()
  })
  let read = 0
  for await (const chunks of transportTo('default', server.url).stream(requestOf())) {
    for (let before = -1; read === 0 && before < written;) {
      before = written
      await sleep(200)
    }
    if (read === 0) expect(written).toBeLessThan(all / 2)
    read += chunks.length
  }
  expect(read).toBe(all)
})

describe('TLS', () => {
  test('PR-23 an untrusted certificate is an error that is not retryable', async () => {
    const server = createTlsServer({ key: KEY, cert: CERTIFICATE }, (_request, response) => response.end('{}'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const error = await errorOf(transportTo('default', `https://127.0.0.1:${port}`).send(requestOf()))
    expect(error).toMatchObject({ code: 'provider_error', status: undefined, retryable: false })
    expect(error.message).toContain('SELF_SIGNED_CERT')

    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    expect(await transportTo('default', `https://127.0.0.1:${port}`).send(requestOf())).toEqual({})
    server.closeAllConnections()
    server.close()
  })

  test('a handshake that does not end counts as connecting', async () => {
    await using server = await rawLoopback(() => undefined)
    const url = server.url.replace('http:', 'https:')
    const error = await errorOf(transportTo('default', url, { connectMs: 80 }).send(requestOf()))
    expect(error).toMatchObject({
      message: 'No connection to the provider within 80 ms (`timeouts.connectMs`).',
      retryable: true,
    })
  })

  test('the time limit for connecting ends once connected', async () => {
    await using server = await loopback((response) => setTimeout(() => response.end('{}'), 900))
    const transport = transportTo('default', server.url, { connectMs: 700 })
    expect(await transport.send(requestOf())).toEqual({})
    // On the kept connection too.
    expect(await transport.send(requestOf())).toEqual({})
    expect(server.received.map((request) => request.connection)).toEqual([0, 0])
  })
})

describe('proxies', () => {
  /** A proxy that tunnels every request to `target`, and records the requested hosts. */
  async function proxyTo(target: string, asked: string[]): ReturnType<typeof rawLoopback> {
    return await rawLoopback((socket) => {
      socket.once('data', (head: Buffer) => {
        asked.push(head.toString().split('\r\n')[0] ?? '')
        const { hostname, port } = new URL(target)
        const tunnel = connect(Number(port), hostname, () => {
          socket.write('HTTP/1.1 200 OK\r\n\r\n')
          socket.pipe(tunnel).pipe(socket)
        })
        tunnel.on('error', () => socket.destroy())
      })
    })
  }

  test.each(['HTTP_PROXY', 'http_proxy'])('%s is used for a server elsewhere', async (name) => {
    const asked: string[] = []
    await using server = await loopback((response) => response.end('{"ok":1}'))
    await using proxy = await proxyTo(server.url, asked)
    vi.stubEnv(name, proxy.url)
    expect(await transportTo('default', 'http://model.test/v1').send(requestOf())).toEqual({ ok: 1 })
    expect(asked).toEqual(['CONNECT model.test:80 HTTP/1.1'])
    expect(server.received[0]).toMatchObject({ path: '/v1/answer', headers: { host: 'model.test' } })
  })

  test('NO_PROXY excepts a server', async () => {
    const asked: string[] = []
    await using server = await loopback((response) => response.end('{"ok":1}'))
    await using proxy = await proxyTo(server.url, asked)
    vi.stubEnv('HTTP_PROXY', proxy.url)
    vi.stubEnv('NO_PROXY', 'model.invalid')
    const error = await errorOf(transportTo('default', 'http://model.invalid/v1').send(requestOf()))
    expect([error.code, asked]).toEqual(['provider_error', []])
  })

  test('the local machine is connected directly', async () => {
    await using server = await loopback((response) => response.end('{"ok":1}'))
    vi.stubEnv('HTTP_PROXY', 'http://127.0.0.1:1')
    expect(await transportTo('default', server.url).send(requestOf())).toEqual({ ok: 1 })
  })

  test('an invalid proxy is reported without its value', async () => {
    vi.stubEnv('HTTP_PROXY', 'http://user:password-1@[not a host')
    const error = await errorOf(transportTo('default', 'http://model.test').send(requestOf()))
    expect([error.code, error.cause]).toEqual(['invalid_options', undefined])
    expect(error.message).toBe(
      'Expected `HTTPS_PROXY` and `HTTP_PROXY` to hold the URL of a proxy, such as `http://proxy:3128`.',
    )
  })

  test('a proxy that does not answer is within the time limits', async () => {
    await using proxy = await rawLoopback(() => undefined)
    vi.stubEnv('HTTP_PROXY', proxy.url)
    const transport = transportTo('default', 'http://model.test', { firstByteMs: 80 })
    expect((await errorOf(transport.send(requestOf()))).message).toContain('timeouts.firstByteMs')
  })
})
