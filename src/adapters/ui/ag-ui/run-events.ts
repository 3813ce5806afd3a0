import { FINAL_RESULT } from '#core/state/output-format.js'
import { contentOfEnvelope } from '../shown-content.js'
import { DIAGNOSTICS } from '../projection.js'
import type { AnyEventOf, AnyRunEvent } from '../projection.js'
import { agUiContent, agUiPart } from './message.js'
import type { AgUiPart } from './message.js'
import type { AgUiOptions } from './options.js'
import type { Sink } from './sink.js'
import { ReplyEvents } from './reply-events.js'
import type { RunNames } from './reply-events.js'

export interface RunEventsOptions extends RunNames {
  readonly sink: Sink
  readonly options: AgUiOptions
  /** The id of a person's message, in the thread. */
  readonly messageId: (id: string) => string
}

/** The events of one run, without its beginning and its end: its replies, calls and steps. */
export class RunEvents {
  readonly #run: RunEventsOptions
  readonly #sink: Sink
  readonly #reply: ReplyEvents
  #answersByTool = false
  #turns = 0
  /** The name of the step that is open. */
  #step: string | null = null
  /** Calls of the step that have no result. */
  #open = new Set<string>()
  /** Ids of the results of calls that the run has ended without: a retry goes on with these calls. */
  #cutOff: string[] = []

  constructor(run: RunEventsOptions) {
    const { deltas, reasoning } = run.options
    this.#run = run
    this.#sink = run.sink
    this.#reply = new ReplyEvents(run.sink, run, { live: deltas !== 'settled', reasoning: reasoning !== false })
  }

