import { mkdir, readFile, rm } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Harness, HarnessError, fileLog } from 'thinharness'
import { chooseModel } from './choose-model.js'
import { ensureOrders } from './orders.js'
import { QUESTION } from './question.js'
import { Screen } from './screen.js'

const USAGE = `npm run quickstart -- ["your own question"] [--model openai:… | anthropic:… | openrouter:… | local:NAME@http://… | scripted] [--workspace FOLDER]`

/** Asks a question about real files, and shows what the harness does to answer it. */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { model: { type: 'string' }, workspace: { type: 'string' }, help: { type: 'boolean' } },
  })
  if (values.help === true) {
    console.log(USAGE)
    return
  }

  const workspace = resolve(values.workspace ?? 'examples/quickstart/workspace')
  const report = join(workspace, 'report.md')
  const runs = join(workspace, '.thinharness', 'runs')
  await mkdir(workspace, { recursive: true })
  await ensureOrders(join(workspace, 'orders.jsonl'))
  await rm(report, { force: true })

  const screen = new Screen(process.stdout)
  await using chosen = await chooseModel(values.model)
  screen.note(chosen.note)
  await using harness = new Harness({
    model: chosen.model,
    root: workspace,
    builtinTools: ['read', 'write', 'edit', 'search', 'list', 'glob', 'jsonl_search'],
    log: fileLog(runs),
    limits: { modelRequests: 24, timeMs: 600_000 },
  })

  const stream = harness.stream(positionals.join(' ') || QUESTION, { deltas: true })
  for await (const event of stream) screen.show(event)
  const { usage } = await stream.result
  const path = (file: string): string => relative(process.cwd(), file)
  const written = await readFile(report, 'utf8').then(
    () => `Report     ${path(report)}`,
    () => 'Report     none was written',
  )
  screen.note(
    [
      written,
      `Turns      ${usage.modelRequests}, with ${usage.toolCalls} tool calls`,
      `Tokens     ${usage.inputTokens} in (${usage.cacheReadTokens} from the cache), ${usage.outputTokens} out`,
      `Log        ${path(join(runs, `${stream.runId}.jsonl`))}`,
    ].join('\n'),
  )
}

main().catch((error: unknown) => {
  if (!(error instanceof HarnessError)) throw error
  console.error(`\n${error.message}`)
  if (error.run !== undefined) console.error(`(${error.run.stopReason} after ${error.run.usage.modelRequests} turns)`)
  process.exitCode = 1
})
