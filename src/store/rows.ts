import { HarnessError } from '../contracts/errors.js'
import { summaryOf } from '../run/log/digest.js'
import type { LogSummaries, RunDigest, RunStatus, RunSummary, ThreadSummary } from '../run/log/digest.js'
import { isListed, listQuery } from '../run/log/listing.js'
import type { ListOptions, ListQuery, Place } from '../run/log/listing.js'
import type { AppendOptions, LogEvent, LogStore } from '../run/log/log.js'
import type { LogKind, LogRef } from '../run/log/ref.js'
import { isObject, parseJson } from '../util/json.js'
import type { JsonObject } from '../util/json.js'
import { foldRun } from './fold-run.js'

/** Rows that are fetched together. */
export const PAGE_ROWS = 100

/** The columns that store a log in short, as its writer passes it with some events; null: as it was before them. */
export interface DigestColumns {
  readonly lastSeq: number
  /** Of a run with a digest. */
  readonly phase: string | null
  readonly startedAt: string | null
  readonly updatedAt: string
  readonly parentRunId: string | null
  readonly resourceId: string | null
  /** JSON; null if the writer passed none. */
  readonly digest: string | null
}

/** The fields of a run's first event that its row needs. */
interface Beginning {
  readonly parentRunId: unknown
  readonly metadata: unknown
}

/** `isNew`: the log has no events yet. */
export function columnsOf(
  events: readonly [LogEvent, ...LogEvent[]],
  { digest }: AppendOptions,
  isNew: boolean,
): DigestColumns {
  const [first] = events
  const last = events.at(-1) ?? first
  const beginning: Partial<Beginning> = isNew ? (first as LogEvent & Partial<Beginning>) : {}
  const run = isRunDigest(digest) ? digest : null
  const metadata = run?.metadata ?? beginning.metadata
  const parentRunId = run?.parent?.runId ?? beginning.parentRunId
  return {
    lastSeq: last.seq,
    phase: run?.phase ?? null,
    startedAt: run?.startedAt ?? (isNew ? first.at : null),
    updatedAt: last.at,
    parentRunId: textOr(parentRunId),
    resourceId: textOr((digest as JsonObject | undefined)?.['resourceId'] ?? resourceIn(metadata)),
    digest: digest === undefined ? null : JSON.stringify(digest),
  }
}

function isRunDigest(digest: AppendOptions['digest']): digest is RunDigest {
  return digest !== undefined && 'phase' in digest && 'usage' in digest && 'startedAt' in digest
}

function resourceIn(metadata: unknown): unknown {
  return isObject(metadata) ? metadata['resourceId'] : undefined
}

function textOr(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** One page of a list, in its order. */
export interface PageQuery {
  readonly kind: LogKind
  /** Of the runs; null: all. Rows without a phase are wanted in any case. */
  readonly phases: readonly RunDigest['phase'][] | null
  readonly parentRunId: string | null | undefined
  readonly resourceId: string | undefined
  readonly before: Place | null
}

/** A log as a row stores it. */
export interface LogRow {
  readonly id: string
  readonly lastSeq: number
  readonly startedAt: string
  readonly updatedAt: string
  /** JSON. */
  readonly digest: string | null
  /** Who has claimed it, if that claim has not expired and its process is not known to have ended. */
  readonly owner: string | null
}

/** The summaries of a list that is fetched page by page. A run without a digest that cannot be read is left out. */
export async function* listPages<Kind extends LogKind = 'run'>(
  options: ListOptions<Kind> | undefined,
  fetchPage: (query: PageQuery) => Promise<readonly LogRow[]>,
  log: LogStore,
): AsyncGenerator<LogSummaries[Kind]> {
  const query = listQuery(options)
  const { kind, parentRunId, resourceId } = query
  const phases = phasesOf(query)
  let { before } = query
  for (;;) {
    const rows: readonly LogRow[] = await fetchPage({ kind, phases, parentRunId, resourceId, before })
    for (const row of rows) {
      const summary = await unlessDamaged(summaryOfRow(kind, row, log))
      if (summary !== null && isListed(query, summary)) yield summary as LogSummaries[Kind]
    }
    const last = rows.at(-1)
    if (rows.length < PAGE_ROWS || last === undefined) return
    before = { time: kind === 'run' ? last.startedAt : last.updatedAt, id: last.id }
  }
}

function phasesOf({ statuses }: ListQuery): readonly RunDigest['phase'][] | null {
  if (statuses === undefined) return null
  const isOpen = (status: RunStatus): boolean => status === 'running' || status === 'interrupted'
  return [...new Set(statuses.map((status) => (isOpen(status) ? 'open' : status) as RunDigest['phase']))]
}

/** The summary of a log; of a run without a digest by folding its events. */
export async function summaryOfRow(
  kind: LogKind,
  row: LogRow,
  log: LogStore,
): Promise<RunSummary | ThreadSummary | null> {
  const { id, lastSeq, startedAt, updatedAt, owner } = row
  const digest = row.digest === null ? null : (JSON.parse(row.digest) as JsonObject)
  if (kind === 'thread') return { threadId: id, createdAt: startedAt, updatedAt, lastSeq, owner, digest }
  const known = (digest as RunDigest | null) ?? (await foldRun(log, id))
  return known === null ? null : summaryOf(known, owner !== null)
}

/** Null in place of a log that is damaged, or that has been removed in the meantime. */
export async function unlessDamaged<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading
  } catch (error) {
    const isDamaged = error instanceof HarnessError && error.code === 'invalid_log'
    if (isDamaged || (error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Reads the events of a log page by page, and checks that none is missing. */
export async function* readPages<Event extends LogEvent>(
  ref: LogRef,
  after: number,
  fetchPage: (after: number) => Promise<readonly { readonly seq: number; readonly event: string }[]>,
): AsyncGenerator<Event> {
  let last: number | null = null
  for (;;) {
    const rows = await fetchPage(last ?? after)
    for (const { seq, event } of rows) {
      const parsed = parseJson(event)
      if (last !== null && seq !== last + 1) throw damaged(ref, last + 1, 'is missing')
      if (!parsed.ok || !isObject(parsed.value) || parsed.value['seq'] !== seq) {
        throw damaged(ref, seq, 'cannot be read')
      }
      last = seq
      yield parsed.value as unknown as Event
    }
    if (rows.length < PAGE_ROWS) return
  }
}

function damaged({ kind, id }: LogRef, seq: number, problem: string): HarnessError {
  return new HarnessError('invalid_log', `The log of ${kind} \`${id}\` is damaged: event ${seq} ${problem}.`)
}
