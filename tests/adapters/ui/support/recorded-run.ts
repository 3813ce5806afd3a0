import { z } from 'zod'
import { Harness, HarnessError, ModelRetry, ToolResult, defineTool, inputPort, memoryLog } from 'thinharness'
import type {
  Answer,
  DurableEvent,
  HarnessOptions,
  HarnessStream,
  LogStore,
  PendingItem,
  StreamEvent,
  ToolOptions,
  ToolSpec,
} from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import type { ModelRequest, Reply } from 'thinharness/testing'
import { createHub } from 'thinharness/ui'
import type { AnyRunEvent } from 'thinharness/ui'
import { collect } from '../../../support/collect.js'
import type { Decision, Plan, PlannedPart, PlannedRun } from './plans.js'

/** A run with all that its readers can get. */
export interface RecordedRun {
  readonly runId: string
  /** The events of each stretch as they came, with deltas and those of child runs. */
  readonly stretches: readonly (readonly AnyRunEvent[])[]
  /** All of them. */
  readonly live: readonly AnyRunEvent[]
  /** The stored events of the run alone. */
  readonly own: readonly DurableEvent[]
  /** The stored events with those of child runs, as a hub gives them. */
  readonly stored: readonly AnyRunEvent[]
  /** The items that waited at the end. */
  readonly pending: readonly PendingItem[]
  readonly log: LogStore
}

const METADATA = { conversation_id: 'chat_1' }
const PARAMETERS = z.object({ n: z.number().default(1) })
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

function tools(): ToolSpec[] {
  const make = (
    name: string,
    handler: ToolOptions<typeof PARAMETERS>['handler'],
    more: Partial<ToolSpec> = {},
  ): ToolSpec => ({
    ...defineTool({ name, description: `The tool ${name}.`, parameters: PARAMETERS, handler }),
    ...more,
  })
  const plain = [
    make('look', ({ n }) => `seen ${n}`, { annotations: { readOnly: true } }),
    make('rows', ({ n }) => ({ rows: Array.from({ length: n }, (_, id) => ({ id })) })),
    make('fail', () => Promise.reject(new Error('The disk is full.'))),
    make('retry', () => Promise.reject(new ModelRetry('Another number.'))),
    make('blocked', () => 'never'),
    make('pay', ({ n }) => `paid ${n}`, { requiresApproval: true }),
    make(
      'picture',
      () => new ToolResult({ content: 'A picture.', parts: [{ type: 'image', data: PIXEL, mediaType: 'image/png' }] }),
    ),
    make('steps', ({ n }, { progress }) => {
      for (let step = 0; step < n; step++) progress({ step })
      return { done: n }
    }),
    make('ask', (_, { ask }) => ask({ question: 'Which color?' }, z.string())),
    make('survey', async (_, { ask }) => [
      await ask('First?', z.string(), { key: 'a' }),
      await ask('Second?', z.string(), { key: 'b' }),
    ]),
  ]
  return [...plain, ...spawning(plain)]
}

function spawning(plain: readonly ToolSpec[]): ToolSpec[] {
  const parameters = z.object({ plans: z.array(z.any()) })
  const delegate = defineTool({
    name: 'delegate',
    description: 'Starts child runs.',
    parameters,
    onUnknownOutcome: 'retry',
    handler: async ({ plans }, { spawn }) => {
      const runs = plans.map((plan, index) =>
        spawn({ prompt: JSON.stringify(plan), agentName: `agent ${index}`, tools: 'inherit' }),
      )
      const ended = await Promise.allSettled(runs.map(({ result }) => result))
      const paused = ended.find(
        (end) => end.status === 'rejected' && !(end.reason instanceof HarnessError && end.reason.run !== undefined),
      )
      if (paused?.status === 'rejected') throw paused.reason
      return ended.map((end) => (end.status === 'fulfilled' ? end.value.text : 'failed'))
    },
  })
  const leave = defineTool({
    name: 'leave',
    description: 'Starts a run in the background.',
    parameters,
    onUnknownOutcome: 'retry',
    handler: ({ plans }, { spawn }) =>
      spawn({ prompt: JSON.stringify(plans[0]), agentName: 'helper', tools: [...plain], background: true }).runId,
  })
  return [delegate, leave]
}

