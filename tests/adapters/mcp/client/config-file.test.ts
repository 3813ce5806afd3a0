import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { loadMcpServers } from '#adapters/mcp/index.js'
import { interpolateVariables } from '#adapters/mcp/client/config-file.js'
import { textOf, toolsOf, contextOf } from '../support.js'
import { temporaryFolder } from '../../../support/folder.js'

let folder = ''

beforeEach(() => void (folder = temporaryFolder()))

async function file(name: string, content: unknown): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

test.each<[string, string, unknown, string[]]>([
  [
    'the shape that other tools write',
    '.mcp.json',
    {
      mcpServers: {
        a: { command: 'x', args: ['y'] },
        b: { type: 'http', url: 'https://mcp.test' },
        c: { type: 'sse', url: 'https://mcp.test/sse' },
      },
    },
    ['a', 'b', 'c'],
  ],
  ['a list under `servers`', 'c.json', { servers: [{ name: 'a', transport: 'stdio', command: ['x', 'y'] }] }, ['a']],
  ['a map under `servers`', 'c.json', { servers: { a: { url: 'https://mcp.test' } } }, ['a']],
  [
    'YAML under `mcp_servers`, with one that is off',
    'c.yaml',
    'mcp_servers:\n  a:\n    command: x\n    args: [y]\n    enabled: true\n  b:\n    command: z\n    enabled: false\n',
    ['a'],
  ],
])('%s is read', async (_name, name, content, ids) => {
  expect((await loadMcpServers(await file(name, content))).map(({ id }) => id)).toEqual(ids)
})

test.each<[string, unknown, RegExp]>([
  [
    'a variable that is not set',
    { mcpServers: { a: { command: 'x', env: { KEY: '${NOWHERE}' } } } },
    /server `a`: `env.KEY` names the variable `NOWHERE`, which is not set\.$/,
  ],
  [
    'an unknown field',
    { mcpServers: { a: { comand: 'x' } } },
    /server `a`: Unknown field of server `a`: `comand`\. Did you mean `command`\?$/,
  ],
  [
    'no command',
    { mcpServers: { a: {} } },
    /server `a`: Expected `command` of `mcpStdio` to be a string that is not empty, got nothing\.$/,
  ],
  [
    'a transport that there is not',
    { mcpServers: { a: { type: 'pigeon', url: 'x' } } },
    /Expected `type` to be `stdio`, `http` or `sse`, got "pigeon"\.$/,
  ],
  [
    'an address that is none',
    { mcpServers: { a: { url: 'ftp://x' } } },
    /server `a`: Expected `url` of `mcpHttp` to be an address/,
  ],
  ['no servers', { mcpservers: {} }, /Expected `.*` to hold `mcpServers`: an object of servers by name\.$/],
  ['a list without names', { servers: [{ command: 'x' }] }, /Expected server 1 of `.*` to have a `name`\.$/],
  ['no JSON', '{', /is broken: /],
])('%s is rejected with a clear error', async (_name, content, message) => {
  const path = await file('.mcp.json', content)

  await expect(loadMcpServers(path, { env: {} })).rejects.toMatchObject({
    code: 'invalid_options',
    message: expect.stringMatching(message) as unknown,
  })
})

test('a server of a file gets the variables named for it, and its tools have its name as prefix', async () => {
  const source = `
    process.stdin.on('data', (piece) => {
      for (const line of String(piece).split('\\n').filter(Boolean)) {
        const { id, method, params } = JSON.parse(line)
        const result = {
          initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } },
          'tools/list': { tools: [{ name: 'env', inputSchema: { type: 'object' } }] },
          'tools/call': { content: [{ type: 'text', text: process.env.TOKEN + ' ' + process.env.OTHER }] },
        }[method]
        if (id === undefined) continue
        console.log(JSON.stringify(result ? { jsonrpc: '2.0', id, result } : { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }))
      }
    })
    process.stdin.on('end', () => process.exit(0))`
  const entry = { command: process.execPath, args: ['-e', source], env: { TOKEN: 'Bearer ${KEY}-${REGION:-eu}' } }
  const [server] = await loadMcpServers(await file('.mcp.json', { mcpServers: { mine: entry } }), {
    env: { KEY: 'k', OTHER: 'o' },
  })
  if (server === undefined) throw new Error('no server')
  const [tool] = await toolsOf(server)

  expect(tool?.name).toBe('mine_env')
  expect(tool === undefined ? '' : await textOf(tool.call({}, contextOf()))).toBe('Bearer k-eu undefined')
  await server.close()
})

test.each([
  ['${A}', 'a'],
  ['<${A}${B:-b}>', '<ab>'],
  ['${EMPTY:-full}', 'full'],
  ['${EMPTY}', ''],
  ['$A $${A}', '$A $a'],
])('%s stands for %s', (text, expected) => {
  expect(interpolateVariables({ list: [text] }, { A: 'a', EMPTY: '' })).toEqual({ list: [expected] })
})
