import { describe, expect, test } from 'vitest'
import { defineTool, Harness } from 'thinharness'
import type { RunEvent } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { loadSdk } from '#adapters/mcp/sdk/load-sdk.js'
import { mcpHttp, serveMcp } from '#adapters/mcp/index.js'
import type { McpAuthProvider, McpServer } from '#adapters/mcp/index.js'
import { serverFetch } from '#adapters/mcp/client/server-fetch.js'
import { serverSettings } from '#adapters/mcp/client/server-options.js'
import { serverAt } from '#adapters/mcp/client/mcp-server.js'
import { guardedServer } from './authorization-server.js'
import type { GuardedServer } from './authorization-server.js'
import { call, textOf, toolsOf } from '../support.js'

/** What a program keeps of an authorization, by the interface of the SDKs; `person` goes to the page and comes back. */
class Keys implements McpAuthProvider {
  readonly redirectUrl = 'http://127.0.0.1:9/callback'
  readonly clientMetadata = {
    client_name: 'tests',
    redirect_uris: [this.redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }
  #client: unknown
  #tokens: unknown
  #verifier = ''
  #page: URL | null = null
  #discovery: unknown

  clientInformation = (): unknown => this.#client
  saveClientInformation = (client: unknown): void => void (this.#client = client)
  tokens = (): unknown => this.#tokens
  saveTokens = (tokens: unknown): void => void (this.#tokens = tokens)
  codeVerifier = (): string => this.#verifier
  saveCodeVerifier = (verifier: string): void => void (this.#verifier = verifier)
  discoveryState = (): unknown => this.#discovery
  saveDiscoveryState = (state: unknown): void => void (this.#discovery = state)
  redirectToAuthorization = (page: URL): void => {
    this.times += 1
    this.#page = page
  }

  invalidateCredentials(scope: string): void {
    if (scope === 'all' || scope === 'client') this.#client = undefined
    if (scope === 'all' || scope === 'tokens') this.#tokens = undefined
    if (scope === 'all' || scope === 'discovery') this.#discovery = undefined
  }

  get wasSent(): boolean {
    return this.#page !== null
  }

  /** How often a person was sent to a page. */
  times = 0

  /** The parameters of the address that the person comes back to. */
  async person(): Promise<URLSearchParams> {
    if (this.#page === null) throw new Error('Nobody was sent to a page.')
    const answer = await fetch(this.#page, { redirect: 'manual' })
    this.#page = null
    return new URL(answer.headers.get('location') ?? '').searchParams
  }
}

const clock = defineTool({
  name: 'clock',
  description: 'Tells the time.',
  parameters: { type: 'object', properties: {} },
  handler: () => 'noon',
})

describe.each([
  ['the newest revision', async () => loadSdk()],
  ['an older revision', async () => loadSdk('legacy')],
] as const)('a server with OAuth, for a client of %s', (_era, load) => {
  interface Scene extends AsyncDisposable {
    readonly guarded: GuardedServer
    readonly keys: Keys
    readonly server: McpServer
    readonly authorized: () => Promise<void>
  }

  async function scene(): Promise<Scene> {
    const harness = new Harness({ model: new ScriptedModel(), builtinTools: [] })
    const serving = await serveMcp(harness, { transport: {}, tools: [clock] })
    const guarded = await guardedServer(serving.url ?? '')
    const keys = new Keys()
    const url = new URL(guarded.url)
    const server = serverAt(
      { kind: 'http', url, fetch: serverFetch(url, {}), auth: keys },
      serverSettings({ id: 'guarded', timeouts: { connectMs: 5_000, callMs: 5_000 } }, { defaultId: '', reach: {} }),
      load,
    )
    const authorized = async (): Promise<void> => {
      await expect(toolsOf(server)).rejects.toThrow('MCP server `guarded` requires authorization')
      await server.finishAuth(await keys.person())
    }
    const end = async (): Promise<void> => {
      await server.close()
      await guarded[Symbol.asyncDispose]()
      await serving.close()
      await harness.close()
    }
    return { guarded, keys, server, authorized, [Symbol.asyncDispose]: end }
  }

  test('it is discovered, registered with and authorized by a person, with PKCE; then its tools are available', async () => {
    await using stage = await scene()
    const { guarded, server, authorized } = stage

    await authorized()

    expect((await toolsOf(server)).map(({ name }) => name)).toEqual(['run', 'clock'])
    expect(await textOf(call(server, 'clock'))).toBe('noon')
    expect(guarded.journal).toEqual(['register', 'authorize read', 'token authorization_code'])
  })

  test('it is left out of a run until then, with a warning; no event holds a token', async () => {
    await using stage = await scene()
    const { guarded, keys, server } = stage
    const model = new ScriptedModel().says('Without.').calls('clock').says('With.')
    await using harness = new Harness({ model, builtinTools: [], mcpServers: [server] })
    const events: RunEvent[] = []
    const run = async (): Promise<string> => {
      const stream = harness.stream('What time is it?')
      for await (const event of stream) events.push(event)
      return (await stream.result).text
    }

    expect(await run()).toBe('Without.')
    await server.finishAuth(await keys.person())
    expect(await run()).toBe('With.')

    const warnings = events.flatMap((event) => (event.kind === 'warning' ? [event.message] : []))
    expect(warnings).toEqual([
      expect.stringContaining('`guarded` is left out: MCP server `guarded` requires authorization'),
    ])
    expect(model.requests.map(({ constants }) => constants.tools.length)).toEqual([0, 2, 2])
    expect(guarded.given).toHaveLength(2)
    for (const token of guarded.given) expect(JSON.stringify(events)).not.toContain(token)
  })

  test('an expired token is refreshed during a call, without asking anybody', async () => {
    await using stage = await scene()
    const { guarded, keys, server, authorized } = stage
    await authorized()
    await toolsOf(server)

    guarded.revoke()

    expect(await textOf(call(server, 'clock'))).toBe('noon')
    expect(guarded.journal.slice(3)).toEqual(['token refresh_token'])
    expect(keys.wasSent).toBe(false)
  })

  test('calls at the same time share one refresh, and all of them succeed', async () => {
    await using stage = await scene()
    const { guarded, keys, server, authorized } = stage
    await authorized()
    await toolsOf(server)

    guarded.revoke()
    const said = await Promise.all(Array.from({ length: 5 }, () => textOf(call(server, 'clock'))))

    expect(said).toEqual(['noon', 'noon', 'noon', 'noon', 'noon'])
    expect(guarded.journal.slice(3)).toEqual(['token refresh_token'])
    expect(keys.times).toBe(1)
  })

  test('a person is sent to the page once, however many calls are refused', async () => {
    await using stage = await scene()
    const { guarded, keys, server, authorized } = stage
    await authorized()
    await toolsOf(server)

    guarded.revoke({ refresh: true })
    await Promise.all(Array.from({ length: 5 }, () => call(server, 'clock')))
    await call(server, 'clock')

    expect(guarded.journal.slice(3)).toEqual(['token refresh_token refused'])
    expect(keys.times).toBe(2)
    await server.finishAuth(await keys.person())
    expect(await textOf(call(server, 'clock'))).toBe('noon')
  })

  test('tokens that another process has stored are taken, before a refresh and after one that was refused', async () => {
    await using stage = await scene()
    const { guarded, keys, server, authorized } = stage
    await authorized()
    await toolsOf(server)
    const old = keys.tokens()
    guarded.revoke()
    await call(server, 'clock')
    const fresh = keys.tokens()

    // The store still has the old ones when the request is made, and the new ones when the server has refused.
    let reads = 0
    keys.tokens = () => (reads++ === 0 ? old : fresh)
    expect(await textOf(call(server, 'clock'))).toBe('noon')
    reads = -3
    keys.tokens = () => (guarded.journal.some((line) => line.endsWith('refused')) ? fresh : old)
    expect(await textOf(call(server, 'clock'))).toBe('noon')

    expect(guarded.journal.slice(3)).toEqual(['token refresh_token', 'token refresh_token refused'])
    expect(keys.times).toBe(1)
  })

  test.each(['broken', 'half', 500, 502, 503, 429] as const)(
    'a refresh that fails (%s) deletes nothing and sends nobody anywhere; the next call works',
    async (how) => {
      await using stage = await scene()
      const { guarded, keys, server, authorized } = stage
      await authorized()
      await toolsOf(server)
      const before = keys.tokens()
      guarded.revoke()
      guarded.fail(how)

      const said = await textOf(call(server, 'clock'))

      expect(said).toMatch(/^Its authorization could not be renewed now: .*The call had no effect; try again\.$/s)
      expect([keys.tokens(), keys.times]).toEqual([before, 1])
      guarded.fail(null)
      expect(await textOf(call(server, 'clock'))).toBe('noon')
      expect(keys.times).toBe(1)
    },
  )

  test('if the token cannot be refreshed the call fails, and works again after a new authorization', async () => {
    await using stage = await scene()
    const { guarded, keys, server, authorized } = stage
    await authorized()
    const model = new ScriptedModel().calls('clock').says('Later then.').calls('clock').says('Noon.')
    await using harness = new Harness({ model, builtinTools: [], mcpServers: [server] })
    await harness.connect()

    guarded.revoke({ refresh: true })

    expect((await harness.run('What time is it?')).text).toBe('Later then.')
    expect(model.heard[1]).toMatchObject({
      outputs: [
        {
          ok: false,
          content: 'The server requires a person to authorize it again. The call had no effect.',
        },
      ],
    })
    expect(keys.wasSent).toBe(true)
    await server.finishAuth(await keys.person())
    expect((await harness.run('And now?')).text).toBe('Noon.')
    expect(model.heard[3]).toMatchObject({ outputs: [{ ok: true, content: 'noon' }] })
    expect(guarded.journal.slice(3)).toEqual([
      'token refresh_token refused',
      'authorize read',
      'token authorization_code',
    ])
  })

  test('a call that needs a wider scope fails, and succeeds once a person has granted it', async () => {
    await using stage = await scene()
    const { guarded, keys, server, authorized } = stage
    await authorized()
    await toolsOf(server)

    guarded.demand('write')

    const failure = { kind: 'failed', errorType: 'MCPError', retry: false }
    const content = expect.stringContaining('requires a person to authorize it again') as unknown
    const refused = await Promise.all([call(server, 'clock'), call(server, 'clock'), call(server, 'clock')])
    for (const each of refused) expect(each).toMatchObject({ ...failure, content })
    expect(keys.times).toBe(2)
    await server.finishAuth(await keys.person())
    expect(await textOf(call(server, 'clock'))).toBe('noon')
    expect(guarded.journal.slice(3)).toEqual(['authorize read write', 'token authorization_code'])
  })

  test('an invalid code is a clear error, and the right one still works', async () => {
    await using stage = await scene()
    const { keys, server, authorized } = stage
    await expect(toolsOf(server)).rejects.toThrow('requires authorization')

    await expect(server.finishAuth(new URLSearchParams({ code: 'guessed' }))).rejects.toMatchObject({
      name: 'HarnessError',
      message: expect.stringMatching(/^MCP server `guarded` could not be authorized: /) as unknown,
    })
    expect(keys.tokens()).toBeUndefined()
    await expect
      .poll(
        () =>
          authorized().then(
            () => true,
            () => false,
          ),
        { timeout: 20_000, interval: 100 },
      )
      .toBe(true)
    expect(await textOf(call(server, 'clock'))).toBe('noon')
  })
})

test.each([
  'http://169.254.169.254',
  'https://127.0.0.1:9',
  'https://10.0.0.1',
  'http://login.example.com',
  'https://[::1]',
])('a server on the internet cannot send the client to %s for its authorization', async (place) => {
  const asked: string[] = []
  const answer = (url: string): Response => {
    asked.push(url)
    if (url === 'https://93.184.216.34/mcp') {
      const where = `resource_metadata="${place}/secret"`
      return new Response(null, { status: 401, headers: { 'www-authenticate': `Bearer ${where}` } })
    }
    if (!url.includes('oauth-protected-resource')) return new Response(null, { status: 404 })
    return Response.json({ resource: 'https://93.184.216.34/mcp', authorization_servers: [place] })
  }
  const server = mcpHttp({
    id: 'led',
    url: 'https://93.184.216.34/mcp',
    auth: new Keys(),
    fetch: async (input) => answer(input instanceof Request ? input.url : String(input)),
  })

  await expect(toolsOf(server)).rejects.toThrow('could not be reached')

  expect(asked.filter((url) => url.startsWith(place))).toEqual([])
  await server.close()
})
