import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { mkdir, readFile, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { callTool } from 'thinharness'
import type { JsonObject, ToolSpec } from 'thinharness'
import { bash, fetchUrl } from 'thinharness/tools'
import { loadSkills } from '#toolbox/skills/load-skills.js'
import { oddServer, toolsOf } from '../adapters/mcp/support.js'
import { argumentsOf, expectSound, INJECTIONS, malformedJson, NAUGHTY, naughtyText, SECRET } from './support.js'
import { temporaryFolder } from '../support/folder.js'
import { rounds, timeLimit } from '../support/length.js'

const folder = temporaryFolder()
let root = ''
let port = 0
const tools = new Map<string, ToolSpec>()
const closing: (() => unknown)[] = []

const SKILL = '---\nname: demo\ndescription: A demo.\n---\n\n# Demo\n'
const ECHO = `{
  'tools/list': () => ({ tools: [tool('echo', { inputSchema: {
    type: 'object',
    properties: { text: { type: 'string' }, path: { type: 'string' }, count: { type: 'integer' } },
    required: ['text'],
  } })] }),
  'tools/call': ({ arguments: args }) => text(args.text),
}`

/** What a hostile page may be. */
const PAGES: readonly [type: string, body: string | Buffer, status?: number, headers?: Record<string, string>][] = [
  ...INJECTIONS.map((text) => ['text/html', `<p>${text}</p><script>${text}</script>`] as [string, string]),
  ['text/html', '<div>'.repeat(20_000)],
  ['text/html; charset=utf-7', '+ADw-script+AD4-'],
  ['application/json', '{"a":'],
  ['application/pdf', '%PDF-1.7 no pdf'],
  ['text/plain', Buffer.from([0, 0xff, 0xfe, 0x80])],
  ['text/plain', 'no gzip', 200, { 'content-encoding': 'gzip' }],
  ['text/plain', '', 302, { location: '/1' }],
  ['text/plain', '', 302, { location: 'file:///etc/hostname' }],
  ['text/plain', '', 302, { location: 'http://other.test/' }],
  ['image/png', 'no image'],
  ['', 'no type'],
  ['text/plain', 'too short', 200, { 'content-length': '5000' }],
]

function answer(request: IncomingMessage, response: ServerResponse): void {
  const [type, body, status = 200, headers = {}] = PAGES[Number(request.url?.slice(1))] ?? ['text/plain', 'Hello.']
  response.writeHead(status, { ...(type !== '' && { 'content-type': type }), ...headers })
  response.write(body)
  // A length that is not kept: the connection is cut.
  if (headers['content-length'] === undefined) response.end()
  else response.destroy()
}

beforeAll(async () => {
  root = join(folder, 'root')
  const skill = join(root, 'skills', 'demo')
  const outside = join(folder, 'outside')
  await mkdir(outside)
  await mkdir(skill, { recursive: true })
  await writeFile(join(outside, 'secret.txt'), SECRET)
  await writeFile(join(outside, 'secret.sh'), `echo ${SECRET}`)
  await writeFile(join(skill, 'SKILL.md'), SKILL)
  await writeFile(join(skill, 'say.sh'), `printf '%s\\n' "$@"\n`)
  for (const at of [root, skill]) await symlink(outside, join(at, 'link'))
  await symlink(join(outside, 'secret.txt'), join(skill, 'file-link'))

  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  port = typeof address === 'object' && address !== null ? address.port : 0
  const mcp = oddServer(ECHO)
  closing.push(
    () => mcp.close(),
    () => server.closeAllConnections(),
    () => server.close(),
  )
  const { tools: skills } = await loadSkills({ dirs: [join(root, 'skills')], maxTimeoutMs: 5_000 })
  // Other names than this one have no address, and nothing else may be asked.
  const lookup = (host: string) =>
    host === 'page.test'
      ? Promise.resolve([{ address: '127.0.0.1', family: 4 as const }])
      : Promise.reject(new Error(host))
  const fetching = fetchUrl({
    root,
    lookup,
    allowHosts: ['page.test', 'other.test'],
    allowPrivate: ['page.test'],
    timeoutMs: 5_000,
  })
  for (const tool of [bash({ root }), fetching, ...skills, ...(await toolsOf(mcp))]) tools.set(tool.name, tool)
})

afterAll(async () => {
  for (const close of closing) await close()
})

/** Commands that are safe wherever they run; a random one might not be. */
const command = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    ')',
    '"',
    '((',
    'exit 3',
    'a\0b',
    '\uD800',
    'yes | head -c 300000',
    'printf "\\033[2J\\0\\377"',
  ),
  fc.constantFrom(...NAUGHTY).map((text) => `printf %s '${text.replaceAll("'", `'\\''`)}'`),
)
const skillName = fc.oneof({ weight: 5, arbitrary: fc.constant('demo') }, naughtyText)
const url = fc.oneof(
  fc.nat(PAGES.length).map((page) => `http://page.test:${port}/${page}`),
  naughtyText,
  naughtyText.map((text) => `http://page.test:${port}/${text}`),
  fc.constantFrom(
    'file:///etc/hostname',
    'http://127.0.0.1:1/',
    'http://[::1]/',
    'http://0x7f.1/',
    'http://user:x@page.test/',
  ),
)

const ROWS: readonly [
  name: string,
  fixed: Record<string, fc.Arbitrary<unknown>>,
  times: number,
  good: () => JsonObject,
][] = [
  [
    'bash',
    {
      command,
      cwd: fc.constantFrom('.', 'skills', 'link', '../outside', 'no\nsuch', '\0'),
      timeout_ms: fc.constantFrom(1_000, 0, -1),
    },
    12,
    () => ({ command: 'exit 3' }),
  ],
  ['fetch_url', { url }, 20, () => ({ url: `http://page.test:${port}/0` })],
  ['skill_read', { skill_name: skillName }, 50, () => ({ skill_name: 'demo' })],
  [
    'skill_run',
    { skill_name: skillName, script: fc.oneof(fc.constant('say.sh'), naughtyText), timeout: fc.constant(5) },
    12,
    () => ({ skill_name: 'demo', script: 'say.sh' }),
  ],
  ['echo', {}, 60, () => ({ text: 'Hello.' })],
]

function toolNamed(name: string): ToolSpec {
  const tool = tools.get(name)
  if (tool === undefined) throw new Error(`There is no tool ${name} among ${[...tools.keys()].join(', ')}.`)
  return tool
}

async function expectOutsideAsItWas(): Promise<void> {
  expect((await readdir(join(folder, 'outside'))).sort()).toEqual(['secret.sh', 'secret.txt'])
  expect(await readFile(join(folder, 'outside', 'secret.txt'), 'utf8')).toBe(SECRET)
}

test.each(ROWS)(
  'whatever `%s` is given, it gives a bounded result and nothing of the outside',
  async (name, fixed, times, good) => {
    const tool = toolNamed(name)
    await fc.assert(
      fc.asyncProperty(argumentsOf(tool, fixed), async (args) => {
        expectSound(await callTool(tool, args, { root }))
      }),
      rounds(times),
    )
    // A property of failures alone would say little.
    expect(expectSound(await callTool(tool, good(), { root }))).toMatchObject({ ok: true })
    await expectOutsideAsItWas()
  },
  timeLimit(300_000),
)

test.each(ROWS)(
  'malformed JSON as the arguments of `%s` has an answer',
  async (name) => {
    const tool = toolNamed(name)
    await fc.assert(
      fc.asyncProperty(malformedJson, async (json) => {
        expectSound(await callTool(tool, json, { root }))
      }),
      rounds(30),
    )
  },
  timeLimit(300_000),
)
