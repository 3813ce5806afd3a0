import { describe, expect, test, vi } from 'vitest'
import { chatServer } from './chat-server.js'
import { harnessOf } from './support.js'

/** In a process of its own (`vitest.config.ts`): models of a process share their connections, and the last that is closed ends them. */
describe('the connections of a harness', () => {
  test('HC-42 closing a harness closes the connections of a model that it created, once', async () => {
    await using server = await chatServer()
    const harness = harnessOf({ model: `local:tiny@${server.url}` })
    expect((await harness.run('Hi.')).text).toBe('Hello.')
    expect(server.connections).toBe(1)
    await harness.close()
    await vi.waitFor(() => expect(server.connections).toBe(0))
    await harness[Symbol.asyncDispose]()
  })

  test('HC-42 `connect` loads the parts that a run needs, opens one connection for the first request, and may be repeated', async () => {
    await using server = await chatServer()
    await using harness = harnessOf({ model: `local:tiny@${server.url}`, builtinTools: ['read'] })
    await Promise.all([harness.connect(), harness.connect()])
    await vi.waitFor(() => expect(server.connections).toBe(1))
    expect((await harness.run('Hi.')).text).toBe('Hello.')
    expect(server.connections).toBe(1)
  })

  test('a connection that was opened ahead is closed with the harness', async () => {
    await using server = await chatServer()
    const harness = harnessOf({ model: `local:tiny@${server.url}` })
    await harness.connect()
    await vi.waitFor(() => expect(server.connections).toBe(1))
    await harness.close()
    await vi.waitFor(() => expect(server.connections).toBe(0))
  })
})
