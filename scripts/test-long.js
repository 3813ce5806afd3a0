// `npm run test:long -- --minutes 12`: each long form of the tests has a share of the time and a seed that changes daily; two run at
// once, and each tells how far it came. `npm run test:full` gives each the time that its whole bar takes: hours. `--only sim` selects
// forms by a part of their name, `--seed 20784` repeats a day. The last line counts the forms.
import { spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import pg from 'pg'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '12' },
    full: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Math.floor(Date.now() / 86_400_000)) },
    only: { type: 'string', default: '' },
  },
})
const LANES = 2
/** How long a form may take after its share has ended: a slow machine needs a while for the case that it is trying. */
const GRACE_MS = 90_000
/** The tests of a folder are repeated with up to so many times the cases of `npm test`. */
const MOST_TIMES = 200
const LEAST_OF_A_TEST_MS = 10_000
const VITEST = 'node_modules/vitest/vitest.mjs'

const seed = Number(values.seed)
const endsAt = values.full ? Infinity : Date.now() + Number(values.minutes) * 60_000
const running = new Set()
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    for (const child of running) kill(child, 'SIGKILL')
    process.exit(1)
  })

if (!build()) {
  console.log('0 passed, 1 failed')
  process.exit(1)
}
const { startPostgres } = await import('../.build/support/postgres.js')
const server = await startPostgres()
process.on('exit', () => server?.stop())
if (server === null) console.log('No PostgreSQL on this machine: its forms are skipped.')

const forms = allForms().filter(({ name }) => name.includes(values.only))
const queue = [...forms]
const counts = { passed: 0, failed: 0 }
await Promise.all(Array.from({ length: LANES }, lane))
console.log(`${counts.passed} passed, ${counts.failed} failed`)
process.exit(counts.failed === 0 && counts.passed > 0 ? 0 : 1)

