import { childRuns } from '#run/children/background-runs.js'
import { RecordedEffects } from '#run/replay/recorded-effects.js'
import { Money } from '#run/money/run-money.js'
import fc from 'fast-check'
import { z } from 'zod'
import { HarnessError, inputPort, memoryLog, ModelRetry, ToolResult } from 'thinharness'
import type { DurableEvent, Hook, Model, ModelTurn, RunEvent, RunLog, ToolContext, ToolSpec } from 'thinharness'
import { plannedRules } from '#harness/default-limits.js'
import { resolveConfig } from '#harness/config.js'
import { RunAbort } from '#util/abort.js'
import { ChildDocuments } from '#run/resume/child-documents.js'
import { inline } from '#run/resume/find-history.js'
import { conduct } from '#core/loop/run/conduct.js'
import { AnswerForm } from '#run/output/answer-form.js'
import type { RequestedAnswer } from '#run/output/answer-form.js'
import type { RunPlan } from '#core/loop/run-plan.js'
import { RunContext } from '#core/loop/run-context.js'
import { EventQueue } from '#core/stream/queue.js'
import type { RunState } from '#core/state/state.js'
import type { AssistantPart, FinishReason } from '#contracts/entry.js'
import { systemClock } from '#util/clock.js'
import { tool } from '../../harness/support.js'
import { USAGE } from './support.js'

const TOOLS = [
  'ok',
  'returns_failure',
  'throws',
  'retries',
  'ghost',
  'barrier',
  'blocked',
  'grumpy',
  'rewritten',
  'slow',
  'aborts',
] as const
const ARGUMENTS = ['{}', '{"n":1}', '', '{"n":', '[]', '"{}"', '{"n":"x"}', 'null'] as const
const CALL_IDS = ['', 'dup', '__proto__', 'constructor', 'x', 'y', 'z'] as const

/** A scripted run as plain data, so that a failing one can be shrunk and shown. */
export interface RandomRun {
  readonly turns: readonly RandomTurn[]
  readonly modelRequests: number | null
  readonly toolCalls: number | null
  readonly toolRetries: number
  readonly outputRetries: number
  readonly output: 'none' | 'tool' | 'prompted'
  readonly sequential: boolean
  readonly strictHooks: boolean
  readonly deltas: boolean
  /** The run is aborted when this has happened so often. */
  readonly abort: { readonly at: 'append' | 'turn' | 'tick'; readonly count: number } | null
  /** A message is sent to the running model during these turns. */
  readonly steeredIn: readonly number[]
  /** Every append of which the number is divisible by this takes a moment. */
  readonly slowAppends: number
}

type RandomTurn =
  | { readonly kind: 'says'; readonly text: string; readonly finishReason: FinishReason }
  | { readonly kind: 'fails' }
  | { readonly kind: 'calls'; readonly calls: readonly RandomCall[]; readonly finishReason: FinishReason }

interface RandomCall {
  readonly name: string
  readonly args: string
  readonly callId: string
}

const call = fc.record({
  name: fc.constantFrom(...TOOLS),
  args: fc.oneof({ weight: 4, arbitrary: fc.constant('{}') }, fc.constantFrom(...ARGUMENTS)),
  callId: fc.oneof(fc.uuid(), fc.constantFrom(...CALL_IDS)),
})

const answer = fc.record({
  name: fc.constant('final_result'),
  args: fc.constantFrom('{"answer":"yes"}', '{"answer":5}', '{"answer"', '{}'),
  callId: fc.uuid(),
})

const turn: fc.Arbitrary<RandomTurn> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('calls' as const),
      calls: fc.array(call, { minLength: 1, maxLength: 5 }),
      finishReason: fc.constantFrom<FinishReason>('tool_calls', 'tool_calls', 'tool_calls', 'stop', 'length'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('calls' as const),
      calls: fc.oneof(
        fc.array(answer, { minLength: 1, maxLength: 1 }),
        fc.array(fc.oneof(answer, call), { maxLength: 3 }),
      ),
      finishReason: fc.constantFrom<FinishReason>('tool_calls', 'length'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('says' as const),
      text: fc.constantFrom('', 'Done.', '{"answer":"yes"}', '```json\n{"answer":"yes"}\n```'),
      finishReason: fc.constantFrom<FinishReason>(
        'stop',
        'stop',
        'stop',
        'pause',
        'length',
        'refusal',
        'content_filter',
        'other',
      ),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'fails' as const }) },
)

