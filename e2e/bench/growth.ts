// `npm run bench:growth`: the cost of a turn along a run, a conversation and a transcript, with many tools, and the memory of many
// waiting runs. `--write` puts the curves into e2e/bench/results.md, `--only <curve>` measures some of them, `--rounds <n>` sets the
// rounds, of which the table has the medians.
import { execFile } from 'node:child_process'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { perform, startProvider } from './children.js'
import { writeGrowth } from './document.js'
import { aligned, median, short } from './report.js'
import type { Points } from './growth-work.js'

/** Turns whose mean cost is a point of a curve along a run. */
const MEAN_OF = 100
/** Turns of 64 KiB in a MB of transcript. */
const TURNS_A_MB = 16

interface Line {
  readonly name: string
  readonly measure: (places: readonly number[], baseUrl: string) => Promise<Points>
}

interface Curve {
  readonly name: string
  readonly title: string
  readonly unit: string
  readonly places: readonly number[]
  readonly lines: readonly Line[]
}

const LOGS = [
  ['memory log', 'run, no HTTP'],
  ['file log', 'file log, fsync interval'],
] as const
const LOOPS = [
  ['thinharness over HTTP', 'thinharness'],
  ['careful over HTTP', 'careful'],
] as const

const CURVES: readonly Curve[] = [
  {
    name: 'turns',
    title: 'CPU of a turn, at the turn (1 KiB of tool output each)',
    unit: 'µs',
    places: [100, 500, 1000, 2500, 5000],
    lines: [...LOGS, ...LOOPS].map(([name, contender]) =>
      along(name, contender, { turnsAPlace: 1, resultChars: 1024 }),
    ),
  },
  {
    name: 'transcript',
    title: 'CPU of a turn, at MB of transcript (64 KiB of tool output each)',
    unit: 'µs',
    places: [7, 25, 50, 75, 100],
    lines: LOGS.map(([name, contender]) => along(name, contender, { turnsAPlace: TURNS_A_MB, resultChars: 65_536 })),
  },
  {
    name: 'tools',
    title: 'CPU of a turn, by the number of tools',
    unit: 'µs',
    places: [1, 10, 100, 1000],
    lines: [of('memory log', 'tools')],
  },
  {
    name: 'mcp',
    title: 'CPU of a turn with a call of an MCP server, by the number of its tools',
    unit: 'µs',
    places: [1, 50, 100, 200],
    lines: [of('memory log', 'mcp')],
  },
  {
    name: 'thread',
    title: 'CPU of a message, at the message of a thread',
    unit: 'µs',
    places: [100, 250, 500, 1000, 2000],
    lines: [of('memory log', 'thread-memory'), of('file log', 'thread-file')],
  },
  {
    name: 'waiting',
    title: 'Heap of a run that waits for its model, by the number of such runs',
    unit: 'KB',
    places: [100, 1000, 10_000],
    lines: [of('in process', 'waiting')],
  },
  {
    name: 'waiting-http',
    title: 'The same over HTTP, with both ends of its connection',
    unit: 'KB',
    places: [100, 500, 1000],
    lines: [of('over HTTP', 'waiting-http')],
  },
]

/** The cost along one run. */
function along(name: string, contender: string, each: { turnsAPlace: number; resultChars: number }): Line {
  const measure: Line['measure'] = async (places, baseUrl) => {
    const turns = Math.max(...places) * each.turnsAPlace + 1
    const work = { runs: 1, turns, resultChars: each.resultChars, marked: true }
    const { marks } = await perform({ contender, baseUrl, work })
    return Object.fromEntries(
      places.map((place) => {
        const end = place * each.turnsAPlace - 1
        const start = Math.max(0, end - MEAN_OF)
        return [place, (((marks[end] ?? NaN) - (marks[start] ?? NaN)) / (end - start)) * 1000]
      }),
    )
  }
  return { name, measure }
}

/** The figures of a process of `growth-work.ts`. */
function of(name: string, kind: string): Line {
  const program = fileURLToPath(new URL('growth-work.js', import.meta.url))
  const measure: Line['measure'] = async (places) => {
    const args = ['--expose-gc', program, kind, JSON.stringify(places)]
    return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout) as Points
  }
  return { name, measure }
}

async function tableOf({ places, unit, lines }: Curve, rounds: number, baseUrl: string): Promise<string> {
  const all: Points[][] = lines.map(() => [])
  for (let round = 0; round < rounds; round++)
    for (const [index, line] of lines.entries()) all[index]?.push(await line.measure(places, baseUrl))
  const scale = unit === 'KB' ? 1000 : 1
  const rows = lines.map(({ name }, index) => {
    const values = places.map((place) => median((all[index] ?? []).map((points) => points[place] ?? NaN)) / scale)
    const growth = (values.at(-1) ?? NaN) / (values[0] ?? NaN)
    return [`${name}, ${unit}`, ...values.map(short), `${short(growth)}×`]
  })
  return aligned([['', ...places.map((place) => place.toLocaleString('en-US')), 'last to first'], ...rows])
}

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    rounds: { type: 'string', default: '3' },
    write: { type: 'boolean', default: false },
  },
})
const rounds = Number(values.rounds)
const provider = await startProvider()
const sections: string[] = []
try {
  for (const curve of CURVES.filter(({ name }) => values.only.length === 0 || values.only.includes(name))) {
    const table = await tableOf(curve, rounds, provider.baseUrl)
    sections.push(`### ${curve.title}\n\n${table}`)
    console.log(`\n${curve.title} (${curve.name})\n\n${table}`)
  }
} finally {
  provider.stop()
}
const machine = `Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}`
if (values.write) await writeGrowth(sections, { machine, rounds })
