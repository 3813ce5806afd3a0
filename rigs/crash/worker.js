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
const again = await harness.recover(runId)
const runs = await runsBelow(runId)
say({ appends, outcome: outcomeOf(result, runs), again: outcomeOf(again, runs), runs })
await harness.close()
await store.close?.()

/** The model of all agents: what it says is found by the prompt and the turn, in whatever process it is asked. */
function playing() {
  return new ScriptedModel().always(async ({ messages }) => {
    await sleep(Math.random() < 0.5 ? 0 : 2)
    const { content } = messages.find(({ role }) => role === 'user')
    const line = lineAt(agents[content], messages)
    return typeof line === 'string' ? line : { calls: line }
  })
}

/** All calls come first, whenever reports do; an answer is given once, the last one again. */
function lineAt(lines, messages) {
  const said = messages.filter(({ role }) => role === 'assistant')
  const called = said.filter(({ calls }) => calls.length > 0).length
  const calls = lines.filter((line) => typeof line !== 'string')
  if (called < calls.length) return calls[called]
  const answers = lines.slice(calls.length)
  return answers.find((answer) => !said.some(({ text }) => text === answer)) ?? answers.at(-1)
}

async function toTheEnd() {
  let reached = await begun()
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

/** Begins the run or goes on with it, once nobody is in the middle of claiming it any more. */
async function begun() {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ((await isKnown()) ? harness.recover(runId) : harness.run('top', { runId }))
    } catch (error) {
      // A process that was killed while it claimed the run is taken for one that still does, for 5 s.
      if (!['run_owned', 'run_exists'].includes(error.code) || attempt === 40) throw error
      await sleep(250)
    }
  }
}

/** A log of which not even the first record was kept whole is one of a run that has not begun. */
async function isKnown() {
  try {
    return (await store.inspect({ kind: 'run', id: runId })) !== null
  } catch (error) {
    if (error.code === 'invalid_log' && error.message.includes('none of its events was stored')) return false
    throw error
  }
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

/**
 * What is the same in every run of a scenario, and what the model was told of each call. How many requests tell reports
 * depends on who is first: they are not counted.
 */
function outcomeOf({ text, output, usage, toolCallRecords }, [top, ...below]) {
  const { toolCalls, outputRetries, children } = usage
  const modelRequests = usage.modelRequests - top.reportRequests
  const requestsBelow = below.reduce((sum, { reportRequests }) => sum - reportRequests, children.modelRequests)
  const counts = { modelRequests, toolCalls, outputRetries, children: { ...children, modelRequests: requestsBelow } }
  return { text, output, usage: counts, records: toolCallRecords }
}

/** The run and those below it, each with its calls, what it left in the background and heard of it, and how its log ends. */
async function runsBelow(topId) {
  const runs = []
  for (const queue = [topId]; queue.length > 0;) {
    const id = queue.shift()
    const [calls, left, reported] = [[], [], []]
    let reportRequests = 0
    let seq = 0
    let end = null
    for await (const event of store.read({ kind: 'run', id })) {
      if (event.seq !== seq + 1) throw new Error(`Run ${id} has event ${event.seq} behind ${seq}.`)
      seq = event.seq
      end = event.kind
      if (event.kind === 'model_request_started' && event.requestKind === 'background_report') reportRequests += 1
      if (event.kind === 'background_reported') reported.push({ runId: event.childRunId, ok: event.ok })
      if (event.kind === 'tool_call_completed') {
        const { callId, toolName, ok, errorType, background = [] } = event
        calls.push({ key: `${id}:${callId}`, toolName, ok, errorType })
        left.push(...background.map(({ childRunId }) => childRunId))
      }
    }
    runs.push({ runId: id, end, calls, left, reported, reportRequests })
    for await (const { runId: below } of store.list({ parentRunId: id })) queue.push(below)
  }
  return runs
}

function say(line) {
  writeSync(1, `${JSON.stringify(line)}\n`)
}
