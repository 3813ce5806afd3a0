import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { LOCAL } from '#adapters/ui/handlers/authorization.js'
import type { LogStore } from '../../index.js'
import type { ViewerOptions } from '../../viewer/index.js'
import { CommandError, EXIT } from '../exit-codes.js'
import { openSetup } from '../setup.js'
import type { RunFlags } from '../setup.js'
import { findRun, openRuns } from '../stored-runs.js'
import type { Terminal } from '../terminal/terminal.js'

export interface ViewFlags extends RunFlags {
  readonly out?: string
  readonly serve?: boolean
  readonly approvals?: boolean
  readonly port: number
  readonly diff?: string
  readonly thread?: string
  readonly limit: number
}

/** What is shown: of a store, or of the text of a file. */
interface Viewed {
  readonly source: LogStore | string
  readonly options: ViewerOptions
}

const WHAT_IS_IN_IT = 'What is in the log is in the page: mind secrets before you pass it on.'

/** `view [RUN]`: the page of a run, of a conversation, or of the newest runs; in a file, or from a server that follows them. */
export async function view(named: string | undefined, flags: ViewFlags, terminal: Terminal): Promise<number> {
  if (flags.approvals === true && flags.serve !== true)
    throw new CommandError('`--approvals` needs `--serve`: nobody can answer in a file.')
  if (flags.diff !== undefined && named === undefined)
    throw new CommandError('`--diff` compares a run with another one: `thinharness view RUN --diff RUN`.')
  if (flags.thread !== undefined && named !== undefined)
    throw new CommandError('Name a run, or a conversation by `--thread`, and not both.')
  const viewed = await viewedOf(named, flags)
  if (flags.serve === true) return serveView(viewed, flags, terminal)
  const { source, options } = viewed
  const { viewer } = await import('../../viewer/index.js')
  const page = await viewer(source, options)
  if (flags.out === '-') terminal.out(page)
  else {
    const path = resolve(flags.out ?? temporaryPath(options))
    // It may hold secrets.
    await writeFile(path, page, { mode: 0o600 })
    terminal.out(`${path}\n`)
    if (flags.out === undefined) openPage(pathToFileURL(path).href, terminal)
  }
  terminal.say(WHAT_IS_IN_IT)
  return EXIT.done
}

function temporaryPath({ runId, threadId }: ViewerOptions): string {
  const name = (runId ?? threadId ?? 'runs').replace(/[^\w.-]/g, '_')
  return join(tmpdir(), `thinharness-${name}-${process.pid}.html`)
}

async function viewedOf(named: string | undefined, flags: ViewFlags): Promise<Viewed> {
  const { thread, diff, limit, approvals } = flags
  const isFolder = named !== undefined && existsSync(named) && statSync(named).isDirectory()
  const runs = isFolder ? named : flags.runs
  if (named === undefined || isFolder) {
    const source = await openRuns(runs, approvals !== true)
    return { source, options: thread === undefined ? { limit } : { threadId: thread } }
  }
  const one = await sideOf(named, runs, approvals !== true)
  if (diff === undefined) return { source: one.source, options: one.isAlone ? { runId: one.runId } : {} }
  const other = await sideOf(diff, runs, true)
  const options = { runId: one.runId, compare: other.runId }
  if (typeof one.source !== 'string' && typeof other.source !== 'string') return { source: one.source, options }
  return { source: `${await textOfSide(one)}\n${await textOfSide(other)}`, options }
}

interface Side {
  readonly source: LogStore | string
  readonly runId: string
  /** A file may have several runs. */
  readonly isAlone: boolean
}

/** A run of the store, or the text of a file of events, which is shown as far as it can be read. */
async function sideOf(named: string, runs: string, readOnly: boolean): Promise<Side> {
  if (!existsSync(named) || !/[./\\]/.test(named)) {
    const { log, summary } = await findRun(named, runs, readOnly)
    return { source: log, runId: summary.runId, isAlone: true }
  }
  const source = await readFile(named, 'utf8')
  const { gatherLogs } = await import('../../viewer/gather-logs.js')
  const logs = await gatherLogs(source, {})
  const tops = logs.filter(({ parentRunId }) => parentRunId === null)
  return { source, runId: logs[0]?.runId ?? '', isAlone: tops.length <= 1 }
}

async function textOfSide({ source, runId }: Side): Promise<string> {
  const { gatherLogs } = await import('../../viewer/gather-logs.js')
  const logs = await gatherLogs(source, { runId })
  return logs.flatMap(({ lines }) => lines).join('\n')
}

/** Until Ctrl-C. */
async function serveView({ source, options }: Viewed, flags: ViewFlags, terminal: Terminal): Promise<number> {
  if (typeof source === 'string')
    throw new CommandError('A file does not go on: `--serve` follows the runs of `--runs`.')
  const setup = flags.approvals === true ? await openSetup(flags, source) : null
  const { viewerHandler } = await import('../../viewer/index.js')
  const { serveLoopback } = await import('./loopback.js')
  const show = viewerHandler(source, {
    ...options,
    // Who knows the token of the address may look.
    authorize: () => LOCAL,
    ...(setup !== null && {
      answers: (runId, answers) => setup.harness.streamResumeRun(runId, answers, { log: source }),
    }),
  })
  const server = await serveLoopback({ handle: (request) => show(request), port: flags.port })
  terminal.out(`${server.address}\n`)
  terminal.say(`${WHAT_IS_IN_IT} Ctrl-C ends the server.`)
  openPage(server.address, terminal)
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
  await server.close()
  await setup?.harness.close()
  return EXIT.done
}

/** Opens an address for a person at a terminal; where there is no browser, nothing happens. */
function openPage(address: string, terminal: Terminal): void {
  if (!terminal.canAsk) return
  const [program = '', ...args] = OPENERS[process.platform] ?? ['xdg-open']
  const opened = spawn(program, [...args, address], { detached: true, stdio: 'ignore' })
  opened.on('error', () => undefined)
  opened.unref()
}

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
}
