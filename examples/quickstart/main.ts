import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readFile, stat } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { fileLog, HarnessError } from 'thinharness'
import type { RunUsage } from 'thinharness'
import { answer } from './answer.js'
import type { Task } from './answer.js'
import { durationText } from './call-text.js'
import { chooseModel } from './choose-model.js'
import { ensureOrders } from './orders.js'
import { QUESTION } from './question.js'
import { Screen } from './screen.js'

const WORKSPACE = resolve('examples/quickstart/workspace')
const USAGE = `npm run quickstart -- ["your own question"] [options]

  --model MODEL        openai:…, anthropic:…, openrouter:…, local:NAME@http://127.0.0.1:8080/v1, or scripted
  --workspace FOLDER   the folder to work in; default: ${relative(process.cwd(), WORKSPACE)}
  --keep-alive         does not kill the process in the middle of a call
  --help`

/** Asks a question about real files, kills the process that works on it, and lets another one finish the run. */
async function main(): Promise<void> {
  const { model, workspace, question, keepAlive, help } = readArguments()
  if (help) {
    console.log(USAGE)
    return
  }
  const report = join(workspace, 'report.md')
  const runs = join(workspace, '.thinharness', 'runs')
  await prepare(workspace, question)
  const before = await changedAt(report)

  const screen = new Screen(process.stdout)
  await using chosen = await chooseModel(model)
  screen.note(chosen.note)
  const started = performance.now()
  const runId = `run_${randomUUID().replaceAll('-', '')}`
  const task = { model: chosen.model, workspace, runs, runId }
  let end = await inProcess({ ...task, question, dies: !keepAlive })
  const wasKilled = end === 'SIGKILL'
  if (wasKilled) {
    screen.note('\n✗ The process was killed in the middle of this call: no warning, no clean-up.\n')
    screen.note('Another process recovers the run from its log:\n')
    end = await inProcess({ ...task, question: null, dies: false })
  }
  if (end !== 0) {
    process.exitCode = 1
    return
  }
  const isWritten = (await changedAt(report)) !== before
  if (isWritten) console.log(`${(await readFile(report, 'utf8')).trimEnd()}\n`)
  const summary = await fileLog(runs).inspect({ kind: 'run', id: runId })
  if (summary === null) return
  const path = (file: string): string => relative(process.cwd(), file)
  const requests = chosen.requests()
  const rows: (readonly [name: string, value: string])[] = [
    ['Report', isWritten ? path(report) : 'not written'],
    ...usageRows(summary.usage, 'scripted' in chosen.model),
    ['Time', durationText(performance.now() - started)],
    ['Log', path(join(runs, `${runId}.jsonl`))],
  ]
  if (wasKilled && requests !== null) rows.push(['Asked', askedText(requests, summary.usage)])
  screen.table(rows)
}

/** What the provider has counted, compared with what the run has in its log. */
function askedText(requests: number, { modelRequests, children }: RunUsage): string {
  const repeated = requests - modelRequests - children.modelRequests
  return `${requests} requests: ${repeated === 0 ? 'none was' : `${repeated} were`} repeated after the crash`
}

function usageRows(usage: RunUsage, isScripted: boolean): readonly (readonly [name: string, value: string])[] {
  const { modelRequests, toolCalls, inputTokens, cacheReadTokens, outputTokens, costUsd, children } = usage
  const ofChildren = `; subagents ${children.modelRequests}, with ${children.toolCalls}`
  const cost =
    costUsd === null ? [] : [['Cost', `$${costUsd.toFixed(4)}${isScripted ? ', at made-up prices' : ''}`] as const]
  return [
    ['Turns', `${modelRequests}, with ${toolCalls} tool calls${children.modelRequests === 0 ? '' : ofChildren}`],
    ['Tokens', `${inputTokens} in (${cacheReadTokens} from the cache), ${outputTokens} out`],
    ...cost,
  ]
}

/** Does a task in a process of its own: its exit code, or the signal that ended it. */
async function inProcess(task: Task): Promise<number | string> {
  const child = spawn(process.execPath, process.argv.slice(1), {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, QUICKSTART_TASK: JSON.stringify(task) },
  })
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  return signal ?? code ?? 1
}

interface Arguments {
  readonly model: string | undefined
  readonly workspace: string
  readonly question: string
  readonly keepAlive: boolean
  readonly help: boolean
}

function readArguments(): Arguments {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      model: { type: 'string' },
      workspace: { type: 'string' },
      'keep-alive': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  // npm runs scripts in the project's folder; INIT_CWD is the folder of the caller.
  const folder = process.env['INIT_CWD'] ?? '.'
  return {
    model: values.model,
    workspace: values.workspace === undefined ? WORKSPACE : resolve(folder, values.workspace),
    question: positionals.join(' ') || QUESTION,
    keepAlive: values['keep-alive'],
    help: values.help,
  }
}

/** Creates the orders, unless both the workspace and the question are the user's own. */
async function prepare(workspace: string, question: string): Promise<void> {
  await mkdir(workspace, { recursive: true })
  if (workspace === WORKSPACE || question === QUESTION) await ensureOrders(join(workspace, 'orders.jsonl'))
}

/** Modification time of a file in ms; null if it does not exist. */
function changedAt(path: string): Promise<number | null> {
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => null,
  )
}

/** Prints errors that the user can fix in one line. Anything else is a bug and keeps its stack. */
function fail(error: unknown): void {
  process.exitCode = 1
  const { code = '', message } = error as { code?: string; message: string }
  if (error instanceof HarnessError) {
    console.error(`\n${message}`)
    const turns = error.run?.usage.modelRequests ?? 0
    if (turns > 0) console.error(`(${error.code}, after ${turns} turns)`)
  } else if (code.startsWith('ERR_PARSE_ARGS')) {
    console.error(`${message.split('. ')[0] ?? ''}.\n\n${USAGE}`)
  } else if (['EEXIST', 'ENOTDIR', 'EACCES', 'EROFS', 'ENOSPC'].includes(code)) {
    console.error(`The workspace cannot be used: ${message}`)
  } else throw error
}

// The reader of a pipe, such as `head`, may close it early.
process.stdout.on('error', () => process.exit())
const task = process.env['QUICKSTART_TASK']
const work = task === undefined ? main() : answer(JSON.parse(task) as Task)
work.catch(fail)
