import type { Answer } from '#core/state/answers.js'
import type { JsonValue } from '#util/json.js'
import type { PendingItem } from '#contracts/result.js'
import { isObject, jsonOr } from '#util/json.js'
import type { Dialect, UiChunk } from './chunk.js'

/**
 * How approvals are written: `full`: when they are asked for and when they are answered; `data`: the same as data parts;
 * `requests`: those that wait at the end, as the client of dialect 6 adds the answers itself; `answered`: with these answers.
 */
export type ApprovalForm = 'full' | 'requests' | 'answered' | 'data'

/** A call as the client has it. */
export interface SentCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly title: string | undefined
  /** Raw JSON text of the arguments with which it runs. */
  arguments: string
  /** The arguments that were sent; null: none. */
  sentArguments: string | null
  /** They are no JSON: the client has the call as one that failed, until it has others. */
  isInvalid: boolean
  approval: CallApproval | null
  /** The client was sent a preliminary output. */
  isPreliminary: boolean
  isSettled: boolean
}

interface CallApproval {
  readonly approvalId: string
  /** Asked for the client's helper alone, as no person has to decide. */
  readonly isAutomatic: boolean
  answer: { readonly approved: boolean; readonly reason?: string } | null
}

export interface CallOptions {
  readonly dialect: Dialect
  readonly approvals: ApprovalForm
  /** Names of the tools that the page knows. */
  readonly staticTools: ReadonlySet<string>
}

export interface NamedCall {
  readonly toolName: string
  readonly title?: string | undefined
  readonly arguments: string
}

export interface CallOutcome {
  readonly ok: boolean
  readonly output: unknown
  /** The reason of a failure. */
  readonly text: string
}

/** The calls of a message and the chunks about them. */
export class ToolCallChunks {
  readonly #options: CallOptions
  readonly #calls = new Map<string, SentCall>()
  /** Ids of the calls of the present step. */
  #step: string[] = []

  constructor(options: CallOptions) {
    this.#options = options
  }

  get(toolCallId: string): SentCall | undefined {
    return this.#calls.get(toolCallId)
  }

  beginStep(): void {
    this.#step = []
  }

  /** The calls of the present step, and of child runs that ask for approval in it. */
  get step(): readonly SentCall[] {
    return this.#step.flatMap((id) => this.#calls.get(id) ?? [])
  }

  add(toolCallId: string, { toolName, title, arguments: text }: NamedCall): SentCall {
    const known = this.#calls.get(toolCallId)
    if (known !== undefined) return known
    const call: SentCall = {
      toolCallId,
      toolName,
      title,
      arguments: text,
      sentArguments: null,
      isInvalid: false,
      approval: null,
      isPreliminary: false,
      isSettled: false,
    }
    this.#calls.set(toolCallId, call)
    this.#step.push(toolCallId)
    return call
  }

  /** What the client has of these calls has been taken back. */
  forget(toolCallIds: readonly string[]): void {
    for (const id of toolCallIds) this.#calls.delete(id)
  }

  /** The arguments with which a call runs, unless they were sent. */
  input(call: SentCall): readonly UiChunk[] {
    if (call.sentArguments === call.arguments) return []
    const isBehind = call.sentArguments !== null && !this.#step.includes(call.toolCallId)
    call.sentArguments = call.arguments
    const input = parseInput(call.arguments)
    const { toolCallId } = call
    // Clients change the arguments of calls of the present step alone: for others they would add a part.
    if (isBehind) return [{ type: 'data-input', id: toolCallId, data: { toolCallId, input: input ?? call.arguments } }]
    const raw = input === undefined ? call.arguments : invalidText(input)
    call.isInvalid = input === undefined || raw !== null
    if (input === undefined || raw !== null) {
      const errorText = 'The arguments are not valid JSON.'
      return [{ type: 'tool-input-error', ...this.named(call), input: raw ?? call.arguments, errorText }]
    }
    return [{ type: 'tool-input-available', ...this.named(call), input }]
  }