  next(event: AnyRunEvent): void {
    for (const { callId, toolName, text } of this.#reply.next(event)) {
      this.#cutOff.push(`${event.runId}:${callId}:result`)
      this.#result({ callId, toolName, ok: false }, text)
    }
    if (DIAGNOSTICS.has(event.kind)) return this.#diagnose(event)
    ;(this.#handlers[event.kind] as ((event: AnyRunEvent) => void) | undefined)?.(event)
  }

  /** Ends what is open: the run pauses, ends, or was interrupted. */
  close(): void {
    this.#reply.close()
    this.#endStep()
  }

  /** Returns a function that sends the open messages again to a stream that begins in the middle of the run. */
  reopen(): () => void {
    const events = this.#reply.takeOpen()
    return () => {
      if (this.#step !== null) this.#sink.send({ type: 'STEP_STARTED', stepName: this.#step, ...this.#run.owner })
      this.#sink.send(...events)
    }
  }

  readonly #handlers: { readonly [Kind in AnyRunEvent['kind']]?: (event: AnyEventOf<Kind>) => void } = {
    run_started: ({ rules }) => {
      this.#answersByTool = rules.answersByTool
      this.#endStep()
      if (this.#cutOff.length > 0) this.#sink.withdraw({ messageIds: this.#cutOff, callIds: [] })
      this.#cutOff = []
    },
    model_request_started: (event) => this.#requestStarted(event),
    model_message: ({ entry }) => {
      const calls = entry.parts.flatMap((part) =>
        part.type === 'tool_call' && !this.#isAnswer(part.name) ? [part.callId] : [],
      )
      this.#open = new Set(calls)
      if (this.#open.size === 0) this.#endStep()
    },
    call_prepared: ({ callId, toolName, arguments: changed, cancelled }) => {
      if (changed === undefined && cancelled === undefined) return
      const change = {
        ...(changed !== undefined && { arguments: changed }),
        ...(cancelled !== undefined && { cancelled }),
      }
      this.#custom('call_prepared', { toolCallId: this.#run.callId(callId), toolName, ...change })
      if (changed !== undefined) this.#sink.changeArguments(this.#run.callId(callId), changed)
    },
    answer_received: ({ callId, answer }) => {
      if ('editedArguments' in answer && answer.editedArguments !== undefined)
        this.#sink.changeArguments(this.#run.callId(callId), JSON.stringify(answer.editedArguments))
    },
    tool_call_started: ({ callId, toolName }) => this.#activity(callId, toolName, 'running'),
    tool_progress: ({ callId, toolName, update }) =>
      this.#custom('progress', { toolCallId: this.#run.callId(callId), toolName, update }),
    tool_call_interrupted: ({ callId, toolName, settledBy }) =>
      this.#custom('tool_call_interrupted', { toolCallId: this.#run.callId(callId), toolName, settledBy }),
    tool_call_completed: (event) => this.#completed(event),
    output_delta: ({ output }) => {
      if (output !== null) this.#custom('output', output)
    },
  }

  #requestStarted({ entries, runId, seq }: AnyEventOf<'model_request_started'>): void {
    this.#endStep()
    this.#step = `turn ${++this.#turns}`
    this.#open.clear()
    this.#sink.send({ type: 'STEP_STARTED', stepName: this.#step, ...this.#run.owner })
    for (const entry of entries) {
      if (entry.role !== 'user' || entry.notice === true || entry.source !== undefined) continue
      const messageId = this.#run.messageId(entry.messageId ?? entry.id)
      const content = agUiContent(entry.content, { runId, seq }, this.#run.options)
      const { owner } = this.#run
      if (typeof content === 'string')
        this.#sink.send(
          { type: 'TEXT_MESSAGE_START', messageId, role: 'user', ...owner },
          { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: content, ...owner },
          { type: 'TEXT_MESSAGE_END', messageId, ...owner },
        )
      else {
        this.#sink.addMessage({ id: messageId, role: 'user', content, ...owner })
        this.#sink.withdraw()
      }
    }
  }

  #completed(event: AnyEventOf<'tool_call_completed'>): void {
    const { callId, toolName, ok, output, parts = [], runId, seq } = event
    if (this.#isAnswer(toolName)) return
    const text = contentOfEnvelope(output)
    const files = parts.map((part, index) => agUiPart(part, { runId, seq, index }, this.#run.options))
    this.#result({ callId, toolName, ok }, files.length === 0 ? text : [{ type: 'text', text }, ...files])
  }

  #result(
    { callId, toolName, ok }: Pick<AnyEventOf<'tool_call_completed'>, 'callId' | 'toolName' | 'ok'>,
    content: string | readonly AgUiPart[],
  ): void {
    this.#activity(callId, toolName, ok ? 'completed' : 'failed')
    this.#sink.send({
      type: 'TOOL_CALL_RESULT',
      messageId: `${this.#run.runId}:${callId}:result`,
      toolCallId: this.#run.callId(callId),
      content,
      role: 'tool',
      ...this.#run.owner,
      metadata: { thinharness: { ok } },
    })
    this.#open.delete(callId)
    if (this.#open.size === 0) this.#endStep()
  }

  #activity(callId: string, toolName: string, status: string): void {
    if (this.#run.options.activities !== true || this.#isAnswer(toolName)) return
    this.#sink.send({
      type: 'ACTIVITY_SNAPSHOT',
      messageId: `${this.#run.runId}:${callId}:activity`,
      activityType: 'thinharness.call',
      content: { toolCallId: this.#run.callId(callId), toolName, status },
      ...this.#run.owner,
    })
  }

  #diagnose(event: AnyRunEvent): void {
    if (this.#run.options.diagnostics !== true) return
    const { runId: _runId, durable: _durable, parentRunId: _parent, parentToolCallId: _call, ...rest } = event
    const { agentName: _agent, kind, ...value } = rest
    this.#custom(kind, value)
  }

  #custom(kind: string, value: unknown): void {
    this.#sink.send({ type: 'CUSTOM', name: `thinharness.${kind}`, value, ...this.#run.owner })
  }

  #endStep(): void {
    if (this.#step === null) return
    this.#sink.send({ type: 'STEP_FINISHED', stepName: this.#step, ...this.#run.owner })
    this.#step = null
  }

  #isAnswer(toolName: string): boolean {
    return toolName === FINAL_RESULT && this.#answersByTool
  }
}
