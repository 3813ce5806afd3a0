// Writes logs and stored states in the current version of the format, for tests/corpus/corpus.test.ts:
// tests/corpus/v<version>/<name>.jsonl has all events of a run and of the runs below it, <name>.json its state, and
// index.json how each ended. Later builds must read them. Run once for each version of the format:
//   npm run build:js && node .build/rigs/make-corpus.js
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { Harness, HarnessError, defineTool, memoryLog, ModelRetry } from 'thinharness'
import type {
  DurableEvent,
  HarnessOptions,
  HarnessResult,
  JsonObject,
  RunLog,
  RunReport,
  ToolOptions,
  ToolSpec,
} from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { z } from 'zod'

/** A reply: a text, names of tools to call, or calls with their arguments. */
type Line = string | readonly string[] | Readonly<Record<string, JsonObject>>

/** The replies of the model by prompt, turn by turn. */
type Scripts = Readonly<Record<string, readonly Line[]>>

interface Case {
  readonly scripts: Scripts
  readonly options?: HarnessOptions<unknown>
  /** Aborts at the first event of this kind. */
  readonly abortsAt?: DurableEvent['kind']
  /** The log ends after the first event of this kind, without a state. */
  readonly cutAfter?: DurableEvent['kind']
  /** The run is paused and resumed; `elsewhere` with a new log. */
  readonly resumes?: 'here' | 'elsewhere'
  /** Another run continues the conversation. */
  readonly continues?: boolean
  /** The run fails and is retried. */
  readonly retries?: boolean
  /** The run is stored first, and begun later. */
  readonly waits?: boolean
}

const NUMBER = z.object({ n: z.number().default(1) })

function make(
  name: string,
  handler: ToolOptions<typeof NUMBER>['handler'],
  options: Partial<ToolOptions<typeof NUMBER>> = {},
): ToolSpec {
  return defineTool({ name, description: `The tool ${name}.`, parameters: NUMBER, handler, ...options })
}

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

const QUESTION_IN_CHILD: Case = {
  scripts: { go: [['delegate'], 'Done.'], first: [['ask'], 'Red.'], second: [['look'], 'Seen.'] },
}
const QUESTION_IN_BACKGROUND: Case = { scripts: { go: [['leave'], 'Waiting.', 'Done.'], first: [['ask'], 'Red.'] } }

/** A tool that has the model decide, and one whose calls stand for calls of another. */
const choose = make(
  'choose',
  async (_, { decide }) => (await decide({ question: 'Which?', choices: ['red', 'blue'] })).choice,
)
const callTool = defineTool({
  name: 'call_tool',
  description: 'The tool call_tool.',
  parameters: z.object({ name: z.string(), arguments: z.record(z.string(), z.json()) }),
  resolve: (call) => call,
  handler: ({ name }) => `\`${name}\` cannot be called like this.`,
})

const CASES: Readonly<Record<string, Case>> = {
  plain: { scripts: { go: ['Hello.'] } },
  tools: { scripts: { go: [['look', 'retry', 'nobody', 'look'], ['look'], 'All seen.'] } },
  structured: {
    scripts: { go: ['no answer', { final_result: { answer: 'yes' } }] },
    options: { outputType: z.object({ answer: z.string() }), outputMode: 'tool' },
  },
  paused_approval: { scripts: { go: [['pay', 'look'], 'Paid.'] } },
  // In the stored files, the first two have the states of child runs in the log of their parent, as a log that stands alone has.
  question_in_child: QUESTION_IN_CHILD,
  question_in_background: QUESTION_IN_BACKGROUND,
  child_by_reference: QUESTION_IN_CHILD,
  background_by_reference: QUESTION_IN_BACKGROUND,
  resumed: { scripts: { go: [['pay'], 'Paid.'] }, resumes: 'here' },
  resumed_elsewhere: { scripts: { go: [['pay'], ['look'], 'Paid.'] }, resumes: 'elsewhere' },
  failed: { scripts: { go: [['look'], 'Too late.'] }, options: { limits: { modelRequests: 1 } } },
  aborted: { scripts: { go: [['slow', 'look'], 'Never.'] }, abortsAt: 'tool_call_started' },
  continued: { scripts: { go: [['look'], 'Hello.'], more: ['Again.'] }, continues: true },
  retried: { scripts: { go: [['look'], 'In time.'] }, options: { limits: { modelRequests: 1 } }, retries: true },
  queued: { scripts: { go: [['look'], 'Seen.'] }, waits: true },
  decided: {
    scripts: {
      go: [['choose'], 'Red.'],
      [JSON.stringify({ question: 'Which?', choices: ['red', 'blue'] })]: [{ final_result: { choice: 'red' } }],
    },
  },
  resolved: { scripts: { go: [{ call_tool: { name: 'look', arguments: { n: 3 } } }, 'Seen.'] } },
  interrupted: { scripts: { go: [['look', 'ask'], 'Never.'] }, cutAfter: 'tool_call_started' },
}

