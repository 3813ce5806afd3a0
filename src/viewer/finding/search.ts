import type { Book, LogText } from '../reading/book.js'
import { textAt } from '../reading/event-fields.js'
import type { EventPlace } from '../reading/nodes.js'
import { escapedPattern, linePattern, textsIn } from '../reading/texts.js'

/** What is looked for. */
export interface LogSearch {
  /** In any case; every character means itself. Empty: every event that the filters let through. */
  readonly text: string
  /** Only in these runs. Default: all of the book. */
  readonly runIds?: readonly string[]
  /** Only in events of these kinds. Default: all. */
  readonly kinds?: readonly string[]
  /** Only in events of calls of this tool. */
  readonly tool?: string
  /** Only in runs of this subagent; empty: in runs at the top. */
  readonly agent?: string
  /** Only in calls that failed, and in events of failures. */
  readonly failed?: boolean
}

/** A place in an event that has the text. */
export interface SearchHit extends EventPlace {
  readonly kind: string
  /** The member of the event that has it, such as `entry.parts[0].text`; empty for a query without a text. */
  readonly path: string
  /** The text around it, and where it stands in this. */
  readonly around: string
  readonly from: number
  readonly to: number
  /** How often the event has the text: each event is one hit. */
  readonly count: number
}

/** Lines that were looked at since the last `null`, at most. */
const STEP = 400

/**
 * The events that have a text, in the order of the logs, as they are found. A `null` stands between them, so that a page can show
 * what there is and go on later.
 *
 * @example
 * for (const hit of search(book, { text: 'refund' })) if (hit !== null) show(hit)
 */
export function* search(book: Book, query: LogSearch): Generator<SearchHit | null, void, undefined> {
  const pattern = query.text === '' ? null : linePattern(query.text)
  const words = query.text === '' ? null : new RegExp(escapedPattern(query.text), 'gi')
  for (const runId of query.runIds ?? book.runIds) {
    const run = book.run(runId)
    const log = book.log(runId)
    if (run === null || log === null || (query.agent !== undefined && (run.agentName ?? '') !== query.agent)) continue
    let looked = 0
    for (const line of candidates(log, pattern)) {
      if (line - looked >= STEP) {
        looked = line
        yield null
      }
      const event = log.length > line && mayPass(log.line(line), query) ? book.eventAt(runId, line) : null
      if (event === null || !passes(event, query)) continue
      const found = words === null ? NOWHERE : hitIn(event, words)
      if (found !== null) yield { runId, seq: event.seq, kind: event.kind, ...found }
    }
    yield null
  }
}

/** The lines that may have the text, as they are: each once. */
function* candidates(log: LogText, pattern: RegExp | null): Generator<number> {
  if (pattern === null) {
    for (let line = 0; line < log.length; line++) yield line
    return
  }
  pattern.lastIndex = 0
  const { text } = log
  while (pattern.test(text)) {
    const line = log.lineAt(pattern.lastIndex - 1)
    yield line
    pattern.lastIndex = log.ends(line)
  }
}

/** A quick look before an event is parsed: its kind stands at the beginning of its line. */
function mayPass(line: string, { kinds, tool }: LogSearch): boolean {
  if (kinds !== undefined && !kinds.some((kind) => line.includes(`"kind":"${kind}"`))) return false
  return tool === undefined || line.includes(JSON.stringify(tool))
}

function passes(event: object, { kinds, tool, failed }: LogSearch): boolean {
  const kind = textAt(event, 'kind')
  if (kinds !== undefined && !kinds.includes(kind)) return false
  if (tool !== undefined && textAt(event, 'toolName') !== tool) return false
  if (failed !== true) return true
  return kind === 'run_failed' || kind === 'hook_failed' || ('ok' in event && event.ok === false)
}

const NOWHERE = { path: '', around: '', from: 0, to: 0, count: 0 }

/** The first text of an event that has the words, and how many there are in all. */
function hitIn(event: object, words: RegExp): Omit<SearchHit, 'runId' | 'seq' | 'kind'> | null {
  let found: Omit<SearchHit, 'runId' | 'seq' | 'kind' | 'count'> | null = null
  let count = 0
  for (const [path, text] of textsIn(event, '')) {
    words.lastIndex = 0
    for (let match = words.exec(text); match !== null; match = words.exec(text)) {
      count += 1
      found ??= { path, ...around(text, match.index, match[0].length) }
    }
  }
  return found === null ? null : { ...found, count }
}

/** Characters before and after a hit. */
const AROUND = 60

function around(text: string, at: number, length: number): Pick<SearchHit, 'around' | 'from' | 'to'> {
  const begin = Math.max(0, at - AROUND)
  const piece = text.slice(begin, at + length + AROUND).replace(/\s/g, ' ')
  return { around: piece, from: at - begin, to: at - begin + length }
}
