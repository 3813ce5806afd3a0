import type { JsonObject } from '#util/json.js'
import {
  brief,
  contentText,
  envelopeContent,
  memberOf,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  timeAt,
} from './event-fields.js'
import type { ReadEvent } from './event-fields.js'
import { isKnownKind, markOf } from './event-marks.js'
import type {
  AttemptMark,
  BackgroundNode,
  CallNode,
  CallState,
  Damage,
  Mark,
  OpenText,
  Pause,
  RunNode,
  RunNodeState,
  TurnNode,
  TurnTokens,
} from './nodes.js'

type Writable<T> = { -readonly [Name in keyof T]: T[Name] }
/** A node whose lists grow. */
type Open<Node, Lists> = Omit<Writable<Node>, keyof Lists> & Lists
type OpenCall = Open<
  CallNode,
  { starts: number[]; waits: Writable<Pause>[]; background: Writable<BackgroundNode>[]; marks: Mark[] }
>
type OpenTurn = Open<TurnNode, { calls: OpenCall[]; marks: Mark[]; attempts: AttemptMark[] }>
type OpenRun = Open<
  RunNode,
  { turns: OpenTurn[]; pauses: Writable<Pause>[]; marks: Mark[]; calls: Map<string, OpenCall>; damage: Damage[] }
>

const NOTHING_OPEN: OpenText = { text: '', reasoning: '', inputs: {} }

/** The version of the format that this page was made for. */
const KNOWN_VERSION = 3

/**
 * The outline of one run, from its events as `skim` gives them, in their order; further events may follow at any time. It never
 * refuses an event: what it cannot place is a mark.
 *
 * @example
 * const outline = new Outline('run_1')
 * for (const line of lines) outline.push(skim(line))
 * outline.node.turns.length
 */
export class Outline {
  readonly #run: OpenRun
  /** Of events before the request that they are about. */
  #early: Mark[] = []