export const randomRun: fc.Arbitrary<RandomRun> = fc.record({
  turns: fc.array(turn, { maxLength: 6 }),
  modelRequests: fc.oneof({ weight: 3, arbitrary: fc.constant(20) }, fc.integer({ min: 0, max: 4 })),
  toolCalls: fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, fc.integer({ min: 0, max: 6 })),
  toolRetries: fc.integer({ min: 0, max: 3 }),
  outputRetries: fc.integer({ min: 0, max: 2 }),
  output: fc.constantFrom('none', 'tool', 'prompted'),
  sequential: fc.boolean(),
  strictHooks: fc.boolean(),
  deltas: fc.boolean(),
  abort: fc.option(
    fc.record({ at: fc.constantFrom('append', 'turn', 'tick'), count: fc.integer({ min: 1, max: 12 }) }),
    { freq: 2 },
  ),
  steeredIn: fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 2 }),
  slowAppends: fc.integer({ min: 1, max: 4 }),
})

/** A run that was played, and what was seen of it. */
export interface PlayedRun {
  /** The log, after a trip through JSON. */
  readonly log: readonly DurableEvent[]
  /** The live state, as JSON, when so many events had been kept. */
  readonly states: readonly { readonly kept: number; readonly state: unknown }[]
  /** None when the log refused the very first event. */
  readonly final: RunState | null
  readonly streamed: readonly RunEvent[]
  readonly result: Awaited<ReturnType<typeof conduct>> | null
  readonly error: HarnessError | null
  /** What was begun although the run had been aborted, or its log had failed. */
  readonly begunTooLate: readonly string[]
}

/** Plays a run. Its log refuses everything from the append on that `failingAppend` counts, from 1. */
export async function play(run: RandomRun, failingAppend = Infinity): Promise<PlayedRun> {
  const controller = new AbortController()
  const begunTooLate: string[] = []
  let appends = 0
  let logHasFailed = false
  const begin = (what: string): void => {
    if (controller.signal.aborted || logHasFailed) begunTooLate.push(what)
  }
  const abortAt = (at: 'append' | 'turn', count: number): void => {
    if (run.abort?.at === at && run.abort.count === count) controller.abort(new Error('Random abort.'))
  }
  if (run.abort?.at === 'tick') abortAfter(controller, run.abort.count)

  const kept: DurableEvent[] = []
  const states: { kept: number; state: unknown }[] = []
  const inner = memoryLog()
  const log: RunLog = {
    async append(ref, events) {
      appends += 1
      if (context.hasBegun) states.push({ kept: kept.length, state: asJson(context.state) })
      if (appends >= failingAppend) {
        setImmediate(() => (logHasFailed = true))
        throw new Error('The disk is full.')
      }
      if (kept.length % run.slowAppends === 0) await tick()
      await inner.append(ref, events)
      kept.push(...events)
      abortAt('append', kept.length)
    },
    read: (ref, options) => inner.read(ref, options),
  }

  const queue = new EventQueue()
  const streamed: RunEvent[] = []
  const reading = read(queue, streamed)
  const config = resolveConfig({
    builtinTools: [],
    tools: toolsOf(controller, begin),
    hooks: run.strictHooks ? HOOKS : HOOKS.map((hook) => ({ ...hook, failMode: 'open' })),
    toolRetries: run.toolRetries,
    outputRetries: run.outputRetries,
    limits: { modelRequests: run.modelRequests, toolCalls: run.toolCalls },
  })
  const abort = new RunAbort(controller.signal)
  const clock = systemClock()
  const context: RunContext = new RunContext({
    runId: 'run_random',
    parent: null,
    metadata: { tenant: 7 },
    log,
    children: new ChildDocuments(log),
    clock,
    extensions: config.extensions,
    queue,
    abort,
    signingKey: null,
    configPolicy: 'compatible',
  })
  const input = inputPort()
  const plan = planOf(run, config, {
    input,
    model: modelOf(run, { input, begin, onTurn: (count) => abortAt('turn', count) }),
  })
  const outcome = await conduct(context, plan).then(
    (result) => ({ result, error: null }),
    (error: unknown) => ({ result: null, error: error as HarnessError }),
  )
  queue.close()
  await reading
  const final = context.hasBegun ? context.state : null
  return { log: asJson(kept) as DurableEvent[], states, final, streamed, ...outcome, begunTooLate }
}

export function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function abortAfter(controller: AbortController, ticks: number): void {
  setImmediate(() => (ticks <= 1 ? controller.abort(new Error('Random abort.')) : abortAfter(controller, ticks - 1)))
}

async function read(queue: EventQueue, into: RunEvent[]): Promise<void> {
  queue.startReading()
  for (let batch = await queue.take(); batch.length > 0; batch = await queue.take()) {
    into.push(...batch)
    await tick()
  }
}

type Begin = (what: string) => void

