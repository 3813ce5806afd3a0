// Writes logs and stored states as this version of the package makes them: tests/corpus/v<version>/<name>.jsonl has all
// events of a run and of those below it, <name>.json its state, index.json how each ended. They are kept: every later
// version must read them (tests/corpus/corpus.test.ts). Made once for each version of the format:
//   npm run build && node tests/corpus/make-corpus.js [--package <folder>]
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { z } from 'zod'

const { values } = parseArgs({
  options: { package: { type: 'string', default: fileURLToPath(new URL('../../dist', import.meta.url)) } },
})
const { Harness, defineTool, memoryLog, ModelRetry } = await import(`${values.package}/index.js`)
const { ScriptedModel } = await import(`${values.package}/testing/index.js`)

const parameters = z.object({ n: z.number().default(1) })
const make = (name, handler, beside = {}) =>
  defineTool({ name, description: `The tool ${name}.`, parameters, handler, ...beside })
const TOOLS = [
  make('look', ({ n }) => `seen ${n}`, { annotations: { readOnly: true } }),
  make('pay', ({ n }) => `paid ${n}`, { requiresApproval: true, preview: ({ n }) => ({ amount: n }) }),
  make('ask', (_, { ask }) => ask({ which: 'color' }, z.string())),
  make('retry', () => Promise.reject(new ModelRetry('Another number.'))),
  make('slow', (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped')))),
]
const delegate = make(
  'delegate',
  async (_, context) => {
    const runs = ['first', 'second'].map((key) => context.spawn({ prompt: key, key, agentName: key, tools: TOOLS }))
    return (await Promise.all(runs.map(({ result }) => result))).map(({ text }) => text)
  },
  { onUnknownOutcome: 'retry' },
)
const leave = make(
  'leave',
  (_, context) => context.spawn({ prompt: 'first', agentName: 'first', tools: TOOLS, background: true }).runId,
  { onUnknownOutcome: 'retry' },
)
const ANSWER = { outputType: z.object({ answer: z.string() }), outputMode: 'tool' }

const CASES = {
  plain: { plays: { go: ['Hello.'] } },
  tools: { plays: { go: [['look', 'retry', 'nobody', 'look'], ['look'], 'All seen.'] } },
  structured: { plays: { go: ['no answer', { final_result: { answer: 'yes' } }] }, options: ANSWER },
  paused_approval: { plays: { go: [['pay', 'look'], 'Paid.'] } },
  question_in_child: { plays: { go: [['delegate'], 'Done.'], first: [['ask'], 'Red.'], second: [['look'], 'Seen.'] } },
  question_in_background: { plays: { go: [['leave'], 'Waiting.', 'Done.'], first: [['ask'], 'Red.'] } },
  resumed: { plays: { go: [['pay'], 'Paid.'] }, resumes: true },
  resumed_elsewhere: { plays: { go: [['pay'], ['look'], 'Paid.'] }, resumes: true, elsewhere: true },
  failed: { plays: { go: [['look'], 'Too late.'] }, options: { limits: { modelRequests: 1 } } },
  aborted: { plays: { go: [['slow', 'look'], 'Never.'] }, abortsAt: 'tool_call_started' },
  continued: { plays: { go: [['look'], 'Hello.'], more: ['Again.'] }, continues: true },
  retried: { plays: { go: [['look'], 'In time.'] }, options: { limits: { modelRequests: 1 } }, retries: true },
  interrupted: { plays: { go: [['look', 'ask'], 'Never.'] }, cutBehind: 'tool_call_started' },
}

const format = await formatVersion()
const folder = fileURLToPath(new URL(`v${format}/`, import.meta.url))
await rm(folder, { recursive: true, force: true })
await mkdir(folder, { recursive: true })
const index = []
for (const [name, each] of Object.entries(CASES)) index.push(await write(name, each))
await writeFile(`${folder}index.json`, `${JSON.stringify(index, null, 2)}\n`)
console.log(`${index.length} runs in ${folder}`)

async function formatVersion() {
  const { resumeState } = await new Harness({ builtinTools: [], model: new ScriptedModel().says('Hello.') }).run('go')
  return resumeState.version
}

async function write(name, { plays, options = {}, abortsAt, cutBehind, ...further }) {
  const { resumes = false, elsewhere = false, continues = false, retries = false } = further
  const runId = `run_${name}`
  let log = keepingLog()
  const controller = new AbortController()
  if (abortsAt !== undefined) log.onEvent = ({ kind }) => kind === abortsAt && controller.abort(new Error('Enough.'))
  const harness = () =>
    new Harness({
      builtinTools: [],
      model: playing(plays),
      tools: [...TOOLS, delegate, leave],
      root: '/work',
      log,
      ...options,
    })
  const { signal } = controller
  const metadata = { tenant: 'acme' }
  let end = await harness()
    .run('go', { runId, metadata, signal })
    .catch((error) => error)
  if (resumes) {
    const { resumeState } = end
    if (elsewhere) log = keepingLog()
    end = await harness().resume(resumeState, [{ callId: 'call_1', approved: true, editedArguments: { n: 2 } }])
  }
  if (continues) end = await harness().run('more', { runId: `${runId}_2`, history: { runId } })
  if (retries) end = await harness().retry(runId, { limits: { modelRequests: 2 } })
  const cut = log.kept.findIndex(({ kind }) => kind === cutBehind)
  const events = cutBehind === undefined ? log.kept : log.kept.slice(0, cut + 1)
  await writeFile(`${folder}${name}.jsonl`, events.map((event) => `${JSON.stringify(event)}\n`).join(''))
  const state = cutBehind === undefined ? (end.run ?? end).resumeState : null
  if (state !== null) await writeFile(`${folder}${name}.json`, `${JSON.stringify(state)}\n`)
  return { name, runId: continues ? `${runId}_2` : runId, plays, end: cutBehind === undefined ? ending(end) : null }
}

function ending(end) {
  const { stopReason, usage } = end.run ?? end
  const { toolCalls, modelRequests } = usage
  const pending = (end.pending ?? []).map(({ kind, callId }) => ({ kind, callId }))
  return { stopReason, code: end.code ?? null, text: end.text ?? null, pending, usage: { toolCalls, modelRequests } }
}

/** A log in memory with all events of all runs in the order in which they were kept. */
function keepingLog() {
  const inner = memoryLog()
  const kept = []
  return {
    kept,
    onEvent: () => undefined,
    async append(ref, events, options) {
      await inner.append(ref, events, options)
      kept.push(...JSON.parse(JSON.stringify(events)))
      for (const event of events) this.onEvent(event)
    },
    read: (ref, options) => inner.read(ref, options),
    claim: (ref, owner, ttlMs) => inner.claim(ref, owner, ttlMs),
  }
}

/** What a run says is found by its prompt, turn by turn: a text, names of tools, or a call with its arguments. */
function playing(plays) {
  return new ScriptedModel().always(({ turn, messages }) => {
    const prompts = messages.filter(({ role }) => role === 'user').map(({ content }) => content.split('\n')[0])
    const lines = plays[prompts.findLast((prompt) => prompt in plays)]
    const line = lines[turn] ?? lines.at(-1)
    if (typeof line === 'string') return line
    if (Array.isArray(line)) return { text: 'Let me see.', reasoning: 'Hm.', calls: line.map((name) => ({ name })) }
    return { calls: Object.entries(line).map(([name, args]) => ({ name, arguments: args })) }
  })
}
