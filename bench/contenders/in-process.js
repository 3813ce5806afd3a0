// The package with a model in its own process that answers at once: what the loop itself costs.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTool, fileLog, Harness } from 'thinharness'
import { postgresLog } from 'thinharness/store/postgres'
import { sqliteLog } from 'thinharness/store/sqlite'
import { answerOf, INSTRUCTIONS, MODEL, readPrompt } from '../work.js'

/** @typedef {import('../work.js').Setting} Setting */

/** @typedef {import('../work.js').Contender} Contender */

/** @param {Setting} setting */
export function openRun(setting) {
  return contenderOf(openHarness(setting))
}

/** The events are read. @param {Setting} setting @returns {Contender} */
export function openStream(setting) {
  const harness = openHarness(setting)
  /** @type {Contender['ask']} */
  const ask = async (prompt) => {
    const stream = harness.stream(prompt)
    let text = ''
    for await (const event of stream) if (event.kind === 'run_completed') text = event.result.text
    return text
  }
  return { ask, listen: ask }
}

/** The events are kept in files. @param {'never' | 'interval' | 'always'} fsync */
export function openFileLog(fsync) {
  return openLogged((folder) => fileLog(folder, { fsync }))
}

/** The events are kept in an SQLite database. @param {'normal' | 'full'} synchronous */
export function openSqliteLog(synchronous) {
  return openLogged((folder) => sqliteLog(join(folder, 'runs.db'), { synchronous }))
}

/** The events are kept in a PostgreSQL database, in tables of this process. @param {string} connectionString */
export function openPostgresLog(connectionString) {
  return openLogged(() => postgresLog({ connectionString, schema: `bench_${process.pid}` }))
}

/** @param {(folder: string) => import('thinharness').RunLog} openLog */
function openLogged(openLog) {
  return (/** @type {Setting} */ setting) => {
    const folder = mkdtempSync(join(tmpdir(), 'thinharness-bench-'))
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
    return contenderOf(openHarness(setting, { log: openLog(folder) }))
  }
}

/** @param {Harness} harness @returns {Contender} */
function contenderOf(harness) {
  let payload = 0
  const ask = async (/** @type {string} */ prompt) => {
    const { text, transcript } = await harness.run(prompt)
    if (transcript.length > LONG) payload = JSON.stringify(transcript).length
    return text
  }
  return { ask, listen: ask, payload: () => payload }
}

/** Transcripts that are shorter are not weighed, in entries. */
const LONG = 1000

/** @param {Setting} setting @param {import('thinharness').HarnessOptions} [options] */
function openHarness({ tool }, options = {}) {
  const { name, description, parameters, handler } = tool
  const call = (/** @type {object} */ args) => handler(/** @type {{ id: string }} */ (args))
  return new Harness({
    model: instantModel(),
    instructions: INSTRUCTIONS,
    builtinTools: [],
    tools: [defineTool({ name, description, parameters, handler: call })],
    limits: { modelRequests: null },
    ...options,
  })
}

const USAGE = { inputTokens: 100, outputTokens: 10, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }

/** @returns {import('thinharness').Model} */
function instantModel() {
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
          if (last?.role === 'tool' && last.isError) throw new Error(`The tool failed: ${String(last.content)}`)
          if (first?.role === 'user' && turn === 0) turns = readPrompt(JSON.stringify(first.content)).turns
          turn += 1
          return turn === turns ? answerTurn() : callTurn(turn)
        },
      }
    },
  }
}

/** @param {number} turn */
function callTurn(turn) {
  const call = { callId: `call_${turn}`, name: 'lookup', arguments: '{"id":"yyyyyyyyyy"}' }
  return { ...modelTurn([{ type: /** @type {const} */ ('tool_call'), ...call }], 'tool_calls'), toolCalls: [call] }
}

function answerTurn() {
  const text = answerOf(1)
  return { ...modelTurn([{ type: /** @type {const} */ ('text'), text }], 'stop'), text }
}

/**
 * @param {readonly import('thinharness').AssistantPart[]} parts
 * @param {import('thinharness').FinishReason} finishReason
 * @returns {import('thinharness').ModelTurn}
 */
function modelTurn(parts, finishReason) {
  return {
    entry: { role: 'assistant', parts, provider: 'in-process', model: MODEL, finishReason, usage: USAGE },
    text: '',
    toolCalls: [],
    finishReason,
    nativeFinishReason: finishReason,
    usage: USAGE,
    responseId: null,
    responseModel: MODEL,
    raw: null,
  }
}
