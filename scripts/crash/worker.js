// One process of the kill rig: begins a run or goes on with it, answers what waits, and says what came of it. It may be
// told to kill itself at an append; its parent may kill it at any moment.
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { Counter } from './counter.js'
import { toTheEndOnEngine } from './engine.js'
import { scenarioOf } from './scenario.js'
import { killingAt, openStore } from './store.js'
import { toolsOf } from './tools.js'

const { packageFolder, store: storeName, place, runId, seed, kill, counterPath } = JSON.parse(process.argv[2])
const core = await import(`${packageFolder}/index.js`)
const { ScriptedModel } = await import(`${packageFolder}/testing/index.js`)

const { agents } = scenarioOf(seed)
const counter = new Counter(counterPath)
const store = await openStore(packageFolder, storeName, place)
const log = killingAt(store, kill)
const harness = new core.Harness({
  model: playing(),
  builtinTools: [],
  tools: toolsOf(core, counter, agents),
  outputType: z.object({ answer: z.string() }),
  outputMode: 'prompted',
  toolRetries: 100,
  log,
})
say({ ready: true })
const result = await (storeName === 'dbos' ? onEngine() : toTheEnd())
const appends = log.appends
// Once more, from the log alone: it has ended, and says the same.
const again = await harness.recover(runId).result
const runs = await runsBelow(runId)
say({ appends, outcome: outcomeOf(result), again: outcomeOf(again), runs })
await harness.close()
await store.close?.()

/** The model of all agents: what it says is found by the prompt and the turn, in whatever process it is asked. */
function playing() {
  return new ScriptedModel().always(async ({ turn, messages }) => {
    await sleep(Math.random() < 0.5 ? 0 : 2)
    const { content } = messages.find(({ role }) => role === 'user')
    const line = agents[content][turn]
    return typeof line === 'string' ? line : { calls: line }
  })
}

async function toTheEnd() {
  const known = await store.inspect(runId)
  let reached = await (known === null ? harness.run('top', { runId }) : harness.recover(runId).result)
  while (reached.pending.length > 0) {
    reached = await harness.resume(reached.resumeState, answersTo(reached.pending))
  }
  return reached
}

function onEngine() {
  return toTheEndOnEngine({ packageFolder, harness, log, url: place, runId, answersTo })
}

/** Some now and others later. */
function answersTo(pending) {
  return pending.map(answerTo).filter((_, index) => index % 2 === 0)
}

/** People who say the same of the same call each time they are asked. */
function answerTo({ kind, callId, toolName, arguments: text, payload, path }) {
  if (kind === 'question') return { callId, answer: payload.question }
  if (kind === 'unknown_outcome') {
    const key = `${path.at(-1)}:${callId.split('/').at(-1)}`
    return { callId, answer: counter.has(key) ? { outcome: 'happened', result: 'it did' } : { outcome: 'run_again' } }
  }
  const { n } = JSON.parse(text)
  if (toolName === 'edited') return { callId, approved: true, editedArguments: { n: n + 1 } }
  return n % 5 === 0 ? { callId, approved: false, reason: 'No.' } : { callId, approved: true }
}

/** What is the same in every run of a scenario, and what the model was told of each call. */
function outcomeOf({ text, output, usage, toolCallRecords }) {
  const { modelRequests, toolCalls, outputRetries, children } = usage
  return { text, output, usage: { modelRequests, toolCalls, outputRetries, children }, records: toolCallRecords }
}

/** The run and those below it, each with its calls and how its log ends. */
async function runsBelow(topId) {
  const runs = []
  for (const queue = [topId]; queue.length > 0;) {
    const id = queue.shift()
    const calls = []
    let seq = 0
    let end = null
    for await (const event of store.read(id)) {
      if (event.seq !== seq + 1) throw new Error(`Run ${id} has event ${event.seq} behind ${seq}.`)
      seq = event.seq
      end = event.kind
      if (event.kind === 'tool_call_completed') {
        const { callId, toolName, ok, errorType } = event
        calls.push({ key: `${id}:${callId}`, toolName, ok, errorType })
      }
    }
    runs.push({ runId: id, end, calls })
    for await (const { runId: below } of store.list({ parentRunId: id })) queue.push(below)
  }
  return runs
}

function say(line) {
  writeSync(1, `${JSON.stringify(line)}\n`)
}
