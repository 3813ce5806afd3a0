import { existsSync, readFileSync, statSync } from 'node:fs'
import type { LogStore } from '../index.js'
import { CommandError, EXIT } from './exit-codes.js'
import { openRuns } from './stored-runs.js'
import { counted, visible } from './terminal/terminal.js'
import type { Terminal } from './terminal/terminal.js'
import { FORMAT_NAMES } from './import/formats.js'
import type { FormatName } from './import/formats.js'
import { readFile } from './import/read-file.js'
import type { FileReport } from './import/read-file.js'

export interface ImportFlags {
  readonly runs: string
  readonly from?: string
  readonly json?: boolean
}

/** What became of a file, as `--json` prints it. */
export interface ImportReport extends FileReport {
  /** It had been imported before, and was left as it is. */
  readonly known: boolean
}

/** `import FILE…`: sessions of other agents become runs. A file that cannot be read does not keep the others from it. */
export async function importFiles(files: readonly string[], flags: ImportFlags, terminal: Terminal): Promise<number> {
  const from = formatNamed(flags.from)
  const log = await openRuns(flags.runs)
  let exitCode: number = EXIT.done
  try {
    for (const file of files) {
      try {
        const report = await importFile(file, from, log)
        if (flags.json === true) terminal.out(`${JSON.stringify(report)}\n`)
        else for (const line of linesOf(report)) terminal.say(visible(line))
        if (flags.json !== true && report.runId !== null) terminal.out(`${report.runId}\n`)
      } catch (error) {
        if (!(error instanceof CommandError) || files.length === 1) throw error
        terminal.say(error.message)
        exitCode = Math.max(exitCode, error.exitCode)
      }
    }
  } finally {
    await log.close?.()
  }
  return exitCode
}

function formatNamed(name: string | undefined): FormatName | undefined {
  if (name === undefined) return undefined
  const found = FORMAT_NAMES.find((each) => each === name)
  if (found !== undefined) return found
  throw new CommandError(`There is no format \`${name}\`. Formats: ${FORMAT_NAMES.join(', ')}.`)
}

async function importFile(file: string, from: FormatName | undefined, log: LogStore): Promise<ImportReport> {
  if (!existsSync(file) || !statSync(file).isFile())
    throw new CommandError(`There is no file \`${file}\`.`, EXIT.notFound)
  const [text, modified] = [readFileSync(file, 'utf8'), statSync(file).mtime]
  const read = readFile(text, { file, from, at: modified.toISOString(), root: process.cwd() })
  if (read === null)
    throw new CommandError(
      `\`${file}\` is no session of a known format. Name it with \`--from\`: ${FORMAT_NAMES.join(', ')}.`,
    )
  let known = false
  for (const { runId, events } of read.runs) {
    const ref = { kind: 'run', id: runId } as const
    if ((await log.inspect(ref)) === null) await log.append(ref, events)
    else known = true
  }
  return { ...read.report, known }
}

/** What a person reads of it. */
function linesOf(report: ImportReport): readonly string[] {
  const { runId, turns, calls, known, childRunIds, broken, callsWithoutResult, resultsWithoutCall } = report
  const what = `${counted(turns, 'turn')}, ${counted(calls, 'call')}`
  const under = childRunIds.length === 0 ? '' : `, and ${counted(childRunIds.length, 'run')} of subagents below it`
  const first =
    runId === null
      ? `${report.file} (${report.format}) has no conversation: nothing was stored.`
      : `${known ? 'was imported before' : 'imported'} ${what} (${report.format}) as run ${runId}${under}`
  const kinds = Object.entries(report.unknown)
  const unknown = kinds.reduce((sum, [, count]) => sum + count, 0)
  const names = kinds.slice(0, MOST_KINDS).map(([kind, count]) => (count === 1 ? kind : `${kind} (${count})`))
  const left = kinds.length > MOST_KINDS ? [...names, '…'] : names
  return [
    first,
    ...(unknown > 0 ? [`${counted(unknown, 'record')} of unknown kinds left out: ${left.join(', ')}`] : []),
    ...(broken > 0 ? [`${counted(broken, 'line')} could not be read`] : []),
    ...(callsWithoutResult > 0 ? [`${counted(callsWithoutResult, 'call')} without a result in the file`] : []),
    ...(resultsWithoutCall > 0
      ? [`${counted(resultsWithoutCall, 'result')} of calls that are not in the file left out`]
      : []),
  ]
}

/** Names of kinds that a person is shown. */
const MOST_KINDS = 8
