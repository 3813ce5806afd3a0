import { existsSync, readFileSync } from 'node:fs'
import type { DurableEvent, LogStore, RunSummary } from '../index.js'
import { CommandError, EXIT } from './exit-codes.js'

/** Where runs are kept, unless `--runs` says so. */
export const DEFAULT_RUNS = '.thinharness/runs'

/** A store that may have to be closed. */
export type RunStore = LogStore & { readonly close?: () => Promise<void> }

/** How long a summary of a run is looked for by the beginning of its id. */
const MOST_SEARCHED = 20_000

/** The runs of a folder, or of a SQLite file (`runs.db`). */
export async function openRuns(place: string, readOnly = false): Promise<RunStore> {
  const isDatabase = /\.(?:db|sqlite3?)$/i.test(place)
  if (readOnly && !existsSync(place)) throw new CommandError(`There are no runs in \`${place}\`.`, EXIT.notFound)
  if (isDatabase) {
    const { sqliteLog } = await import('../store/sqlite.js')
    return sqliteLog(place)
  }
  const { fileLog } = await import('../store/file-log.js')
  return fileLog(place, { ...(readOnly && { readOnly }) })
}

/** A run that a person names: its id, the beginning of one that is unique, `last`, or a file of events. */
export interface NamedRun {
  readonly log: LogStore
  readonly summary: RunSummary
}

export async function findRun(named: string, runs: string, readOnly = false): Promise<NamedRun> {
  if (!/^[\w.-]+$/.test(named) || (named.includes('.') && existsSync(named))) return runOfFile(named)
  const log = await openRuns(runs, readOnly)
  const summary = await summaryOf(log, named)
  if (summary === null) {
    const message = `There is no run \`${named}\` in \`${runs}\`: \`thinharness list\` shows which there are.`
    throw new CommandError(message, EXIT.notFound)
  }
  return { log, summary }
}

async function summaryOf(log: LogStore, named: string): Promise<RunSummary | null> {
  if (named !== 'last') {
    const exact = await log.inspect({ kind: 'run', id: named })
    if (exact !== null) return exact
  }
  const found: RunSummary[] = []
  let searched = 0
  for await (const summary of log.list({ parentRunId: null })) {
    if (named === 'last') return summary
    if (summary.runId.startsWith(named) || summary.runId.startsWith(`run_${named}`)) found.push(summary)
    if (++searched >= MOST_SEARCHED) break
  }
  if (found.length < 2) return found[0] ?? null
  const ids = found.slice(0, 5).map(({ runId }) => `\`${runId}\``)
  throw new CommandError(`\`${named}\` begins the ids of ${found.length} runs: ${ids.join(', ')}.`, EXIT.notFound)
}

/** A run whose events are in a file, one a line, with those of its child runs. */
async function runOfFile(path: string): Promise<NamedRun> {
  if (!existsSync(path)) throw new CommandError(`There is no file \`${path}\`.`, EXIT.notFound)
  const { memoryLog } = await import('../store/memory-log.js')
  const log = memoryLog()
  const events = readFileSync(path, 'utf8')
    .split('\n')
    .filter(isFilled)
    .map((line, index) => eventOf(line, path, index))
  const byRun = new Map<string, DurableEvent[]>()
  for (const event of events) byRun.set(event.runId, [...(byRun.get(event.runId) ?? []), event])
  for (const [id, own] of byRun) await log.append({ kind: 'run', id }, own)
  const first = events.find(({ parentRunId }) => parentRunId === null) ?? events[0]
  const summary = first === undefined ? null : await log.inspect({ kind: 'run', id: first.runId })
  if (summary === null) throw new CommandError(`\`${path}\` has no events of a run.`, EXIT.notFound)
  return { log, summary }
}

function isFilled(line: string): boolean {
  return line.trim() !== ''
}

function eventOf(line: string, path: string, index: number): DurableEvent {
  try {
    const event = JSON.parse(line) as DurableEvent
    if (typeof event.runId === 'string' && typeof event.kind === 'string') return event
  } catch {
    // Said below.
  }
  throw new CommandError(`Line ${index + 1} of \`${path}\` is no event of a run.`, EXIT.notFound)
}

/** All of a list. */
export async function eventsOf({ log, summary }: NamedRun): Promise<readonly DurableEvent[]> {
  const events: DurableEvent[] = []
  for await (const event of log.read({ kind: 'run', id: summary.runId })) events.push(event)
  return events
}
