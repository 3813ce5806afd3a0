import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createContext, runInContext } from 'node:vm'
import { build } from 'esbuild'
import type { BuildOptions, BuildResult } from 'esbuild'
import { beforeAll, expect, test } from 'vitest'
import { entries, manifest } from '../scripts/entries.js'
import { temporaryFolder } from '../tests/support/folder.js'

const app = temporaryFolder()
const installed = join(app, 'node_modules', 'thinharness')

beforeAll(() => {
  mkdirSync(installed, { recursive: true })
  copyFileSync('package.json', join(installed, 'package.json'))
  execFileSync(process.execPath, ['scripts/bundle.js', join(installed, 'dist')])
  for (const name of Object.keys(manifest.dependencies)) {
    const link = join(app, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(realpathSync(join('node_modules', name)), link)
  }
}, 60_000)

/** Import paths that need a package which is not installed. */
const PEERS = ['mcp', 'store/postgres', 'durable/dbos', 'tracing', 'ui/react']

const PROGRAM = `
import { defineTool, Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'

const look = defineTool({
  name: 'look',
  description: 'Looks something up.',
  parameters: { type: 'object', properties: { id: { type: 'string', minLength: 1 } }, required: ['id'] },
  handler: ({ id }) => ({ found: id }),
})
const model = new ScriptedModel().calls('look', { id: 'a' }).replies(({ heard }) => heard.outputs[0].content)
const harness = new Harness({ model, builtinTools: [], tools: [look] })
const stream = harness.stream('Look.')
const kinds = []
for await (const event of stream) kinds.push(event.kind)
export const result = { text: (await stream.result).text, kinds, name: globalThis.process?.release?.name }
`

/** Bundles a program that uses the package as it is installed. */
async function bundle(contents: string, options: BuildOptions): Promise<{ code: string; result: BuildResult }> {
  const result = await build({
    stdin: { contents, resolveDir: app },
    ...{ bundle: true, write: false, metafile: true, logLevel: 'silent' },
    ...options,
  })
  return { code: result.outputFiles?.[0]?.text ?? '', result }
}

/** The globals that browsers have, and nothing of Node. Timers are numbers there. */
function browser(): Record<string, unknown> {
  const names = `AbortController AbortSignal Blob console crypto DOMException Event EventTarget fetch FormData Headers
    performance queueMicrotask ReadableStream Request Response structuredClone TextDecoder TextEncoder TransformStream
    URL URLSearchParams atob btoa`
  const timers = new Map<number, NodeJS.Timeout>()
  const start = (timer: NodeJS.Timeout): number => {
    timers.set(timers.size + 1, timer)
    return timers.size
  }
  const clear = (id: number | undefined): void => clearTimeout(timers.get(id ?? 0))
  return createContext({
    ...Object.fromEntries(names.split(/\s+/).map((name) => [name, Reflect.get(globalThis, name)])),
    setTimeout: (work: () => void, ms: number) => start(setTimeout(work, ms)),
    setInterval: (work: () => void, ms: number) => start(setInterval(work, ms)),
    clearTimeout: clear,
    clearInterval: clear,
  })
}

test('the built package imports no module of Node by name, so that no bundler follows one', () => {
  const files = readdirSync(join(installed, 'dist'), { recursive: true, encoding: 'utf8' })
  const importing = files
    // The command is a program: nothing imports it.
    .filter((file) => file.endsWith('.js') && !file.startsWith('command/'))
    .filter((file) => /(import|from)\s*\(?\s*["']node:/.test(readFileSync(join(installed, 'dist', file), 'utf8')))
  expect(importing).toEqual([])
})

test('a run with a tool works in a program for browsers, without anything of Node', async () => {
  const wrapped = `globalThis.done = (async () => {
${PROGRAM.replace(/^import .*$/gm, '').replace('export const result =', 'return')}
})()`
  const imports = [...PROGRAM.matchAll(/^import .*$/gm)].join('\n')
  const { code, result } = await bundle(`${imports}\n${wrapped}`, { platform: 'browser', format: 'iife' })
  expect(result.warnings).toEqual([])
  const context = browser()
  runInContext(code, context)
  const { text, kinds } = (await context['done']) as { text: string; kinds: string[] }
  expect(JSON.parse(text)).toEqual({ found: 'a' })
  expect(kinds).toContain('text_delta')
})

/** Two requests of each built-in adapter, the first with a stream, and content of each kind. Nothing is taken from Node. */
const PROVIDERS = `
import { defineTool, Harness } from 'thinharness'
import { anthropic, openai, openaiChat, openaiCompatible, openrouter } from 'thinharness/providers'

const PNG = btoa('\\x89PNG\\r\\n\\x1a\\n and more')
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object', properties: {} },
  handler: () => ({ kind: 'succeeded', content: 'Seen, ü.', parts: [
    { type: 'image', data: PNG, mediaType: 'image/jpeg' },
    { type: 'file', data: btoa('a,b'), mediaType: 'text/csv' },
  ] }),
})
const chat = (message, reason) => ({ id: 'x', choices: [{ index: 0, message, finish_reason: reason }] })
const toolCall = { id: 'call_a', type: 'function', function: { name: 'look', arguments: '{}' } }
const CHAT = [
  chat({ role: 'assistant', content: null, tool_calls: [toolCall] }, 'tool_calls'),
  { id: 'x', choices: [{ index: 0, delta: { role: 'assistant', content: 'Fertig, schön.' }, finish_reason: 'stop' }] },
]
const ITEM = { type: 'function_call', id: 'fc', call_id: 'call_a', name: 'look', arguments: '{}', status: 'completed' }
const TEXT = { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'Fertig, schön.' }] }
const RESPONSES = [
  { id: 'r', status: 'completed', output: [ITEM] },
  { type: 'response.completed', response: { id: 'r', status: 'completed', output: [TEXT] } },
]
const MESSAGES = [
  { role: 'assistant', stop_reason: 'tool_use', content: [{ type: 'tool_use', id: 'toolu_a', name: 'look', input: {} }] },
  { role: 'assistant', stop_reason: 'end_turn', content: [{ type: 'text', text: 'Fertig, schön.' }] },
]
async function run(make, replies) {
  const bodies = []
  const fetch = async (_url, { body }) => {
    bodies.push(await new Response(body).text())
    const reply = replies[bodies.length - 1]
    const isEvent = 'type' in reply || reply.choices?.[0]?.delta !== undefined
    if (!isEvent) return Response.json(reply)
    const bytes = new TextEncoder().encode('data: ' + JSON.stringify(reply) + '\\n\\ndata: [DONE]\\n\\n')
    const cut = bytes.indexOf(0xc3) + 1
    const body2 = new ReadableStream({ start(c) { c.enqueue(bytes.slice(0, cut)); c.enqueue(bytes.slice(cut)); c.close() } })
    return new Response(body2, { headers: { 'content-type': 'text/event-stream' } })
  }
  const harness = new Harness({ model: make(fetch), builtinTools: [], tools: [look] })
  const { text } = await harness.stream('Grüße.').result
  return { text, asked: bodies[0].includes('Grüße.'), seen: bodies[1].includes('Seen, ü.') && bodies[1].includes(PNG) }
}
export const result = Promise.all([
  run((fetch) => openai('gpt-5.5', { apiKey: 'k', fetch }), RESPONSES),
  run((fetch) => openaiChat('gpt-4.1', { apiKey: 'k', fetch }), CHAT),
  run((fetch) => openrouter('x/y', { apiKey: 'k', fetch }), CHAT),
  run((fetch) => openaiCompatible('m', { baseUrl: 'https://any.example/v1', fetch }), CHAT),
  run((fetch) => anthropic('claude-sonnet-5', { apiKey: 'k', fetch }), MESSAGES),
  run((fetch) => { globalThis.fetch = fetch; return openai('gpt-5.5', { apiKey: 'k' }) }, RESPONSES),
])
`

test('every adapter works in a program for browsers, without anything of Node, also over the `fetch` of the platform', async () => {
  const { code } = await bundle(PROVIDERS.replace('export const result =', 'globalThis.done ='), {
    platform: 'browser',
    format: 'iife',
  })
  const context = browser()
  runInContext(code, context)
  const results = await context['done']
  expect(results).toEqual(Array.from({ length: 6 }, () => ({ text: 'Fertig, schön.', asked: true, seen: true })))
})

test('a program for browsers can contain the import paths that need no other package, and loads them', async () => {
  const paths = entries.filter(({ specifier }) => !PEERS.some((peer) => specifier.endsWith(peer)))
  const imports = paths.map(({ specifier }, index) => `import * as e${index} from '${specifier}'`)
  const program = `${imports.join('\n')}\nglobalThis.names = [${paths.map((_, index) => `Object.keys(e${index}).length`).join()}]`
  const { code, result } = await bundle(program, { platform: 'browser', format: 'iife' })
  expect(result.warnings).toEqual([])
  const context = browser()
  runInContext(code, context)
  expect(context['names']).toHaveLength(paths.length)
  expect(Math.min(...(context['names'] as number[]))).toBeGreaterThan(0)
})

test('without Node, `fileLog` says what it needs', async () => {
  const program = `import { fileLog } from 'thinharness'\ntry { fileLog('runs') } catch (error) { globalThis.error = error }`
  const { code } = await bundle(program, { platform: 'browser', format: 'iife' })
  const context = browser()
  runInContext(code, context)
  expect(context['error']).toMatchObject({
    code: 'missing_dependency',
    message: '`fileLog` needs the file system of Node, Deno or Bun.',
  })
})

/** Who imports this has React. */
const REACT = 'thinharness/ui/react'

test('a program for Node can be bundled with every import path; optional packages that are missing are reported on use', async () => {
  const paths = entries.filter(({ specifier }) => specifier !== REACT)
  const program = `${paths.map(({ specifier }, index) => `import * as e${index} from '${specifier}'`).join('\n')}
import { Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { mcpHttp, serveMcp } from 'thinharness/mcp'
${PROGRAM.replace(/^import .*$/gm, '').replace('export const result', 'const result')}
import { defineTool } from 'thinharness'
const names = [${paths.map((_, index) => `Object.keys(e${index}).length`).join()}]
const failure = (work) => work.then(() => 'none', (error) => error.code + ': ' + error.message)
const server = mcpHttp({ url: 'http://127.0.0.1:9/mcp' })
const missing = [
  await failure(server.resources.list()),
  await failure(serveMcp(harness, { transport: { port: 0 } })),
]
console.log(JSON.stringify({ result, names, missing }))
`
  const { code, result } = await bundle(program, { platform: 'node', format: 'esm' })
  const followed = Object.keys(result.metafile?.inputs ?? {})
  expect(
    followed.filter((path) => /ripgrep|@photostructure|modelcontextprotocol|node_modules\/pg\//.test(path)),
  ).toEqual([])
  // Outside of every folder `node_modules`.
  const file = join(temporaryFolder(), 'program.mjs')
  writeFileSync(file, code)
  const printed = JSON.parse(execFileSync(process.execPath, [file], { encoding: 'utf8' })) as {
    result: { text: string; name: string }
    names: number[]
    missing: string[]
  }
  expect(printed.result.name).toBe('node')
  expect(JSON.parse(printed.result.text)).toEqual({ found: 'a' })
  expect(Math.min(...printed.names)).toBeGreaterThan(0)
  expect(printed.missing).toEqual([
    expect.stringMatching(/`@modelcontextprotocol\/client`, which is not installed/),
    expect.stringMatching(/^missing_dependency: .*`@modelcontextprotocol\/server`, which is not installed/),
  ])
})