  constructor(runId: string) {
    this.#run = {
      runId,
      ...{ parentRunId: null, parentCallId: null, agentName: null },
      ...{ state: 'running', stopReason: null, error: null, begun: '', model: '', prompt: '' },
      ...{ startedAt: 0, updatedAt: 0, turns: [], pauses: [], marks: [], usage: null, limits: {} },
      ...{ calls: new Map(), damage: [], lastSeq: 0, promptSeq: 0, history: 0, open: null },
    }
  }

  /** What each kind of event changes; others are marks. */
  readonly #on: Readonly<Record<string, ((event: ReadEvent, at: number) => void) | undefined>> = {
    run_queued: (event, at) => this.#started(event, at),
    run_started: (event, at) => this.#started(event, at),
    model_request_started: (event, at) => void this.#addTurn(event, at),
    model_message: (event, at) => this.#replied(event, at),
    tool_call_started: (event, at) => this.#callStarted(event, at),
    tool_call_completed: (event, at) => this.#callCompleted(event, at),
    tool_call_interrupted: (event, at) => this.#callNoted(event, at),
    call_prepared: (event, at) => this.#callNoted(event, at),
    approval_requested: (event, at) => this.#asked(event, at),
    answer_received: (event, at) => this.#answered(event, at),
    background_reported: (event, at) => this.#reported(event, at),
    run_completed: (event, at) => this.#completed(event, at),
    run_failed: (event, at) => this.#failed(event, at),
    text_delta: (event, at) => this.#delta(event, at),
    reasoning_delta: (event, at) => this.#delta(event, at),
    tool_input_delta: (event, at) => this.#delta(event, at),
    transport_retry: (event, at) => this.#retried(event, at),
    deltas_withdrawn: (event, at) => this.#retried(event, at),
  }

  /** The run so far. It changes with later events: the same object. */
  get node(): RunNode {
    return this.#run
  }

  /** A line that cannot be read, or is of another time. */
  damaged(damage: Damage): void {
    this.#run.damage.push(damage)
  }

  /** Takes the next event, of line `line` of the log. */
  push(event: ReadEvent, line = 0): void {
    const run = this.#run
    const at = timeAt(event)
    if (run.startedAt === 0) this.#begin(event, at)
    const isDurable = event['durable'] !== false
    if (isDurable && run.lastSeq > 0 && event.seq > run.lastSeq + 1)
      this.damaged({ line, kind: 'missing', message: `Events ${run.lastSeq + 1} to ${event.seq - 1} are missing.` })
    const handle = Object.hasOwn(this.#on, event.kind) ? this.#on[event.kind] : undefined
    if (handle !== undefined) handle(event, at)
    else this.#note(event, at, line)
    if (isDurable) run.lastSeq = Math.max(run.lastSeq, event.seq)
    run.updatedAt = Math.max(run.updatedAt, at)
  }

  #begin(event: ReadEvent, at: number): void {
    const run = this.#run
    run.startedAt = at
    run.parentRunId = textAt(event, 'parentRunId') || null
    run.parentCallId = textAt(event, 'parentToolCallId') || null
    run.agentName = textAt(event, 'agentName') || null
  }

  #note(event: ReadEvent, at: number, line: number): void {
    const mark = markOf(event, at)
    if (!isKnownKind(event.kind)) {
      const message = `Event ${event.seq} is of a kind that this page does not know: \`${brief(event.kind, 60)}\`.`
      this.damaged({ line, kind: 'unknown_kind', message })
    }
    if (mark === null) return
    if (BEFORE_REQUEST.has(event.kind)) this.#early.push(mark)
    else (this.#turn()?.marks ?? this.#run.marks).push(mark)
  }

  #turn(): OpenTurn | undefined {
    return this.#run.turns.at(-1)
  }

  #started(event: ReadEvent, at: number): void {
    const run = this.#run
    const version = numberAt(event, 'version')
    if (version !== null && version > KNOWN_VERSION) {
      const message = `From event ${event.seq} on, the log is of format ${version}; this page knows format ${KNOWN_VERSION}, and shows what it can.`
      this.damaged({ line: 0, kind: 'later_format', message })
    }
    if (event.kind === 'run_queued') run.pauses.push({ from: at, to: null, reason: 'queued', seq: event.seq })
    else this.#goOn(event, at)
    const prompt = memberOf(event, 'prompt')
    if (prompt !== null && prompt !== undefined && run.prompt === '') {
      run.prompt = brief(contentText(prompt))
      run.promptSeq = event.seq
    }
    run.state = event.kind === 'run_queued' ? 'queued' : 'running'
  }

  #goOn(event: ReadEvent, at: number): void {
    const run = this.#run
    run.begun = textAt(event, 'begun')
    run.model = modelOf(event)
    const history = memberOf(event, 'history')
    if (run.promptSeq === 0 || run.begun === 'fresh') run.history = typeof history === 'number' ? history : null
    run.limits = limitsOf(objectAt(objectAt(event, 'rules'), 'limits'))
    const pause = run.pauses.at(-1)
    if (pause?.to === null) pause.to = at
    else if (run.lastSeq > 0)
      run.pauses.push({
        from: run.updatedAt,
        to: at,
        reason: run.state === 'running' ? 'left' : 'failed',
        seq: run.lastSeq,
      })
    run.error = null
    run.stopReason = null
    const mark = run.lastSeq > 1 ? markOf(event, at) : null
    if (mark !== null) (this.#turn()?.marks ?? run.marks).push(mark)
  }

  #addTurn(event: ReadEvent, at: number): OpenTurn {
    const { runId, turns } = this.#run
    const turn: OpenTurn = {
      runId,
      index: turns.length + 1,
      seq: event.seq,
      replySeq: null,
      requestKind: textAt(event, 'requestKind'),
      model: modelOf(event),
      startedAt: at,
      repliedAt: null,
      firstDeltaAt: null,
      text: '',
      hasReasoning: false,
      finishReason: null,
      resolution: null,
      isCached: false,
      blocked: null,
      closing: textAt(objectAt(event, 'closing'), 'kind') || null,
      tokens: null,
      costUsd: null,
      attempts: [],
      calls: [],
      entries: objectsAt(event, 'entries').length,
      marks: this.#early,
    }
    this.#early = []
    turns.push(turn)
    return turn
  }

  #replied(event: ReadEvent, at: number): void {
    const last = this.#turn()
    // The beginning of the log may be missing.
    const turn = last === undefined || last.replySeq !== null ? this.#addTurn(event, at) : last
    const entry = objectAt(event, 'entry')
    const cost = numberAt(event, 'cost')
    const attempts = objectsAt(event, 'attempts').slice(0, -1).map(attemptOf)
    const parts = objectsAt(entry, 'parts')
    const text = parts.map((part) => (part['type'] === 'text' ? textAt(part, 'text') : '')).join('')
    this.#run.open = null
    turn.replySeq = event.seq
    turn.repliedAt = at
    turn.text = brief(text)
    turn.model = modelOf(entry) || turn.model
    turn.hasReasoning = parts.some((part) => part['type'] === 'reasoning')
    turn.finishReason = textAt(entry, 'finishReason') || null
    turn.resolution = textAt(objectAt(event, 'resolution'), 'kind') || null
    turn.isCached = event['cached'] === true
    turn.blocked = textAt(event, 'blocked') || null
    turn.tokens = tokensOf(objectAt(entry, 'usage'))
    turn.costUsd = cost === null ? null : cost / 1e6
    if (attempts.length > 0) turn.attempts = attempts
    const resolved = new Map(objectsAt(event, 'resolvedCalls').map((call) => [textAt(call, 'callId'), call]))
    for (const part of parts) {
      if (part['type'] !== 'tool_call') continue
      const other = resolved.get(textAt(part, 'callId'))
      this.#addCall(turn, other ?? part, { at, via: other === undefined ? null : textAt(part, 'name') })
    }
  }

  #addCall(
    turn: OpenTurn,
    call: JsonObject,
    { at, via }: { readonly at: number; readonly via: string | null },
  ): OpenCall {
    const { runId, calls } = this.#run
    const callId = textAt(call, 'callId')
    const toolName = textAt(call, 'name') || textAt(call, 'toolName')
    const argument = textAt(call, 'arguments')
    const added: OpenCall = {
      runId,
      callId,
      turn: turn.index,
      toolName,
      via,
      argument: brief(argument),
      key: `${toolName}\n${textAt(call, 'argumentsKey') || argument}`,
      state: 'requested',
      errorType: null,
      result: '',
      requestedAt: at,
      startedAt: null,
      endedAt: null,
      durationMs: null,
      waits: [],
      starts: [],
      interrupted: null,
      endSeq: null,
      background: [],
      marks: [],
    }
    turn.calls.push(added)
    calls.set(callId, added)
    return added
  }

  /** The call that an event is about; one whose request is not in the log is added. */
  #call(event: ReadEvent, at: number): OpenCall {
    const known = this.#run.calls.get(textAt(event, 'callId'))
    if (known !== undefined) return known
    return this.#addCall(this.#turn() ?? this.#addTurn(event, at), event, { at, via: textAt(event, 'via') || null })
  }

  #callStarted(event: ReadEvent, at: number): void {
    const call = this.#call(event, at)
    call.state = 'running'
    call.startedAt ??= at
    call.starts.push(event.seq)
    if (call.toolName === '') call.toolName = textAt(event, 'toolName')
    endWaits(call, at)
  }

  #callCompleted(event: ReadEvent, at: number): void {
    const call = this.#call(event, at)
    call.state = endState(event)
    call.errorType = textAt(event, 'errorType') || null
    call.result = brief(event['ok'] === true ? envelopeContent(textAt(event, 'output')) : textAt(event, 'message'))
    call.endedAt = at
    call.durationMs = numberAt(event, 'durationMs')
    call.endSeq = event.seq
    endWaits(call, at)
    for (const left of objectsAt(event, 'background')) {
      const [runId, agent, task] = [textAt(left, 'childRunId'), textAt(left, 'agent'), brief(textAt(left, 'task'))]
      call.background.push({ runId, agent, task, reportSeq: null })
    }
  }

  #callNoted(event: ReadEvent, at: number): void {
    const call = this.#call(event, at)
    if (event.kind === 'tool_call_interrupted') call.interrupted = textAt(event, 'settledBy')
    const mark = markOf(event, at)
    if (mark !== null) call.marks.push(mark)
  }

  #asked(event: ReadEvent, at: number): void {
    const asking = textAt(event, 'callId') || textAt(event, 'background').split('/')[0]
    for (const item of objectsAt(event, 'items')) {
      const call = this.#run.calls.get(asking || textAt(item, 'callId'))
      if (call === undefined) continue
      if (event['background'] === undefined) call.state = 'waiting'
      if (call.waits.at(-1)?.to !== null)
        call.waits.push({ from: at, to: null, reason: textAt(item, 'kind'), seq: event.seq })
    }
  }

  #answered(event: ReadEvent, at: number): void {
    const [first = ''] = textAt(event, 'callId').split('/')
    const call = this.#run.calls.get(textAt(event, 'callId')) ?? this.#run.calls.get(first)
    if (call === undefined) return
    endWaits(call, at)
    if (call.state === 'waiting') call.state = call.starts.length === 0 ? 'requested' : 'running'
    const mark = markOf(event, at)
    if (mark !== null) call.marks.push(mark)
  }

  #reported(event: ReadEvent, at: number): void {
    const call = this.#call(event, at)
    const childRunId = textAt(event, 'childRunId')
    const left = call.background.find(({ runId }) => runId === childRunId)
    if (left !== undefined) left.reportSeq = event.seq
    else call.background.push({ runId: childRunId, agent: textAt(event, 'agent'), task: '', reportSeq: event.seq })
    const mark = markOf(event, at)
    if (mark !== null) this.#early.push(mark)
  }

  #completed(event: ReadEvent, at: number): void {
    const run = this.#run
    const pending = memberOf(event, 'pending')
    run.stopReason = textAt(event, 'stopReason') || null
    const waits = Array.isArray(pending) && pending.length > 0
    run.state = waits ? 'paused' : 'completed'
    if (waits) run.pauses.push({ from: at, to: null, reason: run.stopReason ?? '', seq: event.seq })
    this.#ended(event)
  }

  #failed(event: ReadEvent, at: number): void {
    const run = this.#run
    run.stopReason = textAt(event, 'stopReason') || null
    run.state = run.stopReason === 'cancelled' ? 'cancelled' : 'failed'
    run.error = { code: textAt(event, 'code'), message: textAt(event, 'message') }
    const turn = this.#turn()
    const attempts = objectsAt(event, 'attempts').map(attemptOf)
    if (turn?.replySeq === null && attempts.length > 0) turn.attempts = attempts
    const mark = markOf(event, at)
    if (mark !== null) run.marks.push(mark)
    this.#ended(event)
  }

  #ended(event: ReadEvent): void {
    const run = this.#run
    run.usage = event['usage'] ?? run.usage
    run.open = null
    run.marks.push(...this.#early)
    this.#early = []
  }

  #delta(event: ReadEvent, at: number): void {
    const turn = this.#turn()
    if (turn?.replySeq !== null) return
    turn.firstDeltaAt ??= at
    const { text, reasoning, inputs } = this.#run.open ?? NOTHING_OPEN
    const [more, callId] = [textAt(event, 'text'), textAt(event, 'callId')]
    if (event.kind === 'text_delta') this.#run.open = { text: text + more, reasoning, inputs }
    else if (event.kind === 'reasoning_delta') this.#run.open = { text, reasoning: reasoning + more, inputs }
    else this.#run.open = { text, reasoning, inputs: { ...inputs, [callId]: (inputs[callId] ?? '') + more } }
  }

  /** An attempt failed and is made again. */
  #retried(event: ReadEvent, at: number): void {
    const turn = this.#turn()
    const mark = markOf(event, at)
    if (mark !== null) (turn?.marks ?? this.#run.marks).push(mark)
    if (event.kind !== 'transport_retry') this.#run.open = null
    if (turn?.replySeq !== null || event.kind !== 'transport_retry') return
    turn.attempts.push({
      ...{ model: turn.model, failure: textAt(event, 'failure') || brief(textAt(event, 'reason')) },
      ...{ status: numberAt(event, 'status'), ms: at - turn.startedAt, withdrawn: event['withdrawn'] === true },
    })
  }
}

