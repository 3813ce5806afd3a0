// Builds programs that use the packed package with the bundlers that people use, and runs each of them: outside of the
// repository, with everything from the registry. `npm run e2e:bundlers -- vite next` selects some. Needs the network. The suite
// `package` is the package by itself, with its types and its command: it needs `npm run build` (`npm run try:package -- package`).
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { App, pack } from './app.js'
import { esbuildPrograms, nextApp, rollupPrograms, runtimes, vitePrograms, webpackPrograms, workers } from './builds.js'
import { packageTrials } from './package.js'

const SUITES = {
  package: packageTrials,
  esbuild: esbuildPrograms,
  rollup: rollupPrograms,
  vite: vitePrograms,
  webpack: webpackPrograms,
  workerd: workers,
  next: nextApp,
  runtimes,
}

const chosen = process.argv.slice(2)
const unknown = chosen.filter((name) => !(name in SUITES))
if (unknown.length > 0)
  throw new Error(`Expected some of ${Object.keys(SUITES).join(', ')}, got ${unknown.join(', ')}.`)
const folder = mkdtempSync(join(tmpdir(), 'thinharness-bundlers-'))
let failures = 0
try {
  const tarball = pack(folder)
  for (const name of chosen.length > 0 ? chosen : Object.keys(SUITES)) {
    for (const [title, work] of SUITES[name]()) await check(`${name}: ${title}`, () => work(new App(folder, tarball)))
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exitCode = failures === 0 ? 0 : 1

async function check(title, work) {
  const started = performance.now()
  try {
    await work()
    console.log(`ok      ${title} (${((performance.now() - started) / 1000).toFixed(1)} s)`)
  } catch (error) {
    failures += 1
    console.log(`FAILED  ${title}\n${String(error.stdout ?? '')}${String(error.stderr ?? '')}${error.stack}`)
  }
}
