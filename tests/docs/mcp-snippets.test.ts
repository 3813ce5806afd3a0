import { defineTool, Harness } from 'thinharness'
import type * as McpModule from 'thinharness/mcp'
import { mcpHttp, serveMcp } from 'thinharness/mcp'
import { ScriptedModel } from 'thinharness/testing'
import { expect, test, vi } from 'vitest'
import type { Login } from '../../docs/snippets/mcp/oauth.js'
import { guardedServer } from '../adapters/mcp/client/authorization-server.js'

test('docs/mcp-authorization.md: a person logs in, and another process takes the callback and uses the server', async () => {
  const tools = ['list_issues', 'get_issue', 'delete_issue'].map((name) =>
    defineTool({ name, description: 'Works.', parameters: { type: 'object' }, handler: () => `Ran ${name}.` }),
  )
  await using inner = new Harness({ model: new ScriptedModel(), builtinTools: [] })
  await using serving = await serveMcp(inner, { transport: {}, tools })
  await using guarded = await guardedServer(serving.url ?? '')
  // The snippet, with the address of a server of this machine.
  vi.doMock('thinharness/mcp', async (original) => ({
    ...(await original<typeof McpModule>()),
    mcpHttp: (options: McpModule.McpHttpOptions) => mcpHttp({ ...options, url: guarded.url }),
  }))
  const { onCallback, trackerOf } = await import('../../docs/snippets/mcp/oauth.js')
  let login: Login = {}
  const store = {
    load: () => Promise.resolve(login),
    save: (change: Login) => Promise.resolve(void (login = { ...login, ...change })),
  }
  const pages: URL[] = []

  await using first = trackerOf(store, 'a random value', (page) => void pages.push(page))
  await expect(first.digests()).rejects.toThrow('requires authorization')
  await using waiting = new Harness({ model: new ScriptedModel(), builtinTools: [], mcpServers: [first] })
  await expect(waiting.run('List them.')).rejects.toThrow('requires authorization')
  expect(pages).toHaveLength(1)
  const back = (await fetch(pages[0]!, { redirect: 'manual' })).headers.get('location') ?? ''
  expect(back).toContain('https://shop.example.com/mcp/callback?')

  await using second = trackerOf(store, 'a random value', () => undefined)
  await expect(onCallback(second, back, 'of another session')).rejects.toThrow('This login was not begun here.')
  await onCallback(second, back, 'a random value')
  const model = new ScriptedModel().calls('list_issues').says('None.')
  await using harness = new Harness({ model, builtinTools: [], mcpServers: [second] })
  const { text, toolCallRecords } = await harness.run('List them.')
  expect([text, toolCallRecords[0]?.output]).toEqual(['None.', expect.stringContaining('Ran list_issues.')])
  expect(model.requests[0]?.constants.tools.map(({ name }) => name)).toEqual(['get_issue', 'list_issues'])

  // The tokens are in the store: another process needs no login, and an expired one is refreshed.
  guarded.revoke()
  await using third = trackerOf(store, 'another value', (page) => void pages.push(page))
  expect(Object.keys(await third.digests())).toHaveLength(2)
  expect(pages).toHaveLength(1)
  expect(guarded.journal).toEqual(['register', 'authorize read', 'token authorization_code', 'token refresh_token'])
})