/** Each form: its share of the time in relation to the others, and how it is played. */
function allForms() {
  const url = server?.url
  const stores = [['file'], ['sqlite'], ...(url === undefined ? [] : [['postgres', '--url', url]])]
  return [
    rig('sim', 5, 'sim/run.js', ['--lives', '1000000', '--lanes', '1', '--seed', String((seed % 10_000) * 100_000)]),
    tests('fuzz', 3, ['tests/fuzz']),
    tests('properties of runs', 2, propertyFiles(/^tests\/(run|core\/(?!tools))/)),
    tests('properties of tools', 2, propertyFiles(/^tests\/(extensions\/policy|toolbox|core\/tools)\//)),
    tests('other properties', 2, propertyFiles(/^tests\/(?!run|core|toolbox|fuzz|extensions\/(policy|context))/)),
    tests('context', 2, [
      'tests/extensions/context/clear-results.test.ts',
      'tests/extensions/context/same-views.test.ts',
    ]),
    ...stores.map(([store, ...more]) =>
      rig(`crash ${store}`, store === 'file' ? 2 : 1, 'crash/run.js', [
        ...['--store', store, ...more, '--kills', '800', '--lanes', '1', '--seed', values.seed],
      ]),
    ),
    ...(url === undefined ? [] : [engine(url)]),
    ...stores.map(([store, ...more]) =>
      rig(`crash:sessions ${store}`, 1, 'sessions/crash.js', [
        ...['--store', store, ...more, '--kills', '2000', '--seed', values.seed],
      ]),
    ),
    ...['native', 'ai-sdk', 'ag-ui', 'responses'].map(cuts),
    ...stores.map(([store, ...more]) =>
      rig(`race:sessions ${store}`, 0.5, 'sessions/race.js', [
        ...['--store', store, ...more, '--rounds', '10000', '--seed', values.seed],
      ]),
    ),
    ...stores.map(([store, ...more]) =>
      rig(`queued ${store}`, 0.5, 'queued.js', ['--store', store, ...more, '--runs', '2000', '--seed', values.seed]),
    ),
    ...stores.map(([store, ...more]) =>
      rig(`race ${store}`, 0.5, 'race.js', [
        ...['--store', store, ...more, '--rounds', '500', '--processes', values.full ? '64' : '8'],
      ]),
    ),
  ]
}

/** Test files that try generated cases, but those of `npm run cuts`. */
function propertyFiles(places) {
  const files = readdirSync('tests', { recursive: true, encoding: 'utf8' }).map((file) => `tests/${file}`)
  return files.filter(
    (file) =>
      file.endsWith('.test.ts') &&
      places.test(file) &&
      !/^tests\/adapters\/ui\/.*\/(readings|cut)\.test/.test(file) &&
      /\b(fc\.assert|rounds|times|oneIn)\(/.test(readFileSync(file, 'utf8')),
  )
}

/** A program that ends by itself after `--minutes`, and tells in its last line how far it came. */
function rig(name, weight, path, args) {
  const play = async (shareMs) => {
    const limit = values.full ? [] : ['--minutes', String(shareMs / 60_000)]
    const { code, isStopped, output } = await run([`.build/rigs/${path}`, ...args, ...limit], { shareMs })
    const end = isStopped ? 'It did not end in its time.' : (output.trim().split('\n').at(-1) ?? '')
    return { ok: code === 0, far: end, output }
  }
  return { name, weight, play }
}

/** Runs on DBOS, whose engine has a database of its own. */
function engine(url) {
  const address = new URL(url)
  address.pathname = '/long_engine'
  const args = ['--store', 'dbos', '--url', address.href, '--kills', '800', '--lanes', '1', '--seed', values.seed]
  const form = rig('crash dbos', 1.5, 'crash/run.js', args)
  const play = async (shareMs) => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query('create database long_engine').finally(() => client.end())
    return form.play(shareMs)
  }
  return { ...form, play }
}

/** The streams of a protocol: runs are generated until the time is over, and those of the corpus are cut at fewer places. */
function cuts(protocol) {
  const play = async (shareMs) => {
    // A protocol has two or three tests of generated runs. One that is interrupted before its first run would fail.
    const minutes = Math.max(LEAST_OF_A_TEST_MS, shareMs / 4) / 60_000
    const env = { RUNS: '2000', SEED: values.seed, EVERY_BYTE: '97', MINUTES: String(minutes) }
    const { code, isStopped, output } = await run(['scripts/cuts.js', protocol], {
      shareMs,
      env: values.full ? {} : env,
    })
    const far = output.split('\n').filter((line) => line.includes(' readings that were cut'))
    return { ok: isStopped || code === 0, far: far.join('; ') || 'stopped before its end', output }
  }
  return { name: `cuts ${protocol}`, weight: 1, play }
}

/** Test files whose cases are counted by `tests/support/length.ts`: again and again, with more cases and another seed each time. */
function tests(name, weight, files) {
  const pass = (times, number, shareMs) => {
    const length = values.full ? { THINHARNESS_LONG: '1' } : { THINHARNESS_RUNS: String(times) }
    const env = { ...length, THINHARNESS_SEED: String(seed + number) }
    return run([VITEST, 'run', '--maxWorkers=1', '--reporter=dot', ...files], { shareMs, graceMs: 30_000, env })
  }
  const play = async (shareMs) => {
    const until = Date.now() + shareMs
    const done = []
    for (let times = 1; times >= 1;) {
      const began = Date.now()
      const { code, isStopped, output } = await pass(times, done.length, until - began)
      if (isStopped) break
      if (code !== 0) return { ok: false, far: `seed ${seed + done.length}`, output }
      done.push(times)
      const timesLeft = (0.8 * times * (until - Date.now())) / (Date.now() - began)
      times = values.full ? 0 : Math.min(MOST_TIMES, Math.floor(timesLeft))
    }
    const passes =
      done.length === 0
        ? 'stopped before the end of its first pass'
        : `${done.join(' + ')} times the cases of \`npm test\``
    return { ok: true, far: `${values.full ? 'the whole bar' : passes}, from seed ${seed}`, output: '' }
  }
  return { name, weight, play }
}

async function lane() {
  for (let form = queue.shift(); form !== undefined; form = queue.shift()) {
    const began = Date.now()
    const { ok, far, output } = await form.play(shareOf(form))
    counts[ok ? 'passed' : 'failed'] += 1
    if (!ok) console.log(output.split('\n').slice(-300).join('\n'))
    console.log(`${ok ? 'passed' : 'FAILED'} ${form.name}, ${Math.round((Date.now() - began) / 1000)} s: ${far}`)
  }
}

/** The time of a form, in ms: forms that ended early have left theirs to the ones after them. */
function shareOf({ weight }) {
  if (values.full) return Infinity
  const leftMs = Math.max(0, endsAt - Date.now())
  const weights = weight + queue.reduce((sum, form) => sum + form.weight, 0)
  return Math.min(leftMs, (leftMs * LANES * weight) / weights)
}

/** One process and what it prints. After its share it is asked to end, and then made to. */
function run(args, { shareMs, graceMs = GRACE_MS, env = {} }) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      env: { ...process.env, THINHARNESS_BUILT: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    running.add(child)
    let output = ''
    let isStopped = false
    const stop = (signal) => {
      isStopped = true
      kill(child, signal)
    }
    const timers = Number.isFinite(shareMs)
      ? [
          setTimeout(() => stop('SIGTERM'), shareMs + graceMs),
          setTimeout(() => stop('SIGKILL'), shareMs + graceMs + 10_000),
        ]
      : []
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output = (output + text).slice(-200_000)))
    child.on('close', (code) => {
      timers.forEach(clearTimeout)
      running.delete(child)
      resolve({ code, isStopped, output })
    })
  })
}

/** With the processes that it has started. */
function kill(child, signal) {
  try {
    process.kill(-child.pid, signal)
  } catch {
    // It has just ended.
  }
}

function build() {
  return spawnSync('npm', ['run', '--silent', 'build:js'], { stdio: ['ignore', 'inherit', 'inherit'] }).status === 0
}
