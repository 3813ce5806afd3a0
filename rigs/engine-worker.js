// A process that carries out runs on DBOS, for tests that kill it. It is told what to do by its parent's messages:
//   { id, do: 'start', prompt, runId } · { id, do: 'result', runId } · { id, do: 'answer', runId, answers }
// and answers each with { id, value } or { id, error }. Each effect of a tool is a line of the file `--effects`:
//   <pid> <tool> <run id>/<call id>
import { appendFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    package: { type: 'string' },
    url: { type: 'string' },
    effects: { type: 'string' },
    version: { type: 'string', default: 'one' },
  },
})
const part = (path) => import(join(values.package, path))
const [{ Harness, defineTool }, { ScriptedModel }, { postgresLog }, { dbosRuns }] = await Promise.all(
  ['index.js', 'testing/index.js', 'store/postgres.js', 'durable/dbos/index.js'].map(part),
)

/** What a run says and calls, by its prompt, turn by turn. */
const PLAYS = {
  quick: [['once', 'safe'], ['once'], 'Quick.'],
  batch: [['once', 'hold', 'safe', 'once'], ['once'], 'All done.'],
  approve: [['once'], ['gated'], ['hold', 'once'], 'Approved.'],
}

const model = new ScriptedModel().always(({ turn, messages }) => {
  const prompt = String(messages.find(({ role }) => role === 'user').content)
  const line = PLAYS[prompt][turn]
  return typeof line === 'string' ? line : { calls: line.map((name) => ({ name })) }
})

function tool(name, work, beside = {}) {
  const handler = async (_, { runId, callId }) => {
    appendFileSync(values.effects, `${process.pid} ${name} ${runId}/${callId}\n`, { flush: true })
    await work()
    return 'ok'
  }
  return defineTool({ name, description: `The tool ${name}.`, parameters: { type: 'object' }, handler, ...beside })
}

/** Until the parent has killed one that holds; the others find the file that says so. */
const released = async () => {
  while (!existsSync(`${values.effects}.released`)) await new Promise((resolve) => setTimeout(resolve, 20))
}

const tools = [
  tool('once', () => undefined),
  tool('gated', () => undefined, { requiresApproval: true }),
  tool('safe', () => undefined, { annotations: { readOnly: true } }),
  tool('hold', released),
]
const runs = await dbosRuns({
  harness: new Harness({ model, tools, builtinTools: [] }),
  log: postgresLog({ connectionString: values.url }),
  launch: { databaseUrl: values.url, applicationVersion: values.version },
  queue: { pollMs: 100, workerConcurrency: 8 },
  takeOverEveryMs: 300,
})

const commands = {
  start: async ({ prompt, runId }) => (await runs.start(prompt, { runId })).runId,
  answer: async ({ runId, answers }) => (await runs.answer(runId, answers)).runId,
  result: async ({ runId }) => {
    const { text, stopReason, pending, toolCallRecords } = await (await runs.get(runId)).result()
    return { text, stopReason, pending, outputs: toolCallRecords.map(({ output }) => output) }
  },
}

process.on('message', ({ id, do: command, ...rest }) => {
  commands[command](rest).then(
    (value) => process.send({ id, value }),
    (error) => process.send({ id, error: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
process.send({ id: 0 })
