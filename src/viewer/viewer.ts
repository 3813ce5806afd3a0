import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { HarnessError } from '#contracts/errors.js'
import { gatherLogs } from './gather-logs.js'
import type { GatheredLog, ViewerOptions, ViewerSource } from './gather-logs.js'
import { packContainer } from './reading/container.js'
import type { ContainerHeader, LiveSource, LogPart, PartSummary } from './reading/container.js'
import { Outline } from './reading/outline.js'
import type { ReadEvent } from './reading/event-fields.js'
import { totalsOf } from './finding/series.js'
import { skim } from './reading/skim.js'

/**
 * One HTML file that shows a run, a conversation, or the newest runs of a log: it opens from a disk, loads nothing, and holds the log
 * itself, with those of child runs. What is in the log is in the page: `redact` changes events before. Changes nothing in the log.
 *
 * Throws `run_not_found` for a run or a conversation that is not there, and `invalid_options` for a log that cannot list its runs if no
 * run is named.
 *
 * @example
 * const page = await viewer(log, { runId: result.runId })
 * await writeFile('run.html', page)
 */
export async function viewer(source: ViewerSource, options: ViewerOptions = {}): Promise<string> {
  return pageOf(await gatherLogs(source, options), options)
}

/** The page with the logs in it. `live`: where it gets what comes next. */
export async function pageOf(logs: readonly GatheredLog[], options: ViewerOptions, live?: LiveSource): Promise<string> {
  const { compare, threadId, redact } = options
  const texts = logs.map(bytesOfLog)
  const ids = new Set(logs.map(({ runId }) => runId))
  const tops = logs.filter(({ parentRunId }) => parentRunId === null || !ids.has(parentRunId))
  const summaries = new Map(tops.map((log) => [log.runId, summaryOfLog(log)]))
  const parts = logs.map((log, index) => partOf(log, { bytes: texts[index]?.length ?? 0, threadId, summaries }))
  const named = options.runId ?? (tops.length === 1 ? tops[0]?.runId : undefined)
  const first = summaries.get(named ?? tops[0]?.runId ?? '')?.prompt ?? ''
  const many = threadId ?? `${tops.length} runs`
  const title = options.title ?? (named === undefined ? many : first || named)
  const header: ContainerHeader = {
    ...{ format: 1, title, logs: parts, root: named ?? null, redacted: redact !== undefined },
    ...(threadId !== undefined && { threadId }),
    ...(compare !== undefined && { compare }),
    ...(live !== undefined && { live }),
  }
  return filled(options.page ?? template(), { title, live, data: await packContainer(header, texts) })
}

function bytesOfLog({ lines, isCut }: GatheredLog): Uint8Array {
  const text = lines.map((line) => `${line}\n`).join('')
  return new TextEncoder().encode(isCut ? text.slice(0, -1) : text)
}

function partOf(
  { runId, parentRunId, problem }: GatheredLog,
  {
    bytes,
    threadId,
    summaries,
  }: {
    readonly bytes: number
    readonly threadId: string | undefined
    readonly summaries: ReadonlyMap<string, PartSummary>
  },
): LogPart {
  const summary = summaries.get(runId)
  return {
    ...{ runId, bytes },
    ...(parentRunId !== null && { parentRunId }),
    ...(threadId !== undefined && summary !== undefined && { threadId }),
    ...(summary !== undefined && { summary }),
    ...(problem !== null && { problem }),
  }
}

/** What a list says of a run. */
function summaryOfLog({ runId, lines, status, problem }: GatheredLog): PartSummary {
  const outline = new Outline(runId)
  for (const line of lines) {
    try {
      outline.push(skim(line) as ReadEvent)
    } catch {
      // The page says which line is broken.
    }
  }
  const { state, startedAt, updatedAt, prompt, model } = outline.node
  const { turns, calls, costUsd } = totalsOf(outline.node)
  const hasEnd = state !== 'running' && state !== 'queued' && state !== 'paused'
  return {
    status: problem === null ? (status ?? state) : 'unreadable',
    startedAt: new Date(startedAt).toISOString(),
    endedAt: hasEnd ? new Date(updatedAt).toISOString() : null,
    ...{ model, prompt, turns, calls, costUsd },
  }
}

/** The place of the logs in the template. */
const LOGS = '<!--logs-->'

function filled(
  page: string,
  { title, live, data }: { readonly title: string; readonly live: LiveSource | undefined; readonly data: string },
): string {
  if (!page.includes(LOGS)) throw new HarnessError('invalid_options', `Expected \`page\` to contain \`${LOGS}\`.`)
  // As functions: `$` in a title is no pattern.
  const whole = page
    .replace(/<title>[^<]*<\/title>/, () => `<title>${escapedHtml(title)}</title>`)
    .replace(LOGS, () => `<script type="text/plain" id="logs">${data}</script>`)
  return live === undefined ? whole : whole.replace("connect-src 'none'", "connect-src 'self'")
}

function escapedHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

/** Beside this module in the package, or where the build puts it. */
const PLACES = ['./page.html', './viewer/page.html', '../../dist/viewer/page.html', '../../../dist/viewer/page.html']
let known: string | undefined

function template(): string {
  if (known !== undefined) return known
  for (const place of PLACES) {
    const path = fileURLToPath(new URL(place, import.meta.url))
    if (existsSync(path)) return (known = readFileSync(path, 'utf8'))
  }
  throw new HarnessError(
    'missing_dependency',
    'The page of the viewer, `dist/viewer/page.html` of thinharness, is not there: give its text as `page`.',
  )
}
