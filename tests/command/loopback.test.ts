import { request } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { CommandError } from '#command/exit-codes.js'
import { serveLoopback } from '#command/serve/loopback.js'
import type { Loopback, LoopbackOptions } from '#command/serve/loopback.js'

const open: Loopback[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()))
})

async function served(options: Partial<LoopbackOptions> = {}): Promise<Loopback> {
  const server = await serveLoopback({ handle: (_, path) => new Response(path), ...options })
  open.push(server)
  return server
}

/** `fetch` does not let a program choose `Host` and `Origin`. */
function ask(address: string, headers: Record<string, string> = {}): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(address, { headers }, (answer) => {
      let text = ''
      answer.on('data', (piece: Buffer) => (text += piece.toString()))
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
    })
    sent.on('error', reject)
    sent.end()
  })
}

describe('the server of this machine', () => {
  test('is reached by its address with the token, and by no other path', async () => {
    const { address, port } = await served()
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\da-f]{32}\/$/)
    await expect(ask(`${address}runs/1`)).resolves.toEqual({ status: 200, text: '/runs/1' })
    await expect(ask(`${address}?after=3`)).resolves.toEqual({ status: 200, text: '/' })
    for (const path of ['/', '/runs/1', `/${'0'.repeat(32)}/`, address.slice(0, -2)])
      await expect(ask(new URL(path, `http://127.0.0.1:${port}`).href)).resolves.toMatchObject({ status: 404 })
    const other = await served()
    expect(other.address).not.toBe(address)
  })

  test.each([
    ['another host', (port: number) => ({ host: `evil.example:${port}` })],
    ['another port of this machine', (port: number) => ({ host: `localhost:${port + 1}` })],
    ['a page of the web', () => ({ origin: 'https://evil.example' })],
    ['a page of another port', (port: number) => ({ origin: `http://127.0.0.1:${port + 1}` })],
    ['a file', () => ({ origin: 'null' })],
  ])('CL-18 answers 403 to %s, even with the token', async (_, headers) => {
    const { address, port } = await served()
    await expect(ask(address, headers(port))).resolves.toMatchObject({ status: 403 })
  })

  test('answers to localhost, and to its own page', async () => {
    const { address, port } = await served()
    const own = { host: `localhost:${port}`, origin: `http://localhost:${port}` }
    await expect(ask(address, own)).resolves.toMatchObject({ status: 200 })
  })

  test('without a token answers to any name, and to no page of another name', async () => {
    const { address, port } = await served({ token: null })
    expect(address).toBe(`http://127.0.0.1:${port}/`)
    await expect(ask(`${address}chat`, { host: 'agents.example' })).resolves.toEqual({ status: 200, text: '/chat' })
    const foreign = { host: 'agents.example', origin: 'https://evil.example' }
    await expect(ask(address, foreign)).resolves.toMatchObject({ status: 403 })
  })

  test('reads a body, streams an answer, and says 500 without a word of an error', async () => {
    const { address } = await served({
      handle: async (request, path) => {
        if (path === '/broken') throw new Error('secret')
        return new Response(ReadableStream.from([new TextEncoder().encode(await request.text())]))
      },
    })
    const answer = await fetch(address, { method: 'POST', body: 'Hello.' })
    await expect(answer.text()).resolves.toBe('Hello.')
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
    await expect(ask(`${address}broken`)).resolves.toEqual({ status: 500, text: '' })
  })

  test('tells the handler when a reader goes away, and ends open streams when it closes', async () => {
    let isLeft = (): void => undefined
    const left = new Promise<void>((resolve) => (isLeft = resolve))
    const server = await served({
      handle: (request) => {
        request.signal.addEventListener('abort', () => isLeft())
        return new Response(new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode('1')) }))
      },
    })
    const abort = new AbortController()
    const answer = await fetch(server.address, { signal: abort.signal })
    await answer.body?.getReader().read()
    abort.abort()
    await left
    const other = await fetch(server.address)
    await server.close()
    await expect(other.text()).rejects.toThrow()
  })

  test('says that a port is taken', async () => {
    const { port } = await served()
    await expect(served({ port })).rejects.toThrow(CommandError)
    await expect(served({ port })).rejects.toThrow(
      `Cannot listen on 127.0.0.1, port ${port}: another program listens there`,
    )
  })
})
