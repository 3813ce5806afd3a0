// The cost of an import: no package at all, and little of ours. Shown by importing the build in a folder that has no
// packages, making a harness there, and running it on a model of its own.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { entries } from './entries.js'

/** CPU time that `import 'thinharness'` may take beyond a bare start of Node, as a part of that: machines differ in speed. */
const MOST = 0.5
const ROUNDS = 15
/** As often as that on a busy machine. */
const MOST_ROUNDS = 90
/** Packages that an import path loads at once: what it does is synchronous. */
const PACKAGES = { 'thinharness/policy': ['unbash'], 'thinharness/ui/react': ['react'] }

const RUN = `
import { Harness } from './dist/index.js'
new Harness()
const reply = { role: 'assistant', parts: [{ type: 'text', text: 'yes' }], provider: 'p', model: 'm', finishReason: 'stop',
  usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 } }
const turn = { entry: reply, text: 'yes', toolCalls: [], finishReason: 'stop', nativeFinishReason: null, usage: reply.usage,
  responseId: null, responseModel: null, raw: null }
const model = { provider: 'p', id: 'm', capabilities: {}, openSession: () => ({ turn: async () => turn }) }
const result = await new Harness({ model, builtinTools: [] }).run('Is anybody there?')
if (result.text !== 'yes') throw new Error('Expected an answer, got ' + result.text)
`
const CPU = `const { user, system } = process.cpuUsage(); console.log((user + system) / 1000)`

const folder = mkdtempSync(join(tmpdir(), 'thinharness-import-'))
try {
  cpSync('dist', join(folder, 'dist'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  run('run.js', RUN)
  const last = entries.filter(({ specifier }) => specifier in PACKAGES)
  for (const { specifier, output } of [...entries.filter((entry) => !last.includes(entry)), ...last]) {
    for (const name of PACKAGES[specifier] ?? [])
      cpSync(join('node_modules', name), join(folder, 'node_modules', name), { recursive: true })
    const names = run('names.js', `console.log(Object.keys(await import('./${output}')).join())`)
    if (names === '') throw new Error(`\`import '${specifier}'\` gives nothing.`)
  }
  const { bareMs, extraMs } = cost()
  const most = Math.floor(MOST * bareMs)
  const shown = `${extraMs} ms of CPU beyond the ${Math.round(bareMs)} ms of a bare Node`
  if (extraMs > most) throw new Error(`\`import 'thinharness'\` takes ${shown}; ${most} are allowed.`)
  console.log(`\`import 'thinharness'\`: ${shown}, no package; ${packages()} packages are installed with it.`)
} catch (error) {
  console.error(error.stderr === undefined ? error.message : String(error.stderr))
  process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** By the minimum of some rounds: the cost of the work itself. More rounds if it is too much, which a busy machine may have caused. */
function cost() {
  let [bareMs, loadedMs] = [Infinity, Infinity]
  for (let round = 0; round < ROUNDS || (round < MOST_ROUNDS && loadedMs - bareMs > MOST * bareMs); round++) {
    bareMs = Math.min(bareMs, Number(run('bare.js', CPU)))
    loadedMs = Math.min(loadedMs, Number(run('loaded.js', `import './dist/index.js'; ${CPU}`)))
  }
  return { bareMs, extraMs: Math.max(0, Math.round(loadedMs - bareMs)) }
}

/** What `npm install thinharness` brings along, the optional search engine included. */
function packages() {
  const { packages: locked } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
  return Object.entries(locked).filter(([path, { dev, peer, optional, devOptional }]) => {
    if (path === '' || dev === true || peer === true || devOptional === true) return false
    return optional !== true || path === 'node_modules/@vscode/ripgrep'
  }).length
}

function run(name, program) {
  writeFileSync(join(folder, name), program)
  return execFileSync(process.execPath, [name], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim()
}
