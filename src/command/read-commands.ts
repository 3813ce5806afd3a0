import type { DurableEvent, RunStatus, RunSummary } from '../index.js'
import { codeOf, messageOf } from './follow-to-end.js'
import { CommandError, EXIT } from './exit-codes.js'
import { argumentText } from './terminal/run-tree.js'
import { isReference, openSetup, storedFlags } from './setup.js'
import type { RunFlags } from './setup.js'
import { eventsOf, findRun, openRuns } from './stored-runs.js'
import type { NamedRun } from './stored-runs.js'
import { costText, counted, countText, cut, oneLine, padded, visible, timeText } from './terminal/terminal.js'
import type { Colour, Terminal } from './terminal/terminal.js'

export interface ListFlags {
  readonly runs: string
  readonly status?: string
  readonly limit: number
  readonly before?: string
  readonly json?: boolean
}

const STATUS_COLOURS: Readonly<Partial<Record<RunStatus, Colour>>> = {
  completed: 'green',
  failed: 'red',
  paused: 'yellow',
  interrupted: 'yellow',
  running: 'cyan',
}

/** `list`: the runs of the store, the newest first. */
export async function list(flags: ListFlags, terminal: Terminal): Promise<number> {
  const log = await openRuns(flags.runs, true)
  const before = flags.before === undefined ? undefined : (await findRun(flags.before, flags.runs, true)).summary
  const status = flags.status?.split(',') as readonly RunStatus[] | undefined
  const rows: RunSummary[] = []
  for await (const summary of log.list({ parentRunId: null, ...(status && { status }), ...(before && { before }) })) {
    if (rows.push(summary) >= flags.limit) break
  }
  if (flags.json === true) {
    for (const { cursor: _cursor, ...row } of rows) terminal.out(`${JSON.stringify(row)}\n`)
    return EXIT.done
  }
  const prompts = await Promise.all(rows.map(async (row) => promptOf(await firstEvents({ log, summary: row }))))
  const cells = rows.map((row, index) => [
    ...[row.runId, row.status, timeText(Date.now() - Date.parse(row.startedAt)), row.model ?? ''],
    ...[`${row.usage.modelRequests}`, costText(row.usage.costUsd), prompts[index] ?? ''],
  ])
  writeTable(['RUN', 'STATUS', 'AGE', 'MODEL', 'TURNS', 'COST', 'PROMPT'], cells, terminal)
  return EXIT.done
}

/** A few of the first events: the prompt is in one of them. */
async function firstEvents({ log, summary }: NamedRun): Promise<readonly DurableEvent[]> {
  const events: DurableEvent[] = []
  for await (const event of log.read({ kind: 'run', id: summary.runId })) if (events.push(event) >= 2) break
  return events
}

function promptOf(events: readonly DurableEvent[]): string {
  for (const event of events) {
    if ((event.kind !== 'run_started' && event.kind !== 'run_queued') || event.prompt === null) continue
    const { prompt } = event
    if (typeof prompt === 'string') return oneLine(prompt)
    return oneLine(prompt.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join(' '))
  }
  return ''
}

/** The last column has what is left of the width; a pipe gets it whole. */
function writeTable(head: readonly string[], rows: readonly (readonly string[])[], terminal: Terminal): void {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    cells.map((cell, column) => (column === cells.length - 1 ? cell : padded(cell, widths[column] ?? 0))).join('  ')
  const fitted = (text: string): string => (terminal.isLive ? cut(text, terminal.width - 1) : text)
  terminal.out(`${fitted(line(head))}\n`)
  for (const row of rows) {
    const colour = STATUS_COLOURS[row[1] as RunStatus]
    terminal.out(`${fitted(line(row))}\n`, colour && [row[1] ?? '', colour])
  }
}

export interface InspectFlags {
  readonly runs: string
  readonly events?: boolean
  readonly event?: number
  readonly json?: boolean
}

/** Turns at the end that `inspect` shows. */
const LAST_TURNS = 5

