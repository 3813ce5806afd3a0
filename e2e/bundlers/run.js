// Builds programs that use the packed package with the bundlers that people use, and runs each of them: outside of the
// repository, with everything from the registry. `npm run e2e:bundlers -- vite next` selects some. Needs the network.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { esbuildPrograms, nextApp, runtimes, vitePrograms, webpackPrograms, workers } from './builds.js'
import { App, pack } from './app.js'

const SUITES = {
  esbuild: esbuildPrograms,
  vite: vitePrograms,
  webpack: webpackPrograms,
  workerd: workers,
  next: nextApp,
  runtimes,
}

const chosen = process.argv.slice(2).filter((name) => name in SUITES)
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