/** Said about the request that follows. */
const BEFORE_REQUEST: ReadonlySet<string> = new Set(['limit_warning', 'view_changed', 'background_reported'])

function endWaits(call: OpenCall, at: number): void {
  for (const wait of call.waits) wait.to ??= at
}

function endState(event: ReadEvent): CallState {
  if (event['ok'] === true) return 'completed'
  if (event['cancelled'] === true) return 'cancelled'
  return event['errorType'] === 'ApprovalRejected' ? 'rejected' : 'failed'
}

function modelOf(value: unknown): string {
  const [provider, model] = [textAt(value, 'provider'), textAt(value, 'model')]
  return provider === '' || model === '' ? provider + model : `${provider}:${model}`
}

function limitsOf(limits: JsonObject): Readonly<Record<string, number | null>> {
  return Object.fromEntries(Object.keys(limits).map((name) => [name, numberAt(limits, name)]))
}

function attemptOf(attempt: JsonObject): AttemptMark {
  return {
    model: modelOf(attempt),
    failure: textAt(attempt, 'failure') || null,
    status: numberAt(attempt, 'status'),
    ms: numberAt(attempt, 'ms') ?? 0,
    withdrawn: attempt['withdrawn'] === true,
  }
}

function tokensOf(usage: JsonObject): TurnTokens | null {
  const [input, output] = [numberAt(usage, 'inputTokens'), numberAt(usage, 'outputTokens')]
  if (input === null && output === null) return null
  return {
    input: input ?? 0,
    output: output ?? 0,
    cached: numberAt(usage, 'cacheReadTokens') ?? 0,
    cacheWrite: numberAt(usage, 'cacheWriteTokens') ?? 0,
    reasoning: numberAt(usage, 'reasoningTokens') ?? 0,
  }
}

/** Whether a run can go on by itself, waits, or has ended. */
export function hasRunEnded(state: RunNodeState): boolean {
  return state === 'completed' || state === 'failed' || state === 'cancelled'
}
