// A process that executes runs on DBOS, for tests that kill it. Its parent sends it commands:
//   { id, do: 'start', prompt, runId } · { id, do: 'result', runId } · { id, do: 'answer', runId, answers }
// and it replies to each with { id, value } or { id, error }. Each effect of a tool is a line of the file `--effects`:
//   <pid> <tool> <run id>/<call id>
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { defineTool, Harness } from 'thinharness'
import type { Answer, ToolOptions, ToolSpec } from 'thinharness'
import { dbosRuns } from 'thinharness/durable/dbos'
import { postgresLog } from 'thinharness/store/postgres'
import { ScriptedModel } from 'thinharness/testing'

type Command =
  | { readonly id: number; readonly do: 'start'; readonly prompt: string; readonly runId: string }
  | { readonly id: number; readonly do: 'answer'; readonly runId: string; readonly answers: readonly Answer[] }
  | { readonly id: number; readonly do: 'result'; readonly runId: string }

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: '' },
    effects: { type: 'string', default: '' },
    version: { type: 'string', default: 'one' },
  },
})

/** The replies of the model by prompt, turn by turn: a text, or the names of tools to call. */
const SCRIPTS: Readonly<Record<string, readonly (string | readonly string[])[]>> = {
  quick: [['once', 'safe'], ['once'], 'Quick.'],
  batch: [['once', 'hold', 'safe', 'once'], ['once'], 'All done.'],
  approve: [['once'], ['gated'], ['hold', 'once'], 'Approved.'],
}

const model = new ScriptedModel().always(({ turn, messages }) => {
  const prompt = messages.find((message) => message.role === 'user')?.content
  const line = SCRIPTS[String(prompt)]?.[turn]
  if (line === undefined) throw new Error(`There is no script for turn ${turn} of ${String(prompt)}.`)
  return typeof line === 'string' ? line : { calls: line.map((name) => ({ name })) }
})

function tool(
  name: string,
  work: () => unknown,
  options: Partial<ToolOptions<{ readonly type: 'object' }>> = {},
): ToolSpec {
  return defineTool({
    name,
    description: `The tool ${name}.`,
    parameters: { type: 'object' },
    handler: async (_, { runId, callId }) => {
      appendFileSync(values.effects, `${process.pid} ${name} ${runId}/${callId}\n`, { flush: true })
      await work()
      return 'ok'
    },
    ...options,
  })
}

/** The parent kills the first process that waits here, and then creates the file for the others. */
async function released(): Promise<void> {
  while (!existsSync(`${values.effects}.released`)) await sleep(20)
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

async function execute(command: Command): Promise<unknown> {
  const { runId } = command
  switch (command.do) {
    case 'start':
      return (await runs.start(command.prompt, { runId })).runId
    case 'answer':
      return (await runs.answer(runId, command.answers)).runId
    case 'result': {
      const { text, stopReason, pending, toolCallRecords } = await (await runs.get(runId)).result()
      return { text, stopReason, pending, outputs: toolCallRecords.map(({ output }) => output) }
    }
  }
}

process.on('message', (command: Command) => {
  const { id } = command
  execute(command).then(
    (value) => process.send?.({ id, value }),
    (error: unknown) => process.send?.({ id, error: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
process.send?.({ id: 0 })