const folder = `tests/corpus/v${await formatVersion()}/`
await rm(folder, { recursive: true, force: true })
await mkdir(folder, { recursive: true })
const index: object[] = []
for (const [name, each] of Object.entries(CASES)) index.push(await write(name, each))
await writeFile(`${folder}index.json`, `${JSON.stringify(index, null, 2)}\n`)
console.log(`${index.length} runs in ${folder}`)

async function formatVersion(): Promise<number> {
  const { resumeState } = await new Harness({ builtinTools: [], model: new ScriptedModel().says('Hello.') }).run('go')
  return versionOf(resumeState)
}

function versionOf(state: object | null): number {
  return (state as { readonly version: number }).version
}

async function write(name: string, each: Case): Promise<object> {
  const { scripts, options, abortsAt, cutAfter, resumes, continues = false, retries = false, waits = false } = each
  const runId = `run_${name}`
  const controller = new AbortController()
  const events: DurableEvent[] = []
  const onEvents = (appended: readonly DurableEvent[]): void => {
    events.push(...(JSON.parse(JSON.stringify(appended)) as DurableEvent[]))
    if (appended.some(({ kind }) => kind === abortsAt)) controller.abort(new Error('Enough.'))
  }
  let log = observedLog(onEvents)
  const harness = (): Harness<unknown> =>
    new Harness({
      builtinTools: [],
      model: scriptedModel(scripts),
      tools: [...TOOLS, delegate, leave, choose, callTool],
      root: '/work',
      log,
      ...options,
    })
  const about = { runId, metadata: { tenant: 'acme' }, labels: { tenant: 'acme' } }
  if (waits) await harness().queue('go', about)
  let end = await endOf(waits ? harness().recover(runId) : harness().run('go', { ...about, signal: controller.signal }))
  if (resumes !== undefined) {
    const { resumeState } = reportOf(end)
    if (resumeState === null) throw new Error(`Run ${runId} has no state.`)
    if (resumes === 'elsewhere') {
      events.length = 0
      log = observedLog(onEvents)
    }
    const answer = { callId: 'call_1', approved: true, editedArguments: { n: 2 } }
    end = await endOf(harness().resume(resumeState, [answer]))
  }
  if (continues) end = await endOf(harness().run('more', { runId: `${runId}_2`, history: { runId } }))
  if (retries) end = await endOf(harness().retry(runId, { limits: { modelRequests: 2 } }))
  const cut = events.findIndex(({ kind }) => kind === cutAfter)
  const kept = cutAfter === undefined ? events : events.slice(0, cut + 1)
  await writeFile(`${folder}${name}.jsonl`, kept.map((event) => `${JSON.stringify(event)}\n`).join(''))
  const state = cutAfter === undefined ? reportOf(end).resumeState : null
  if (state !== null) await writeFile(`${folder}${name}.json`, `${JSON.stringify(state)}\n`)
  const summary = cutAfter === undefined ? summaryOf(end) : null
  return { name, runId: continues ? `${runId}_2` : runId, plays: scripts, end: summary }
}

type End = HarnessResult<unknown> | HarnessError

async function endOf(outcome: Promise<HarnessResult<unknown>>): Promise<End> {
  return outcome.catch((error: unknown) => {
    if (error instanceof HarnessError) return error
    throw error
  })
}

function reportOf(end: End): HarnessResult<unknown> | RunReport {
  if (!(end instanceof HarnessError)) return end
  if (end.run === undefined) throw end
  return end.run
}

function summaryOf(end: End): object {
  const { stopReason, usage } = reportOf(end)
  const { toolCalls, modelRequests } = usage
  const [code, text, items] =
    end instanceof HarnessError ? ([end.code, null, []] as const) : ([null, end.text, end.pending] as const)
  const pending = items.map(({ kind, callId }) => ({ kind, callId }))
  return { stopReason, code, text, pending, usage: { toolCalls, modelRequests } }
}

/** A log in memory that reports the events of all runs in the order in which they are stored. */
function observedLog(onEvents: (events: readonly DurableEvent[]) => void): RunLog {
  const inner = memoryLog()
  return {
    async append(ref, events, options) {
      await inner.append(ref, events, options)
      onEvents(events)
    },
    read: (ref, options) => inner.read(ref, options),
    claim: (ref, owner, ttlMs) => inner.claim(ref, owner, ttlMs),
  }
}

function scriptedModel(scripts: Scripts): ScriptedModel {
  return new ScriptedModel().always(({ turn, messages }) => {
    const prompts = messages.flatMap((message) => {
      return message.role === 'user' && typeof message.content === 'string' ? message.content.split('\n')[0] : []
    })
    const lines = scripts[prompts.findLast((prompt) => prompt !== undefined && prompt in scripts) ?? '']
    const line = lines?.[turn] ?? lines?.at(-1)
    if (line === undefined) throw new Error('There is no script for this prompt.')
    if (typeof line === 'string') return line
    if (isNames(line)) return { text: 'Let me see.', reasoning: 'Hm.', calls: line.map((name) => ({ name })) }
    return { calls: Object.entries(line).map(([name, args]) => ({ name, arguments: args })) }
  })
}

function isNames(line: Exclude<Line, string>): line is readonly string[] {
  return Array.isArray(line)
}