/** Executes a planned run to its end, or until nothing answers its items any more, with all of its events. */
export async function record({ plan, decisions, answersAll }: PlannedRun, runId = 'run_planned'): Promise<RecordedRun> {
  const log = memoryLog()
  let steer: (message: string) => unknown = () => undefined
  const model = new ScriptedModel({ capabilities: { supportsJsonSchemaOutput: true } }).always((request) =>
    answerTo(request, (message) => void steer(message)),
  )
  const output: Partial<HarnessOptions<unknown>> =
    plan.output === null
      ? {}
      : { outputType: z.object({ answer: z.string() }), outputMode: plan.output, outputRetries: 2 }
  const limits = plan.modelRequests === null ? {} : { limits: { modelRequests: plan.modelRequests } }
  await using harness = new Harness<unknown>({
    ...{ builtinTools: [], model, tools: tools(), toolRetries: 1, log, ...output, ...limits },
    hooks: [
      { event: 'before_tool_call', tools: ['blocked'], agents: ['*'], handler: () => ({ cancel: 'Not today.' }) },
    ],
  })
  const stretches: AnyRunEvent[][] = []
  let pending: readonly PendingItem[] = []
  let count = 0
  const readStretch = async (begin: (signal: AbortSignal) => HarnessStream<unknown>): Promise<void> => {
    const abort = new AbortController()
    const stream = begin(abort.signal)
    const events: AnyRunEvent[] = []
    stretches.push(events)
    steer = (message) => stream.steer(message)
    try {
      for await (const event of stream) {
        events.push(jsonOf(event))
        if (count++ === plan.cancelAt) abort.abort(new Error('Enough.'))
      }
      pending = (await stream.result).pending
    } catch {
      pending = []
    }
  }
  await readStretch((signal) => harness.stream(JSON.stringify(plan), { runId, signal, metadata: METADATA }))
  for (let round = 0; pending.length > 0 && round < 8; round++) {
    const items = answersAll ? pending : pending.slice(0, 1)
    const answers = items.map((item, index) =>
      answerOf(item, decisions[(round + index) % decisions.length] ?? 'approve'),
    )
    await readStretch((signal) => harness.streamResume(runId, answers, { signal, input: inputPort() }))
  }
  return { runId, stretches, live: stretches.flat(), pending, log, ...(await storedOf(log, runId)) }
}

/** The stored events of a run: its own, and with those of child runs. */
export async function storedOf(log: LogStore, runId: string): Promise<Pick<RecordedRun, 'own' | 'stored'>> {
  const own = await collect<DurableEvent>(log.read({ kind: 'run', id: runId }))
  const hub = createHub({ log })
  // The hub ends at the last pause or at the end of the run.
  const stored = await collect(hub.follow(runId, { children: true }))
  return { own, stored: stored.map(jsonOf) }
}

function jsonOf(event: AnyRunEvent | StreamEvent): AnyRunEvent {
  return JSON.parse(JSON.stringify(event)) as AnyRunEvent
}

function answerOf({ callId, kind }: PendingItem, decision: Decision): Answer {
  if (kind === 'unknown_outcome') return { callId, answer: { outcome: 'did_not_happen' } }
  if (kind === 'question')
    return decision === 'decline' ? { callId, declined: true, reason: 'No time.' } : { callId, answer: 'red' }
  if (decision === 'edit') return { callId, approved: true, editedArguments: { n: 7 } }
  return decision === 'reject' || decision === 'decline'
    ? { callId, approved: false, reason: 'Too much.' }
    : { callId, approved: true }
}

async function answerTo(request: ModelRequest, steer: (message: string) => void): Promise<Reply> {
  const { transcript, options } = request
  const plan = planIn(transcript[0])
  const turn = transcript.filter(({ role }) => role === 'assistant').length
  const planned = plan.replies[turn]
  if (planned === undefined) return lastReply(plan, turn - plan.replies.length, request)
  planned.attempts.forEach((parts, index) => {
    if (options.onDelta === undefined) return
    parts.forEach((part, place) => emit(part, `lost_${turn}_${index}_${place}`, options))
    options.onRetry?.({
      attempt: index + 1,
      delayMs: 0,
      reason: 'The connection was lost.',
      status: null,
      withdrawn: true,
    })
  })
  if (planned.steering !== null) steer(planned.steering)
  await Promise.resolve()
  return { parts: planned.parts }
}

function emit(part: PlannedPart, callId: string, { onDelta }: ModelRequest['options']): void {
  if (part.type === 'call') {
    const text = typeof part.arguments === 'string' ? part.arguments : JSON.stringify(part.arguments)
    onDelta?.({ kind: 'tool_input_delta', callId, text: '' })
    onDelta?.({ kind: 'tool_input_delta', callId, toolName: part.name, text })
  } else onDelta?.({ kind: `${part.type}_delta`, text: part.text })
}

function planIn(entry: ModelRequest['transcript'][number] | undefined): Plan {
  const [part] = entry?.role === 'user' ? entry.content : []
  if (part?.type !== 'text') throw new Error('The prompt is not a plan.')
  return JSON.parse(part.text.split('\n')[0] ?? '') as Plan
}

function lastReply({ end, wrongAnswers, output }: Plan, after: number, { tools: offered }: ModelRequest): Reply {
  if (end === 'fails') throw new HarnessError('provider_error', 'The server at 10.0.0.7 failed.')
  if (end === 'refuses') return { refusal: 'I will not.' }
  if (end === 'is cut off') return { text: 'And the', finishReason: 'length' }
  if (end === 'is filtered') return { text: 'And the', finishReason: 'content_filter' }
  if (output === null) return { text: 'All done.' }
  const answer = { answer: after < wrongAnswers ? 1 : 'done' }
  if (!offered.includes('final_result')) return { reasoning: 'Now the answer.', text: JSON.stringify(answer) }
  if (after < wrongAnswers && after % 2 === 1) return { text: 'It is done.' }
  return { text: 'Here it is.', calls: [{ name: 'final_result', arguments: answer }] }
}
