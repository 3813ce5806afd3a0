// `npm run bench:readers`: 10,000 deltas at 200 a second through the hub to 100 readers of server-sent events. Each round runs once
// without readers and once with them, each in a process of its own. `--write` puts the figures into e2e/bench/results.md.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Harness, memoryLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { createHandlers, createHub } from 'thinharness/ui'
import { median } from './report.js'
import { writeReaders } from './document.js'

const DELTAS = 10_000
const EVERY_MS = 5
const READERS = 100
const ROUNDS = 3
const URL_OF_RUN = 'http://localhost/runs/run_1/events'

interface Figures {
  readonly wallMs: number
  readonly cpuMs: number
  /** Deltas that were made JSON, counted. */
  readonly encoded: number
  /** Frames of deltas that each reader has got. */
  readonly received: readonly number[]
  /** Memory above that before the run, at most, after collections of garbage. */
  readonly heldMb: number
}

/** A reply at a steady rate: a delta that is late is followed by the next at once. */
function pacedModel(): ScriptedModel {
  return new ScriptedModel().replies(async ({ options }) => {
    const begun = performance.now()
    for (let index = 0; index < DELTAS; index++) {
      const wait = begun + index * EVERY_MS - performance.now()
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
      options.onDelta?.({ kind: 'text_delta', text: `word ${index} ` })
    }
    return 'Done.'
  })
}

async function read(body: ReadableStream<Uint8Array> | null): Promise<number> {
  let count = 0
  const decoder = new TextDecoder()
  for await (const piece of body ?? []) count += decoder.decode(piece).split('event: text_delta').length - 1
  return count
}

/** Memory of the process after a collection of garbage, in MB. */
function held(): number {
  ;(globalThis as { gc?: () => void }).gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1e6
}

async function measure(readers: number): Promise<Figures> {
  const log = memoryLog()
  const harness = new Harness({ model: pacedModel(), log, builtinTools: [] })
  const hub = createHub({ log })
  const { events } = createHandlers({ harness, log, hub })
  const { stringify } = JSON
  let encoded = 0
  JSON.stringify = ((value: unknown, ...rest: []) => {
    if ((value as { readonly kind?: unknown } | null)?.kind === 'text_delta') encoded += 1
    return stringify(value, ...rest)
  }) as typeof stringify
  const before = held()
  const [begun, cpu] = [performance.now(), process.cpuUsage()]
  const run = harness.stream('Go.', { runId: 'run_1', metadata: { conversation_id: 't1' } })
  await hub.start(run)
  const bodies = await Promise.all(Array.from({ length: readers }, () => events(new Request(URL_OF_RUN))))
  const reading = bodies.map(({ body }) => read(body))
  let heldMb = 0
  const sampling = setInterval(() => (heldMb = Math.max(heldMb, held() - before)), 10_000)
  await run.result
  const wallMs = performance.now() - begun
  clearInterval(sampling)
  const received = await Promise.all(reading)
  const { user, system } = process.cpuUsage(cpu)
  await harness.close()
  return { wallMs, cpuMs: (user + system) / 1000, encoded, received, heldMb }
}

async function perform(readers: number): Promise<Figures> {
  const args = ['--expose-gc', fileURLToPath(import.meta.url), '--readers', String(readers)]
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1e7 })
  return JSON.parse(stdout) as Figures
}

async function bench(): Promise<void> {
  const rounds: { readonly alone: Figures; readonly followed: Figures }[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const [alone, followed] = [await perform(0), await perform(READERS)]
    rounds.push({ alone, followed })
    console.error(`round ${round + 1}: ${JSON.stringify({ alone, followed: { ...followed, received: undefined } })}`)
  }
  const of = (name: 'alone' | 'followed', value: (figures: Figures) => number): number =>
    median(rounds.map((round) => value(round[name])))
  const slower = median(rounds.map(({ alone, followed }) => followed.wallMs / alone.wallMs - 1)) * 100
  const cpuMs = of('followed', (figures) => figures.cpuMs) - of('alone', (figures) => figures.cpuMs)
  const heldMb = of('followed', (figures) => figures.heldMb) - of('alone', (figures) => figures.heldMb)
  const frames = of('followed', ({ received }) => received.reduce((sum, count) => sum + count, 0))
  const rows = [
    ['deltas of the run', `${DELTAS}`, ''],
    ['deltas encoded', `${of('followed', ({ encoded }) => encoded)}`, `≤ ${DELTAS}`],
    ['frames that the readers got', `${frames}`, ''],
    ['the run takes longer by', `${slower.toFixed(2)} %`, '≤ 2 %'],
    ['memory held for all readers', `${heldMb.toFixed(1)} MB`, '≤ 10 MB'],
    ['CPU of the run alone, per delta', `${((of('alone', (f) => f.cpuMs) / DELTAS) * 1000).toFixed(0)} µs`, ''],
    ['CPU of all readers, per frame', `${((cpuMs / frames) * 1000).toFixed(1)} µs`, ''],
  ]
  const table = ['| | measured | goal |', '| --- | ---: | ---: |', ...rows.map((row) => `| ${row.join(' | ')} |`)]
  console.log(table.join('\n'))
  if (process.argv.includes('--write')) await writeReaders(table.join('\n'))
}

const index = process.argv.indexOf('--readers')
if (index >= 0) process.stdout.write(JSON.stringify(await measure(Number(process.argv[index + 1]))))
else await bench()