/** `inspect RUN`: how it stands, what waits, and its last turns. */
export async function inspect(named: string, flags: InspectFlags, terminal: Terminal): Promise<number> {
  const found = await findRun(named, flags.runs, true)
  const { summary } = found
  if (flags.json === true && flags.events !== true) {
    terminal.out(`${JSON.stringify(summary)}\n`)
    return EXIT.done
  }
  const events = await eventsOf(found)
  if (flags.event !== undefined) {
    const event = events.find(({ seq }) => seq === flags.event)
    if (event === undefined)
      throw new CommandError(`Run \`${summary.runId}\` has no event ${flags.event}.`, EXIT.notFound)
    terminal.out(`${JSON.stringify(event, null, 2)}\n`)
    return EXIT.done
  }
  if (flags.events === true) {
    for (const event of events) terminal.out(`${JSON.stringify(event)}\n`)
    return EXIT.done
  }
  terminal.out(
    `${[...summaryLines(summary), ...limitLines(events), ...pendingLines(summary), '', ...turnLines(events)].join('\n')}\n`,
  )
  return EXIT.done
}

function summaryLines(summary: RunSummary): readonly string[] {
  const { usage, error, labels } = summary
  const end = summary.endedAt ?? summary.updatedAt
  const rows = [
    ['run', summary.runId],
    ['status', `${summary.status}${summary.stopReason === null ? '' : ` (${summary.stopReason})`}`],
    ['model', [summary.provider, summary.model].filter((name) => name !== null).join(':')],
    ['began', `${summary.startedAt}, ${timeText(Date.parse(end) - Date.parse(summary.startedAt))} in all`],
    ['turns', `${usage.modelRequests}, ${counted(usage.toolCalls, 'call')}`],
    [
      'tokens',
      `${countText(usage.inputTokens)} in (${countText(usage.cacheReadTokens)} cached), ${countText(usage.outputTokens)} out`,
    ],
    ['cost', costText(usage.costUsd) || 'unknown'],
    [
      'labels',
      Object.entries(labels)
        .map(([name, value]) => `${name}=${value}`)
        .join(', '),
    ],
    ['error', error === null ? '' : `${error.code}: ${oneLine(error.message)}`],
  ]
  return rows.filter(([, value]) => value !== '').map(([name = '', value = '']) => `${padded(name, 8)}${value}`)
}

function limitLines(events: readonly DurableEvent[]): readonly string[] {
  const started = events.find((event) => event.kind === 'run_started')
  const limits = Object.entries(started?.rules.limits ?? {}).filter(([, limit]) => limit !== null)
  return limits.length === 0
    ? []
    : [`${padded('limits', 8)}${limits.map(([name, limit]) => `${name} ${String(limit)}`).join(', ')}`]
}

function pendingLines({ pending }: RunSummary): readonly string[] {
  return pending.map(
    ({ kind, callId, toolName, arguments: text }) =>
      `${padded('waits', 8)}${kind} ${callId}: ${toolName} ${argumentText(text)}`,
  )
}

function turnLines(events: readonly DurableEvent[]): readonly string[] {
  const firsts = events.flatMap((event, index) => (event.kind === 'model_message' ? [index] : []))
  const from = firsts.at(-LAST_TURNS) ?? 0
  return events.slice(from).flatMap((event) => {
    if (event.kind === 'model_message') {
      const text = event.entry.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
      return [
        `● ${event.seq} turn ${firsts.findIndex((index) => events[index] === event) + 1}${text === '' ? '' : `: ${oneLine(text).slice(0, 200)}`}`,
      ]
    }
    if (event.kind !== 'tool_call_completed') return []
    const problem = event.ok ? '' : `: ${oneLine(event.message ?? '')}`
    return [`  ${event.ok ? '✓' : '✗'} ${event.seq} ${event.toolName} ${timeText(event.durationMs)}${problem}`]
  })
}

/** `replay RUN`: runs it again by its log, without effects; says the first difference. */
export async function replay(named: string, flags: RunFlags, terminal: Terminal): Promise<number> {
  const found = await findRun(named, flags.runs, true)
  const events = await eventsOf(found)
  const { provider, model, metadata } = found.summary
  const known = `${provider ?? ''}:${model ?? ''}`
  const chosen = flags.model ?? (isReference(known) ? known : undefined)
  const given = { ...flags, ...(chosen !== undefined && { model: chosen }) }
  const { harness, options } = await openSetup(given, found.log, storedFlags(metadata))
  const { root } = options
  try {
    const result = await harness.replay(events, { ...(root !== undefined && { root }) })
    terminal.say(`No difference in ${events.length} events: the run is ${result.status}.`)
    return EXIT.done
  } catch (error) {
    const isSameEnd = codeOf(error) === found.summary.error?.code
    terminal.say(
      isSameEnd ? `No difference in ${events.length} events: the run failed as it did.` : visible(messageOf(error)),
    )
    return isSameEnd ? EXIT.done : EXIT.failed
  } finally {
    await harness.close()
  }
}