  /** The members that name a call's tool. */
  named({ toolCallId, toolName, title }: Pick<SentCall, 'toolCallId' | 'toolName' | 'title'>): {
    readonly toolCallId: string
    readonly toolName: string
    readonly dynamic?: true
    readonly title?: string
  } {
    return {
      toolCallId,
      toolName,
      ...this.#dynamic(toolName),
      ...(title !== undefined && this.#options.dialect > 5 && { title }),
    }
  }

  /** A person is asked about a call. */
  ask(item: PendingItem, title: string | undefined): readonly UiChunk[] {
    const { callId, toolName, payload, provenance, path } = item
    const call = this.add(callId, { toolName, title, arguments: item.arguments })
    call.arguments = item.arguments
    // A child run that waits again asks again, although its call was sent as ended when a person had answered.
    if (call.isSettled) {
      call.isSettled = false
      call.sentArguments = ''
    }
    call.approval = { approvalId: callId, isAutomatic: false, answer: null }
    const input = this.input(call)
    const ids = { approvalId: callId, toolCallId: callId }
    const descriptor = {
      ...(payload !== undefined && { preview: payload }),
      ...(provenance !== undefined && { provenance }),
      path,
      editable: true,
    }
    switch (this.#options.approvals) {
      case 'full':
        return [...input, { type: 'tool-approval-request', ...ids, approvalDescriptor: descriptor }]
      case 'data':
        return [...input, { type: 'data-approval', id: callId, data: { ...ids, ...descriptor } }]
      case 'answered':
      case 'requests':
        return input
    }
  }

  /** A person has decided. */
  answer(call: SentCall, answer: Answer): readonly UiChunk[] {
    const { approval, toolCallId } = call
    if (approval === null || !('approved' in answer)) return []
    const { approved, reason, editedArguments } = answer
    const decision = { approved, ...(reason !== undefined && { reason }) }
    approval.answer = decision
    if (editedArguments !== undefined) call.arguments = JSON.stringify(editedArguments)
    const edited = this.input(call)
    if (this.#options.approvals === 'requests') return edited
    const ids = { approvalId: toolCallId, toolCallId }
    if (this.#options.approvals === 'data')
      return [...edited, { type: 'data-approval', id: toolCallId, data: { ...ids, ...decision } }]
    const asked: UiChunk[] = this.#options.approvals === 'answered' ? [{ type: 'tool-approval-request', ...ids }] : []
    return [...edited, ...asked, approvalResponse(toolCallId, decision)]
  }

  /** An output of a call that has not ended. */
  preliminary(toolCallId: string, output: unknown): readonly UiChunk[] {
    const call = this.#calls.get(toolCallId)
    if (call === undefined || call.isSettled || call.sentArguments === null) return []
    call.isPreliminary = true
    const dynamic = this.#dynamic(call.toolName)
    return [{ type: 'tool-output-available', toolCallId, output, preliminary: true, ...dynamic }]
  }

  /** Preliminary outputs do not stay: the calls are as they were before them. */
  withdrawOutputs(): readonly UiChunk[] {
    return [...this.#calls.values()].flatMap((call) => this.#withdrawOutput(call))
  }

  #withdrawOutput(call: SentCall): readonly UiChunk[] {
    if (!call.isPreliminary) return []
    call.isPreliminary = false
    call.sentArguments = ''
    const input = this.input(call)
    const { approval, toolCallId } = call
    const { approvals } = this.#options
    if (approval === null || approvals === 'requests' || approvals === 'data') return input
    const { approvalId, answer } = approval
    return [
      ...input,
      answer === null ? automaticApproval(approvalId, toolCallId) : approvalResponse(approvalId, answer),
    ]
  }

  /** A call has ended. */
  settle(call: SentCall, outcome: CallOutcome): readonly UiChunk[] {
    const { toolCallId, toolName, approval } = call
    const input = [...this.#withdrawOutput(call), ...this.input(call)]
    call.isSettled = true
    const decided = this.#decide(call, outcome)
    const dynamic = this.#dynamic(toolName)
    const isRejected = approval?.answer?.approved === false
    if (outcome.ok)
      return [...input, ...decided, { type: 'tool-output-available', toolCallId, output: outcome.output, ...dynamic }]
    if (isRejected && this.#options.dialect > 5)
      return [...input, ...decided, { type: 'tool-output-denied', toolCallId }]
    return [...input, ...decided, { type: 'tool-output-error', toolCallId, errorText: outcome.text, ...dynamic }]
  }

  /** Approvals that child runs of a call asked for have ended with it. */
  settleChildren(toolCallId: string): readonly UiChunk[] {
    return this.#settleChildren((call) => call.toolCallId.startsWith(`${toolCallId}/`))
  }

  /** The calls that a run has left open at its end. */
  settleAll(text: string): readonly UiChunk[] {
    return [...this.#calls.values()].flatMap((call) =>
      call.isSettled || call.sentArguments === null ? [] : this.settle(call, { ok: false, output: null, text }),
    )
  }

  /**
   * The run pauses. The client's helper sends when each call of the step is settled or answered, and one is answered: while an
   * approval waits, calls that no person decides about are answered for it; else none may look answered.
   */
  pause(): readonly UiChunk[] {
    const settled = [...this.#settleChildren(({ approval }) => approval?.answer !== null), ...this.withdrawOutputs()]
    if (this.#options.approvals !== 'full') return settled
    const open = this.step.filter(
      ({ isSettled, isInvalid, sentArguments }) => !isSettled && !isInvalid && sentArguments !== null,
    )
    const isWaiting = open.some(({ approval }) => approval?.isAutomatic === false && approval.answer === null)
    const others = open.flatMap((call) => {
      if (isWaiting) return call.approval === null || call.approval.isAutomatic ? this.#automatic(call, true) : []
      return (call.approval?.answer ?? null) === null ? [] : this.#automatic(call, false)
    })
    return [...settled, ...others]
  }

  /** The approvals that wait at the end of a stream, if they are sent there. */
  waiting(): readonly UiChunk[] {
    if (this.#options.approvals === 'full' || this.#options.approvals === 'data') return []
    return [...this.#calls.values()].flatMap(({ toolCallId, approval, isSettled }): UiChunk[] =>
      isSettled || approval === null || approval.answer !== null
        ? []
        : [{ type: 'tool-approval-request', approvalId: approval.approvalId, toolCallId }],
    )
  }

  #settleChildren(isMeant: (call: SentCall) => boolean): readonly UiChunk[] {
    return [...this.#calls.values()].flatMap((call) => {
      const { toolCallId, approval, isSettled } = call
      if (isSettled || !toolCallId.includes('/') || !isMeant(call)) return []
      return this.settle(call, { ok: approval?.answer?.approved === true, output: null, text: 'The call did not run.' })
    })
  }

  #automatic(call: SentCall, isAnswered: boolean): readonly UiChunk[] {
    const { toolCallId, approval } = call
    if (approval?.isAutomatic === true && (approval.answer !== null) === isAnswered) return []
    const approvalId = `${toolCallId}.automatic`
    call.approval = { approvalId, isAutomatic: true, answer: isAnswered ? { approved: true } : null }
    const request = automaticApproval(approvalId, toolCallId)
    return isAnswered ? [request, approvalResponse(approvalId, { approved: true })] : [request]
  }

  /** A call that has ended waits for nobody: an approval without an answer is not valid then. */
  #decide({ approval, toolCallId }: SentCall, { ok, text }: CallOutcome): readonly UiChunk[] {
    if (approval === null || approval.answer !== null || this.#options.approvals !== 'full') return []
    const { approvalId, isAutomatic } = approval
    approval.answer = ok || isAutomatic ? { approved: true } : { approved: false, reason: text }
    const decided = approvalResponse(approvalId, approval.answer)
    // A page that gave the output itself has dropped a request that nobody answered.
    return isAutomatic ? [automaticApproval(approvalId, toolCallId), decided] : [decided]
  }

  #dynamic(toolName: string): { readonly dynamic?: true } {
    return this.#options.staticTools.has(toolName) ? {} : { dynamic: true }
  }
}

function automaticApproval(approvalId: string, toolCallId: string): UiChunk {
  return { type: 'tool-approval-request', approvalId, toolCallId, isAutomatic: true }
}

function approvalResponse(
  approvalId: string,
  decision: { readonly approved: boolean; readonly reason?: string },
): UiChunk {
  return { type: 'tool-approval-response', approvalId, ...decision }
}

/** The text of arguments that were no JSON: the conversation has them as `{ invalid_arguments: text }`. Null for others. */
function invalidText(input: JsonValue): string | null {
  if (!isObject(input) || Object.keys(input).length !== 1) return null
  const { invalid_arguments: text } = input
  return typeof text === 'string' ? text : null
}

/** The value of a JSON text; undefined if it is none. */
export function parseInput(text: string): JsonValue | undefined {
  return jsonOr(text === '' ? '{}' : text, undefined)
}