function toolsOf(controller: AbortController, begin: Begin): ToolSpec[] {
  const own = (name: string, handler: (context: ToolContext) => unknown, beside = {}): ToolSpec =>
    tool(
      name,
      (_args, context) => {
        begin(`tool ${name}`)
        return handler(context)
      },
      beside,
    )
  const parameters = { type: 'object', properties: { n: { type: 'integer' } } }
  return [
    { ...own('ok', () => 'ok'), parameters },
    own(
      'returns_failure',
      () => new ToolResult({ ok: false, content: 'No.', metadata: { error_type: 'Mine', retry: true } }),
    ),
    own('throws', () => Promise.reject(new TypeError('Broken.'))),
    own('retries', () => Promise.reject(new ModelRetry('Again.')), { maxRetries: 2 }),
    own('barrier', () => tick(), { sequential: true }),
    own('blocked', () => 'never'),
    own('grumpy', () => 'ok'),
    own('rewritten', () => 'ok'),
    own('slow', async (context) => {
      for (let count = 0; count < 3 && !context.signal.aborted; count++) {
        context.progress(count)
        await tick()
      }
      return 'slow'
    }),
    own('aborts', () => controller.abort(new Error('By a tool.'))),
  ]
}

const HOOKS: readonly Hook[] = [
  { event: 'before_tool_call', tools: ['blocked'], handler: () => ({ cancel: 'No.' }) },
  { event: 'before_tool_call', tools: ['grumpy'], handler: () => Promise.reject(new Error('Grumpy.')) },
  { event: 'before_tool_call', tools: ['slow'], handler: () => tick().then(() => undefined) },
  { event: 'after_tool_call', tools: ['rewritten'], handler: () => ({ output: 'garbage' }) },
]

function planOf(
  run: RandomRun,
  config: ReturnType<typeof resolveConfig<unknown>>,
  { input, model }: { readonly input: ReturnType<typeof inputPort>; readonly model: Model },
): RunPlan {
  const answer: RequestedAnswer =
    run.output === 'none' ? { type: null, mode: 'auto' } : { type: z.object({ answer: z.string() }), mode: run.output }
  const { root, settings, tools } = config
  return {
    opening: { kind: 'fresh', prompt: 'Go.', history: () => Promise.resolve(inline({ entries: [] })) },
    root,
    sandbox: config.sandbox,
    settings,
    money: new Money(null),
    input,
    deltas: run.deltas,
    sequential: run.sequential,
    model,
    offers: {
      definitions: (tools) => tools,
      own: tools,
      canChange: false,
      load: () => Promise.resolve({ tools, servers: [], skills: '' }),
      refresh: (_signal, before) => Promise.resolve(before),
    },
    answer: new AnswerForm(answer, model),
    instructions: [],
    rules: plannedRules({}, config),
    inherited: null,
    recordedRules: null,
    host: {
      decider: () => () => Promise.reject(new Error('Nobody decides here.')),
      loadModel: () => Promise.resolve(model),
      startChild: () => {
        throw new Error('No run is started here.')
      },
      endChild: () => Promise.resolve(),
      endForgotten: () => Promise.resolve(),
      children: childRuns,
      recordedEffects: (...run) => new RecordedEffects(...run),
    },
  }
}

interface Telling {
  readonly input: ReturnType<typeof inputPort>
  readonly begin: Begin
  readonly onTurn: (count: number) => void
}

function modelOf(run: RandomRun, { input, begin, onTurn }: Telling): Model {
  let count = 0
  const openSession = (): ReturnType<Model['openSession']> => ({
    async turn(_transcript, _constants, { onDelta, signal }) {
      begin('a turn')
      const turn = run.turns[count] ?? { kind: 'says', text: '{"answer":"yes"}', finishReason: 'stop' }
      count += 1
      onTurn(count)
      if (run.steeredIn.includes(count)) void input.send(`Steering ${count}.`)
      onDelta?.({ kind: 'text_delta', text: 'piece' })
      if (count % 2 === 0) await tick()
      signal.throwIfAborted()
      if (turn.kind === 'fails') throw new HarnessError('provider_error', 'Down.', { status: 503 })
      return turnOf(turn)
    },
  })
  return { provider: 'random', id: 'random-1', capabilities: {}, openSession }
}

function turnOf(turn: Exclude<RandomTurn, { kind: 'fails' }>): ModelTurn {
  const parts: AssistantPart[] =
    turn.kind === 'calls'
      ? turn.calls.map(({ name, args, callId }) => ({ type: 'tool_call', callId, name, arguments: args }))
      : [{ type: 'text', text: turn.text }]
  const { finishReason } = turn
  return {
    entry: { role: 'assistant', parts, provider: 'random', model: 'random-1', finishReason, usage: USAGE },
  }
}
