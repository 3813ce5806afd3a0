// The package with a model in its own process that answers at once: the cost of the loop itself.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTool, fileLog, Harness } from 'thinharness'
import { postgresLog } from 'thinharness/store/postgres'
import { sqliteLog } from 'thinharness/store/sqlite'
import { answerOf, INSTRUCTIONS, MODEL, readPrompt } from '../work.js'
import type { Contender, Open, Setting } from '../work.js'
import type { AssistantPart, FinishReason, HarnessOptions, Model, ModelTurn, RunLog } from 'thinharness'
import { NO_TOKENS } from '../tokens.js'

export function openRun(setting: Setting): Contender {
  return contenderOf(openHarness(setting))
}

/** The model is the first of a fallback, or one of a route. */
export function openRouted(around: (model: Model) => Model): Open {
  return (setting) => contenderOf(openHarness(setting, { model: around(instantModel()) }))
}

/** The events are read. */
export function openStream(setting: Setting): Contender {
  const harness = openHarness(setting)
  const ask: Contender['ask'] = async (prompt) => {
    const stream = harness.stream(prompt)
    let text = ''
    for await (const event of stream) if (event.kind === 'run_completed') text = event.result.text
    return text
  }
  return { ask, listen: ask }
}

/** The events are kept in files. */
export function openFileLog(fsync: 'never' | 'interval' | 'always'): Open {
  return openLogged((folder) => fileLog(folder, { fsync }))
}

/** The events are kept in an SQLite database. */
export function openSqliteLog(synchronous: 'normal' | 'full'): Open {
  return openLogged((folder) => sqliteLog(join(folder, 'runs.db'), { synchronous }))
}

/** The events are kept in a PostgreSQL database, in tables of this process. */
export function openPostgresLog(connectionString: string): Open {
  return openLogged(() => postgresLog({ connectionString, schema: `bench_${process.pid}` }))
}

function openLogged(openLog: (folder: string) => RunLog): Open {
  return (setting) => {
    const folder = mkdtempSync(join(tmpdir(), 'thinharness-bench-'))
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
    return contenderOf(openHarness(setting, { log: openLog(folder) }))
  }
}

function contenderOf(harness: Harness): Contender {
  let payload = 0
  const ask = async (prompt: string): Promise<string> => {
    const { text, transcript } = await harness.run(prompt)
    if (transcript.length > LONG) payload = JSON.stringify(transcript).length
    return text
  }
  return { ask, listen: ask, payload: () => payload }
}

/** Transcripts that are shorter are not weighed, in entries. */
const LONG = 1000

function openHarness({ tool }: Setting, options: HarnessOptions = {}): Harness {
  const { name, description, parameters, handler } = tool
  const call = (args: object): Promise<string> => handler(args as { id: string })
  return new Harness({
    model: instantModel(),
    instructions: INSTRUCTIONS,
    builtinTools: [],
    tools: [defineTool({ name, description, parameters, handler: call })],
    limits: { modelRequests: null },
    ...options,
  })
}

const USAGE = { ...NO_TOKENS, inputTokens: 100, outputTokens: 10 }

function instantModel(): Model {
  return {
    provider: 'in-process',
    id: MODEL,
    capabilities: {},
    openSession() {
      let turn = 0
      let turns = 0
      return {
        async turn(transcript) {
          const [first] = transcript
          const last = transcript.at(-1)
          if (last?.role === 'tool' && last.isError) throw new Error(`The tool failed: ${JSON.stringify(last.content)}`)
          if (first?.role === 'user' && turn === 0) turns = readPrompt(JSON.stringify(first.content)).turns
          turn += 1
          return turn === turns ? answerTurn() : callTurn(turn)
        },
      }
    },
  }
}

function callTurn(turn: number): ModelTurn {
  const call = { callId: `call_${turn}`, name: 'lookup', arguments: '{"id":"yyyyyyyyyy"}' }
  return modelTurn([{ type: 'tool_call', ...call }], 'tool_calls')
}

function answerTurn(): ModelTurn {
  return modelTurn([{ type: 'text', text: answerOf(1) }], 'stop')
}

function modelTurn(parts: readonly AssistantPart[], finishReason: FinishReason): ModelTurn {
  return {
    entry: { role: 'assistant', parts, provider: 'in-process', model: MODEL, finishReason, usage: USAGE },
    nativeFinishReason: finishReason,
    responseModel: MODEL,
  }
}
