// `npm run bench:sessions`: conversations in each store. 1,000 threads with the shape of discussions (`--threads` of them) are
// played for the bytes that they store; messages are compared with the bare runs that they start, late ones with early ones, and a
// thread of 500 messages is opened. `--url` is the address of a PostgreSQL server; without it that store is left out. Each
// measurement has a process of its own. `--write` puts the figures into e2e/bench/results.md.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { writeSessions } from './document.js'
import { median } from './report.js'
import type { LateFigures, PlayFigures } from './session-work.js'

const ROUNDS = 3
const STORES = ['memory', 'file', 'sqlite', 'postgres'] as const

function optionOf(name: string): string | undefined {
  const index = process.argv.indexOf(`--${name}`)
  return index < 0 ? undefined : process.argv[index + 1]
}

const threads = Number(optionOf('threads') ?? 1000)
const url = optionOf('url')
const only = optionOf('store')
const stores = STORES.filter((store) => (store !== 'postgres' || url !== undefined) && (only ?? store) === store)

/** Does one measurement in a process of its own, with a new place for its store. */
async function perform<Figures>(kind: string, store: string, ...more: readonly string[]): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-sessions-'))
  try {
    const place = store === 'postgres' ? (url ?? '') : folder
    const program = new URL('session-work.js', import.meta.url).pathname
    const args = ['--expose-gc', program, kind, store, place, ...more]
    const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1e7 })
    return JSON.parse(stdout) as Figures
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function rounds(kind: string, store: string): Promise<readonly LateFigures[]> {
  const all: LateFigures[] = []
  for (let round = 0; round < ROUNDS; round += 1) all.push(await perform<LateFigures>(kind, store))
  return all
}

function medianOf(all: readonly LateFigures[], value: (figures: LateFigures) => number): number {
  return median(all.map(value))
}

/**
 * The bound on what a store adds to 1.2 times the content of a turn, in bytes: the JSON of the events of its thread and run, a second
 * copy of its message, and in databases the summary of its run and the unused parts of pages (SQLite: 5,800).
 */
const MOST_BYTES = 6000

/** Bytes per turn of the content, of what is stored for it and of the bound for that, and whether the bound holds. */
function bytesOf({ turns, contentBytes, storedBytes }: PlayFigures): readonly string[] {
  const perTurn = (bytes: number): string => Math.round(bytes / turns).toLocaleString('en')
  const bound = 1.2 * contentBytes + MOST_BYTES * turns
  if (storedBytes === null) return [perTurn(contentBytes), '–', perTurn(bound), '–', '–']
  const verdict = storedBytes <= bound ? 'holds' : `${perTurn(storedBytes - bound)} short`
  return [perTurn(contentBytes), perTurn(storedBytes), perTurn(bound), (storedBytes / contentBytes).toFixed(2), verdict]
}

async function bench(): Promise<void> {
  const rows: string[][] = []
  for (const store of stores) {
    const played = await perform<PlayFigures>('play', store, String(threads))
    console.error(`${store}: ${JSON.stringify(played)}`)
    const late = await rounds('late', store)
    const at = (name: 'early' | 'late'): number =>
      medianOf(late, (figures) => figures[name].sessionMs - figures[name].postMs)
    const bare = medianOf(late, ({ message, run }) => message - run)
    console.error(`${store}: ${JSON.stringify(late)}`)
    rows.push([
      store,
      ...bytesOf(played),
      (played.cpuMs / played.turns).toFixed(2),
      bare.toFixed(2),
      at('early').toFixed(2),
      at('late').toFixed(2),
      medianOf(late, ({ openMs }) => openMs).toFixed(1),
    ])
  }
  const head = [
    'store',
    'content per turn',
    'bytes stored per turn',
    'bound',
    'stored / content',
    '',
    'CPU per message of all threads',
    'message above its bare run (≤ 0.1)',
    'message 10 above a bare POST',
    'message 500 above a bare POST',
    'opening 500 messages (≤ 30)',
  ]
  const rules = head.map((_, index) => (index === 0 ? '---' : '---:'))
  const table = [head, rules, ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
  console.log(table)
  if (process.argv.includes('--write')) await writeSessions(table, threads)
}

await bench()
