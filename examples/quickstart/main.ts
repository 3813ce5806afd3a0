import { mkdir, stat } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Harness, HarnessError, fileLog } from 'thinharness'
import type { RunUsage } from 'thinharness'
import { durationText } from './call-text.js'
import { chooseModel } from './choose-model.js'
import { ensureOrders } from './orders.js'
import { QUESTION } from './question.js'
import { reader } from './reader.js'
import { Screen } from './screen.js'

const WORKSPACE = resolve('examples/quickstart/workspace')
const USAGE = `npm run quickstart -- ["your own question"] [options]

  --model MODEL        openai:…, anthropic:…, openrouter:…, local:NAME@http://127.0.0.1:8080/v1, or scripted
  --workspace FOLDER   the folder to work in; default: ${relative(process.cwd(), WORKSPACE)}
  --help`

/** Asks a question about real files, and shows how the harness answers it. */
async function main(): Promise<void> {
  const { model, workspace, question, help } = readArguments()
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
  await using harness = new Harness({
    model: chosen.model,
    root: workspace,
    builtinTools: ['read', 'write', 'edit', 'search', 'list', 'glob', 'jsonl_search'],
    subagents: [reader],
    log: fileLog(runs),
    limits: { modelRequests: 24, timeMs: 600_000 },
    prices: {},
    stall: true,
  })

  const started = performance.now()
  const stream = harness.stream(question, { deltas: true })
  for await (const event of stream) screen.show(event)
  const { usage } = await stream.result
  const path = (file: string): string => relative(process.cwd(), file)
  const isWritten = (await changedAt(report)) !== before
  screen.table([
    ['Report', isWritten ? path(report) : 'not written'],
    ['Turns', `${usage.modelRequests}, with ${usage.toolCalls} tool calls${ofSubagents(usage.children)}`],
    ['Tokens', `${usage.inputTokens} in (${usage.cacheReadTokens} from the cache), ${usage.outputTokens} out`],
    ['Time', durationText(performance.now() - started)],
    ...(usage.costUsd === null ? [] : [['Cost', `$${usage.costUsd}`] as const]),
    ['Log', path(join(runs, `${stream.runId}.jsonl`))],
  ])
}

function ofSubagents({ modelRequests, toolCalls }: RunUsage['children']): string {
  return modelRequests === 0 ? '' : `; subagents ${modelRequests}, with ${toolCalls}`
}

interface Arguments {
  readonly model: string | undefined
  readonly workspace: string
  readonly question: string
  readonly help: boolean
}

function readArguments(): Arguments {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { model: { type: 'string' }, workspace: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  })
  // npm runs scripts in the project's folder; INIT_CWD is the folder of the caller.
  const folder = process.env['INIT_CWD'] ?? '.'
  return {
    model: values.model,
    workspace: values.workspace === undefined ? WORKSPACE : resolve(folder, values.workspace),
    question: positionals.join(' ') || QUESTION,
    help: values.help ?? false,
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
main().catch(fail)
