// All checks of this project, side by side: one line each, and the whole output of one that fails.
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { manifest } from './entries.js'

/** Those that look at the build. */
const OF_THE_BUILD = ['entries', 'import', 'package', 'size']
/** Those that take longest begin first. */
const LONGEST = ['build', 'lint', 'types', 'format']

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { failed } = await runChecks()
  process.exitCode = failed === 0 ? 0 : 1
}

/** Builds the package and runs every script `check:…` of package.json. Gives back how many hold and how many fail. */
export async function runChecks() {
  const checks = Object.keys(manifest.scripts).flatMap((script) => /^check:(.*)/.exec(script)?.[1] ?? [])
  const names = ['build', ...checks].sort((a, b) => rank(a) - rank(b))
  const width = Math.max(...names.map((name) => name.length))
  let failed = 0
  let building = Promise.resolve(true)

  const check = async (name) => {
    if (OF_THE_BUILD.includes(name) && !(await building)) return say(name, { ok: false, output: 'The build failed.' })
    const result = runScript(name === 'build' ? name : `check:${name}`)
    if (name === 'build') building = result.then(({ ok }) => ok)
    say(name, await result)
  }
  const say = (name, { ok, output, seconds = 0 }) => {
    const [line = '', ...more] = output.split('\n')
    const note = ok && more.length === 0 ? `  ${line}` : ''
    console.log(`${ok ? 'holds' : 'FAILS'}  ${name.padEnd(width)} ${seconds.toFixed(1).padStart(5)} s${note}`.trimEnd())
    if (ok) return
    failed += 1
    console.log(`${output}\n`)
  }

  const queue = names.values()
  const lane = async () => {
    for (const name of queue) await check(name)
  }
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, lane))
  console.log(`${names.length - failed} checks hold, ${failed} fail.`)
  return { held: names.length - failed, failed }
}

/** The longest first, what looks at the build last. */
function rank(name) {
  if (OF_THE_BUILD.includes(name)) return LONGEST.length + 1
  const place = LONGEST.indexOf(name)
  return place < 0 ? LONGEST.length : place
}

function runScript(script) {
  const started = performance.now()
  return new Promise((resolve) => {
    const child = spawn('npm', ['run', '--silent', script], { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
    const end = (ok) => resolve({ ok, output: shown(output), seconds: (performance.now() - started) / 1000 })
    child.on('error', (error) => {
      output += error.message
      end(false)
    })
    child.on('close', (code) => end(code === 0))
  })
}

/** Without what npm says of its own settings. */
function shown(output) {
  return output
    .split('\n')
    .filter((line) => !line.startsWith('npm warn '))
    .join('\n')
    .trim()
}
