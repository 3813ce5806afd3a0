// `npm run bench:tools`: the search tools compared with ripgrep and a loop by hand, on generated files in a temporary folder.
// First, the tokens of tool results as sent, compared with the bare data.
// `--files 100000` is the size of the tree, `--megabytes 200,1000` the sizes of the rows, `--rounds 3` how often.
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { tokenSection } from './tool-tokens.js'
import { writeRows, writeTree } from './tool-files.js'
import type { ToolJob, ToolReport } from './tool-contender.js'

interface Line {
  readonly title: string
  readonly contender: string
  readonly args: Readonly<Record<string, unknown>>
  /** Time, as a multiple of the first line. */
  readonly most?: number
  readonly mostMb?: number
}

interface Comparison {
  readonly title: string
  readonly root: string
  readonly rounds: number
  /** No contender starts a program, so that CPU time can be compared. */
  readonly inProcess?: boolean
}

const CONTENDER = fileURLToPath(new URL('./tool-contender.js', import.meta.url))
const LONGEST_MS = 600_000

function perform(job: ToolJob): Promise<ToolReport> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [CONTENDER, JSON.stringify(job)], { stdio: ['ignore', 'pipe', 'inherit'] })
    const timer = setTimeout(() => child.kill('SIGKILL'), LONGEST_MS)
    let text = ''
    child.stdout.on('data', (bytes) => (text += String(bytes)))
    child.once('error', reject)
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0) resolve(JSON.parse(text) as ToolReport)
      else reject(new Error(`\`${job.contender}\` ended with ${signal ?? `code ${code}`}.`))
    })
  })
}

/** The same work by several contenders, interleaved. The best round of each counts: the others show the load of the machine. */
async function compare({ title, root, rounds, inProcess = false }: Comparison, lines: readonly Line[]): Promise<void> {
  const reports = new Map(lines.map((line): [Line, ToolReport[]] => [line, []]))
  for (let round = 0; round < rounds; round++) {
    for (const line of lines) {
      const { contender, args } = line
      reports.get(line)?.push(await perform({ contender, root, args }))
    }
  }
  console.log(`\n${title}\n`)
  let first = 0
  for (const [line, all] of reports) {
    const ms = Math.min(...all.map((report) => (inProcess ? report.cpuMs : report.ms)))
    const mb = Math.max(...all.map(({ peakMb }) => peakMb))
    first ||= ms
    console.log(
      `${line.title.padEnd(44)} ${(ms / 1000).toFixed(2).padStart(7)} s ${(ms / first).toFixed(2)}× ${mb.toFixed(0).padStart(4)} MB`,
    )
    if (line.most !== undefined && ms > first * line.most)
      console.log(`MISSED ${line.title}: at most ${line.most}× the first line`)
    if (line.mostMb !== undefined && mb > line.mostMb) console.log(`MISSED ${line.title}: at most ${line.mostMb} MB`)
  }
}

async function benchTree(root: string, files: number, rounds: number): Promise<void> {
  await writeTree(root, files)
  const byHand = (pattern: string) => ({ command: ['--no-config', '--line-number', pattern, root] })
  for (const [what, query] of [
    ['a rare word', 'needle'],
    ['a pattern in a tenth of the files', 'order order order \\w+ late'],
    ['a word of every second line', 'order'],
  ] as const) {
    await compare({ title: `${files} files: ${what}`, root, rounds }, [
      { title: 'ripgrep by hand', contender: 'ripgrep by hand', args: byHand(query) },
      { title: '`search`', contender: 'search', args: { query }, most: 1.3, mostMb: 150 },
      { title: '`search` without ripgrep', contender: 'search, own engine', args: { query }, mostMb: 150 },
    ])
  }
  await compare({ title: `${files} files: names`, root, rounds }, [
    {
      title: 'ripgrep --files by hand',
      contender: 'ripgrep by hand',
      args: { command: ['--no-config', '--files', root] },
    },
    { title: '`glob` **/*.md', contender: 'glob', args: { pattern: '**/*.md' }, mostMb: 150 },
    { title: '`list`, recursive', contender: 'list', args: { recursive: true }, mostMb: 150 },
  ])
}

async function benchRows(root: string, megabytes: number, rounds: number): Promise<void> {
  const path = `rows-${megabytes}.jsonl`
  const file = join(root, path)
  await writeRows(file, megabytes * 1e6)
  const where = [
    { field: 'status', op: 'eq', value: 'late' },
    { field: 'total', op: 'gt', type: 'number', value: '900' },
  ]
  const shown = { path, fields: { id: 20, 'customer.name': 50 }, max_matches_per_file: 10_000, timeout: 600 }
  const order_by = [{ field: 'total', type: 'number', direction: 'desc' }]
  await compare({ title: `${megabytes} MB of JSONL`, root, rounds, inProcess: true }, [
    { title: 'a streaming loop by hand: filter, projection', contender: 'a loop by hand', args: { file } },
    { title: '`jsonl_search`: the same', contender: 'jsonl_search', args: { ...shown, where }, most: 1, mostMb: 150 },
    {
      title: '… with a query before it',
      contender: 'jsonl_search',
      args: { ...shown, where, query: '"late"' },
      most: 1,
      mostMb: 150,
    },
    {
      title: '… count_by',
      contender: 'jsonl_search',
      args: { path, count_by: 'customer.country', timeout: 600 },
      mostMb: 150,
    },
    {
      title: '… order_by, the first ten',
      contender: 'jsonl_search',
      args: { path, order_by, limit: 10, timeout: 600 },
      mostMb: 150,
    },
  ])
  await rm(file)
}

const { values } = parseArgs({
  options: {
    files: { type: 'string', default: '100000' },
    megabytes: { type: 'string', default: '200,1000' },
    rounds: { type: 'string', default: '3' },
  },
})
const folder = await mkdtemp(join(tmpdir(), 'thinharness-bench-'))
try {
  console.log(
    `Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}; the best of ${values.rounds} rounds.`,
  )
  const { title, table, notes } = await tokenSection()
  console.log([`\n${title}\n`, table, ...notes].join('\n'))
  const rounds = Number(values.rounds)
  const [tree, rows] = [join(folder, 'tree'), join(folder, 'rows')]
  await mkdir(rows)
  if (Number(values.files) > 0) await benchTree(tree, Number(values.files), rounds)
  for (const megabytes of values.megabytes.split(',').map(Number))
    if (megabytes > 0) await benchRows(rows, megabytes, rounds)
} finally {
  await rm(folder, { recursive: true, force: true })
}
