import { basename } from 'node:path'
import type { DurableEvent } from '../../index.js'
import { formatOf, providerOf, readSession } from './formats.js'
import type { FormatName } from './formats.js'
import { logOf, runIdOf } from './log-of.js'
import type { Imported } from './log-of.js'
import type { Session, SessionCounts, SessionItem } from './session.js'
import { sourceFileOf } from './source.js'
import { turnsOf } from './turns.js'
import type { SessionTurns } from './turns.js'

/** What was found in a file. */
export interface FileReport extends SessionCounts {
  readonly file: string
  readonly format: FormatName
  /** Null: the file has no conversation. */
  readonly runId: string | null
  /** Runs of the subagents of the session. */
  readonly childRunIds: readonly string[]
  readonly callsWithoutResult: number
  readonly resultsWithoutCall: number
  /** Records of kinds that are not known, which were left out: kind → how many. */
  readonly unknown: Readonly<Record<string, number>>
  /** Lines that are no JSON. */
  readonly broken: number
}

interface ImportedRun {
  readonly runId: string
  readonly events: readonly DurableEvent[]
}

/** A file as logs. */
export interface ReadSessionFile {
  readonly report: FileReport
  /** The session, then its subagents. */
  readonly runs: readonly ImportedRun[]
}

interface FileFacts {
  readonly file: string
  /** Default: by the content. */
  readonly from?: FormatName | undefined
  /** When it was written: for what has no time of its own. ISO 8601. */
  readonly at: string
  /** The folder of a session that names none. */
  readonly root: string
}

/** Reads the text of a session file; null if its format is not known. Never throws, whatever is in it. */
export function readFile(text: string, given: FileFacts): ReadSessionFile | null {
  const source = sourceFileOf(text)
  const format = given.from ?? formatOf(source)
  if (format === null) return null
  const session = readSession(format, source)
  const threads = [...session.threads].map(([agent, items]) => ({ agent, items, read: turnsOf(items) }))
  const [main, ...below] = threads.filter(({ read }) => read.turns.length > 0 || read.unanswered.length > 0)
  const runs: ImportedRun[] = []
  if (main !== undefined) {
    const imported = importedOf(session, { ...given, text, format, agent: main.agent })
    runs.push({ runId: imported.runId, events: logOf(main.read, imported) })
    for (const { agent, items, read } of below) {
      const own = importedOf(session, { ...given, text, format, agent })
      const parent = { runId: imported.runId, ...parentOf(agent, items, main.read) }
      runs.push({ runId: own.runId, events: logOf(read, { ...own, parent }) })
    }
  }
  const [runId = null, ...childRunIds] = runs.map((run) => run.runId)
  const sum = (count: (read: SessionTurns) => number): number => threads.reduce((all, { read }) => all + count(read), 0)
  const open = {
    callsWithoutResult: sum(({ openCalls }) => openCalls),
    resultsWithoutCall: sum((read) => read.strayResults),
  }
  const left = { unknown: Object.fromEntries(session.unknown), broken: source.broken }
  return { report: { file: given.file, format, runId, childRunIds, ...session.counts, ...open, ...left }, runs }
}

type ParentRun = NonNullable<Imported['parent']>

/** The call that started a subagent: the one with its prompt among its arguments. */
function parentOf(agentName: string, items: readonly SessionItem[], { turns }: SessionTurns): Omit<ParentRun, 'runId'> {
  const said = items.find((item) => item.kind === 'said')
  const prompt = said?.kind === 'said' && said.content[0]?.type === 'text' ? JSON.stringify(said.content[0].text) : null
  const calls = turns.flatMap(({ parts }) => parts.flatMap((part) => ('arguments' in part ? [part] : [])))
  const call = calls.find((each) => prompt !== null && each.arguments?.includes(prompt) === true)
  return { callId: call?.callId ?? null, agentName }
}

interface SessionFile extends FileFacts {
  readonly text: string
  readonly format: FormatName
  readonly agent: string
}

function importedOf({ facts }: Session, { file, text, format, agent, at, root }: SessionFile): Imported {
  const { id, cwd = root, version, provider = providerOf(format), model = 'unknown' } = facts
  const about = { format, file: basename(file), ...(id && { session: id }), ...(version && { version }) }
  const run = { runId: runIdOf(text, agent), root: cwd, provider, model, at }
  return { ...run, metadata: { imported: about }, labels: { imported: format } }
}
