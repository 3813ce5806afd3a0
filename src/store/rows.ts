import { HarnessError } from '../contracts/errors.js'
import type { DurableEvent } from '../run/machine/events.js'
import { listFilter, statusesOf } from '../run/log/listing.js'
import type { ListOptions, ListPlace } from '../run/log/listing.js'
import { digestAfter, summaryOf } from '../run/log/summary.js'
import type { RunDigest, RunSummary } from '../run/log/summary.js'
import { isObject, parseJson } from '../util/json.js'

/** Rows that are fetched together. */
export const PAGE_ROWS = 100

/** One page of a list, newest first. */
export interface PageQuery {
  readonly phases: readonly RunDigest['phase'][]
  /** Undefined: all; null: those at the top. */
  readonly parentRunId: string | null | undefined
  readonly before: ListPlace | null
}

export interface ListedRow {
  readonly digest: RunDigest
  /** Somebody has it in hand. */
  readonly isHeld: boolean
}

const PHASES: readonly RunDigest['phase'][] = ['open', 'paused', 'completed', 'failed', 'cancelled']

/** The summaries of a list that is fetched page by page. */
export async function* listPages(
  options: ListOptions,
  fetchPage: (query: PageQuery) => Promise<readonly ListedRow[]>,
): AsyncGenerator<RunSummary> {
  const wanted = listFilter(options)
  const wantedPhases: readonly string[] | undefined = statusesOf(options)?.map(phaseOf)
  const phases = PHASES.filter((phase) => wantedPhases?.includes(phase) ?? true)
  let before: ListPlace | null = options.before ?? null
  for (;;) {
    const rows: readonly ListedRow[] = await fetchPage({ phases, parentRunId: options.parentRunId, before })
    for (const { digest, isHeld } of rows) {
      const summary = summaryOf(digest, isHeld)
      if (wanted(summary)) yield summary
    }
    if (rows.length < PAGE_ROWS) return
    before = rows.at(-1)?.digest ?? null
  }
}

function phaseOf(status: RunSummary['status']): RunDigest['phase'] {
  return status === 'running' || status === 'interrupted' ? 'open' : status
}

/** Reads the events of a run page by page, and checks that none is missing. */
export async function* readPages(
  runId: string,
  from: number,
  fetchPage: (from: number) => Promise<readonly { readonly seq: number; readonly event: string }[]>,
): AsyncGenerator<DurableEvent> {
  let next: number | null = null
  for (;;) {
    const rows = await fetchPage(next ?? from)
    for (const { seq, event } of rows) {
      const parsed = parseJson(event)
      if (next !== null && seq !== next) throw damaged(runId, next, 'is missing')
      if (!parsed.ok || !isObject(parsed.value) || parsed.value['seq'] !== seq) {
        throw damaged(runId, seq, 'cannot be read')
      }
      next = seq + 1
      yield parsed.value as unknown as DurableEvent
    }
    if (rows.length < PAGE_ROWS) return
  }
}

function damaged(runId: string, seq: number, what: string): HarnessError {
  return new HarnessError('invalid_log', `The log of run \`${runId}\` is damaged: event ${seq} ${what}.`)
}

/** The digest with the events behind it. */
export function digestWith(runId: string, before: RunDigest | null, events: readonly DurableEvent[]): RunDigest | null {
  let digest = before
  for (const event of events) digest = digestAfter(runId, digest, event)
  return digest
}

/** A digest as it is stored, beside the columns that are made of it. */
export function digestIn(text: string | null): RunDigest | null {
  return text === null ? null : (JSON.parse(text) as RunDigest)
}
