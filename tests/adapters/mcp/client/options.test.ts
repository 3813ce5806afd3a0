import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { serverEnvironment } from '#adapters/mcp/client/server-environment.js'
import { mcpHttp, mcpSse, mcpStdio } from '#adapters/mcp/index.js'
import { loadSdk } from '#adapters/mcp/sdk/load-sdk.js'
import { serverFetch } from '#adapters/mcp/client/server-fetch.js'
import { toolsOf } from '../support.js'

test('MC-40 server objects can be created without an SDK, and connecting without one names the package to install', async () => {
  const missing = async (): Promise<never> => {
    throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
  }

  await expect(loadSdk('auto', missing)).rejects.toMatchObject({
    code: 'missing_dependency',
    message: expect.stringContaining('npm install @modelcontextprotocol/client') as unknown,
  })
  await expect(loadSdk('auto', async () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
})

test.each([
  ['/opt/notes/server', ['--api-key=sk-secret'], 'server'],
  ['node', ['server.js', 'sk-secret'], 'server.js'],
  ['node', ['--enable-source-maps', '/srv/weather/dist/index.js', '--key', 'sk-secret'], 'weather/index.js'],
  ['node', ['../mail/build/index.js'], 'mail/index.js'],
  ['python3', ['C:\\tools\\notes\\main.py'], 'notes/main.py'],
  ['node', ['-e', 'sk-secret'], 'node'],
  ['deno', ['run', 'https://user:sk-secret@git.test/notes.ts'], 'deno'],
  ['node', ['--key=sk-secret.js'], 'node'],
  ['npx', ['-y', '@scope/notes@1.2.3', 'sk-secret'], '@scope/notes'],
  ['npx.cmd', ['notes'], 'notes'],
  ['npx', ['--token', 'sk-secret', 'notes'], 'npx'],
  ['npx', ['-y', 'git+https://user:sk-secret@git.test/notes'], 'npx'],
  ['npx', [], 'npx'],
  ['pnpm', ['dlx', 'notes'], 'notes'],
  ['pnpm', ['run', 'sk-secret'], 'pnpm'],
  ['uvx', ['notes', '--key', 'sk-secret'], 'notes'],
])(
  'MC-41 a server without `id` is named after its package or program, never its arguments: %s %j',
  (command, args, id) => {
    expect(mcpStdio({ command, args }).id).toBe(id)
  },
)

test('servers without `id` that run the same file in different folders have different names', () => {
  const ids = ['/srv/weather', '/srv/mail'].map((cwd) => mcpStdio({ command: 'node', args: ['server.js'], cwd }).id)
  expect(ids).toEqual(['weather/server.js', 'mail/server.js'])
})

test('an address without `id` gives its name without its query and its password', () => {
  expect(mcpHttp({ url: 'https://ann:secret@mcp.test/a' }).id).toBe('https://mcp.test/a')
  expect(mcpHttp({ url: 'https://mcp.test/a?key=secret' }).id).toBe('https://mcp.test/a')
  expect(mcpSse({ url: new URL('https://mcp.test/sse'), required: true })).toMatchObject({
    id: 'https://mcp.test/sse',
    required: true,
  })
})

test.each<[string, () => unknown, string]>([
  [
    'an unknown option',
    () => mcpStdio({ command: 'x', toolprefix: 'y' } as never),
    'Unknown option of `mcpStdio`: `toolprefix`. Did you mean `toolPrefix`?',
  ],
  [
    'a key that is not there',
    () => mcpStdio({ command: 'x', env: { KEY: undefined } as never }),
    'Expected `env.KEY` of `mcpStdio` to be a string, got nothing.',
  ],
  [
    'no command',
    () => mcpStdio({ command: '' }),
    'Expected `command` of `mcpStdio` to be a string that is not empty, got an empty string.',
  ],
  [
    'no address',
    () => mcpHttp({ url: 'secret' }),
    'Expected `url` of `mcpHttp` to be an address that begins with `http://` or `https://`, got something else.',
  ],
  [
    'a wrong timeout',
    () => mcpHttp({ url: 'http://x', timeouts: { callMs: 0 } }),
    'Expected `timeouts.callMs` of `mcpHttp` to be a whole number from 1 to 2147483647, got `0`.',
  ],
  [
    'sampling by nobody',
    () => mcpHttp({ url: 'http://x', sampling: 'yes' as never }),
    'Expected `sampling` of `mcpHttp` to be one of `true`, `ask` or a function, got `yes`.',
  ],
  [
    'an offer that there is not',
    () => mcpHttp({ url: 'http://x', offer: ['roots' as never] }),
    'Expected `offer[0]` of `mcpHttp` to be one of `tools`, `resources`, `prompts`, got `roots`.',
  ],
])('%s is rejected when the server is created', (_name, make, message) => {
  expect(make).toThrow(message)
})

test('a server process inherits only the variables that every program needs', () => {
  const host = { PATH: '/bin', OPENAI_API_KEY: 'secret', LC_ALL: 'C', TMPDIR: '/tmp', SHELL: '() { :; }' }

  expect(serverEnvironment({ MINE: 'yes', PATH: '/mine' }, host)).toEqual({
    PATH: '/mine',
    LC_ALL: 'C',
    TMPDIR: '/tmp',
    MINE: 'yes',
  })
})

test('headers are sent to the server itself and to nobody else', async () => {
  const heard: IncomingHttpHeaders[] = []
  await using server = await listening((response, headers) => {
    heard.push(headers)
    response.end('ok')
  })
  const key = { 'x-key': 'secret' }

  await serverFetch(new URL(server.url), () => key)(server.url, { headers: { accept: 'a' } })
  await serverFetch(new URL('http://127.0.0.1:1'), key)(server.url)

  expect(heard.map((headers) => [headers['x-key'], headers.accept])).toEqual([
    ['secret', 'a'],
    [undefined, '*/*'],
  ])
})

test('MC-42 a user name and password in an address are sent as a header, and occur in no warning', async () => {
  const received: unknown[] = []
  await using http = await listening((response, headers) => {
    received.push(headers.authorization)
    response.writeHead(500).end('no')
  })
  await using server = mcpHttp({ url: http.url.replace('//', '//ann:p%40ss-word@') })

  const problem = await toolsOf(server).catch((error: unknown) => error)

  expect(received[0]).toBe(`Basic ${Buffer.from('ann:p@ss-word').toString('base64')}`)
  expect(String(problem)).not.toMatch(/p(@|%40)ss-word|ann/)
})

test('after a redirect they are sent within the same origin only', async () => {
  const heard: unknown[] = []
  await using other = await listening((response, headers) => {
    heard.push(['other', headers['x-key']])
    response.end('ok')
  })
  const redirects: Record<string, [number, string]> = {
    '/away': [307, other.url],
    '/moved': [308, '/here'],
    '/seen': [303, '/here'],
    '/loop': [307, '/loop'],
  }
  await using server = await listening((response, headers, path) => {
    const [status, location] = redirects[path] ?? [200, '']
    heard.push([path, headers['x-key']])
    response.writeHead(status, { location }).end('done')
  })
  const send = serverFetch(new URL(server.url), { 'x-key': 'secret' })
  const at = (path: string): string => new URL(path, server.url).href
  const post = { method: 'POST', body: '{}' }

  await expect(send(at('/away'), post)).rejects.toThrow(`It redirects to \`${other.url}\`: give that as its \`url\`.`)
  await expect(send(at('/seen'), post)).rejects.toThrow('It redirects to')
  await expect(send(at('/loop'), post)).rejects.toThrow('It redirects more than 5 times.')
  expect(await (await send(at('/moved'), post)).text()).toBe('done')
  expect(await (await send(at('/seen'))).text()).toBe('done')
  expect(heard.filter((each) => !JSON.stringify(each).includes('loop'))).toEqual([
    ['/away', 'secret'],
    ['/seen', 'secret'],
    ['/moved', 'secret'],
    ['/here', 'secret'],
    ['/seen', 'secret'],
    ['/here', 'secret'],
  ])
})

test.each([
  ['application/json', [11], false],
  ['text/event-stream', [11], false],
  ['text/event-stream', [6, 6], true],
  ['application/json', [6, 6], false],
])('of %s, messages of %j MiB are let through: %s', async (type, sizes, passes) => {
  await using server = await listening((response) => {
    response.setHeader('content-type', type)
    for (const size of sizes) response.write(`data: ${'x'.repeat(size * 1024 * 1024)}\r\n\r\n`)
    response.end()
  })

  const body = serverFetch(new URL(server.url), {})(server.url).then((response) => response.text())

  if (passes) expect(await body).toHaveLength(12 * 1024 * 1024 + 20)
  else await expect(body).rejects.toThrow()
})

test('a server that does not exist is named, with the cause', async () => {
  await using server = mcpHttp({ id: 'gone', url: 'http://127.0.0.1:1/mcp' })

  await expect(toolsOf(server)).rejects.toThrow(/MCP server `gone` could not be reached: /)
})

async function listening(
  answer: (response: ServerResponse, headers: IncomingHttpHeaders, path: string) => void,
): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer((request, response) => answer(response, request.headers, request.url ?? ''))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
