// What a newcomer does: the packed package is installed in an empty folder, and the page "Getting started" that is in it is followed block
// by block: commands are run, programs are written and started, and what they print is compared with the page. A scripted provider
// stands for the model. `npm run try:newcomer`; needs the network, for the registry.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { pack } from '../bundlers/app.js'
import { answer } from './replies.js'

const home = mkdtempSync(join(tmpdir(), 'thinharness-newcomer-'))
const folder = join(home, 'my-agent')
const tarball = pack(home)
const [major, minor] = process.versions.node.split('.').map(Number)
const runsTypeScript = major > 22 || (major === 22 && minor >= 18)
/** For the configuration in TypeScript. */
const loader = runsTypeScript ? '' : "NODE_OPTIONS='--import tsx'"
let provider = null
let failures = 0

mkdirSync(folder)
try {
  // The page is in the package, which the page says how to install.
  const page = readFileSync('docs/getting-started.md', 'utf8')
  for (const block of blocksOf(page)) await follow(block)
  await check('npx tsx batch.ts, twice', async () => {
    const rows = async () => (await shell('npx tsx batch.ts')).stdout.trim().split('\n').sort().join('\n')
    const first = await rows()
    if (!/^1043 .*delivered twice.*\n1044 .*\n1045 /.test(first)) throw new Error(`Expected three rows, got ${first}`)
    const requests = provider.requests.length
    expectText(await rows(), first)
    // Rows that are done are not asked again.
    expectText(String(provider.requests.length), String(requests))
  })
  await check('an example without a key: init, run', async () => {
    await shell('npx thinharness init demo --example starter')
    const { stdout } = await shell('npx thinharness run "Where is order 1042?"', join(folder, 'demo'))
    expectText(stdout, 'Order 1042 is shipped, by Borealis.\n')
  })
  await check('each page that README of the docs lists is in the package', async () => {
    const docs = join(folder, 'node_modules/thinharness/docs')
    for (const [, name] of readFileSync(join(docs, 'README.md'), 'utf8').matchAll(/\]\(([\w-]+\.md)\)/g))
      readFileSync(join(docs, name))
  })
} finally {
  await provider?.[Symbol.asyncDispose]()
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
}
process.exitCode = failures === 0 ? 0 : 1

/** The blocks of code of a page, in order. */
function blocksOf(page) {
  const pattern = /(?:<!-- snippet: (\S+) -->\n\n)?```(\w+)\n([\s\S]*?)```/g
  return [...page.matchAll(pattern)].map(([, snippet, language, text]) => ({ snippet, language, text }))
}

async function follow({ snippet, language, text }) {
  if (language === 'ts') {
    writeFileSync(join(folder, basename(snippet)), text)
    return
  }
  if (language === 'sh') {
    for (const line of text.split('\n').map((each) => each.replace(/ +# .*$/, ''))) await command(line)
    return
  }
  if (language !== 'console') return
  const [, line = '', printed = ''] = /^\$ (.*)\n([\s\S]*)$/.exec(text) ?? []
  await check(line, async () => expectText((await shell(line)).stdout, printed))
}

async function command(line) {
  // The folder is there; the key is that of the scripted provider; a conversation needs a person.
  if (line === '' || line.startsWith('mkdir ') || line.startsWith('export ')) return
  if (line === 'npx thinharness chat') return
  await check(line, async () => {
    if (line === 'npx tsx server.ts')
      await serve('exec node --import tsx server.ts', /port: (\d+)/, (port) => `http://127.0.0.1:${port}/chat`)
    else if (line === 'npx thinharness serve')
      await serve(
        `${loader} exec node node_modules/thinharness/dist/command/main.js serve --port 0`,
        /(http:\S+\/)\n/,
        (page) => `${page}api/chat`,
      )
    else await shell(line.replace(/^npm install thinharness /, `npm install '${tarball}' `))
  })
  if (provider === null && line.startsWith('npm install')) provider = await scripted()
}

/** The provider of the installed package, so that nothing of this repository takes part. */
async function scripted() {
  const path = join(folder, 'node_modules/thinharness/dist/testing/index.js')
  const { scriptedProvider } = await import(pathToFileURL(path).href)
  const server = await scriptedProvider()
  server.always(answer)
  return server
}

function environment(line) {
  const needsLoader = !runsTypeScript && line.startsWith('npx thinharness')
  return {
    PATH: process.env['PATH'],
    HOME: home,
    CI: '1',
    PORT: '0',
    npm_config_cache: process.env['npm_config_cache'] ?? join(process.env['HOME'] ?? home, '.npm'),
    ...(provider !== null && { ANTHROPIC_API_KEY: 'a-key', ANTHROPIC_BASE_URL: provider.url.messages }),
    ...(needsLoader && { NODE_OPTIONS: '--import tsx' }),
  }
}

function start(line, cwd = folder) {
  return spawn('bash', ['-c', line], { cwd, env: environment(line), stdio: ['ignore', 'pipe', 'pipe'], detached: true })
}

function shell(line, cwd) {
  const child = start(line, cwd)
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (piece) => (stdout += String(piece)))
  child.stderr.on('data', (piece) => (stderr += String(piece)))
  return new Promise((resolve, reject) => {
    child.once('close', (code) => {
      if (code === 0) resolve({ stdout, stderr })
      else reject(new Error(`\`${line}\` ended with ${code}:\n${stdout}${stderr}`))
    })
  })
}

/** The server that `line` starts, whose address is what `told` finds in its words, answers a page, and ends in an orderly way. */
async function serve(line, told, chatOf) {
  const child = start(line)
  try {
    const place = await new Promise((resolve, reject) => {
      let text = ''
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (piece) => {
          text += String(piece)
          const found = told.exec(text)?.[1]
          if (found !== undefined) resolve(found)
        })
      child.once('close', () => reject(new Error(`The server ended:\n${text}`)))
    })
    const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'What about order 1043?' }] }
    const response = await fetch(chatOf(place), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'one', messages: [message] }),
    })
    const text = await response.text()
    if (!text.includes('delivered twice')) throw new Error(`Expected an answer about order 1043, got ${text}`)
    const ended = new Promise((resolve) => child.once('close', resolve))
    child.kill('SIGTERM')
    const code = await ended
    if (code !== 0) throw new Error(`Expected the server to end with 0, got ${code}.`)
  } finally {
    if (child.exitCode === null && child.signalCode === null) execFileSync('kill', ['-KILL', `-${child.pid}`])
  }
}

function expectText(found, expected) {
  if (found !== expected) throw new Error(`Expected ${JSON.stringify(expected)}, got ${JSON.stringify(found)}.`)
}

async function check(title, work) {
  const started = performance.now()
  try {
    await work()
    console.log(`ok      ${title} (${((performance.now() - started) / 1000).toFixed(1)} s)`)
  } catch (error) {
    failures += 1
    console.log(`FAILED  ${title}\n${error.stack}`)
  }
}
