import type { Answer, JsonValue, PendingItem } from '../../index.js'
import { isObject } from '../../util/json.js'
import type { Dialect, UiChunk } from './chunk.js'

/** A call as the client has been told of it. */
export interface ToldCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly title: string | undefined
  /** Raw JSON text of the arguments with which it runs. */
  arguments: string
  /** The arguments that were told; null: none. */
  told: string | null
  /** An approval that was asked for; its answer, once there is one. */
  approval: { answer: Answer | null } | null
  isSettled: boolean
  /** It has been answered for the helper of the client, as no person has to. */
  isAutomatic: boolean
}

export interface CallOptions {
  readonly dialect: Dialect
  /** Names of the tools that the page knows. */
  readonly staticTools: ReadonlySet<string>
}

/** The calls of a message and the chunks that tell of them. */
export class ToldCalls {
  readonly #options: CallOptions
  readonly #calls = new Map<string, ToldCall>()
  /** Ids of the calls of the latest reply. */
  #batch: string[] = []

  constructor(options: CallOptions) {
    this.#options = options
  }

  get(toolCallId: string): ToldCall | undefined {
    return this.#calls.get(toolCallId)
  }

  /** A reply has come: its calls are the batch. */
  beginBatch(): void {
    this.#batch = []
  }

  /** The calls of the latest reply, and of child runs that ask for approval. */
  get batch(): readonly ToldCall[] {
    return this.#batch.flatMap((id) => this.#calls.get(id) ?? [])
  }

  add(
    toolCallId: string,
    {
      toolName,
      title,
      arguments: text,
    }: { readonly toolName: string; readonly title?: string | undefined; readonly arguments: string },
  ): ToldCall {
    const known = this.#calls.get(toolCallId)
    if (known !== undefined) return known
    const call: ToldCall = {
      ...{ toolCallId, toolName, title, arguments: text, told: null, approval: null },
      ...{ isSettled: false, isAutomatic: false },
    }
    this.#calls.set(toolCallId, call)
    this.#batch.push(toolCallId)
    return call
  }

  /** What the client was told of these calls has been taken back. */
  forget(toolCallIds: readonly string[]): void {
    for (const id of toolCallIds) this.#calls.delete(id)
    this.#batch = this.#batch.filter((id) => this.#calls.has(id))
  }

  /** The arguments with which a call runs, unless they were told. */
  input(call: ToldCall): readonly UiChunk[] {
    if (call.told === call.arguments) return []
    call.told = call.arguments
    const input = parsed(call.arguments)
    if (input === undefined) {
      const errorText = 'The arguments are not valid JSON.'
      return [{ type: 'tool-input-error', ...this.named(call), input: call.arguments, errorText }]
    }
    return [{ type: 'tool-input-available', ...this.named(call), input }]
  }

  /** The members that name a call's tool. */
  named({ toolCallId, toolName, title }: Pick<ToldCall, 'toolCallId' | 'toolName' | 'title'>): {
    readonly toolCallId: string
    readonly toolName: string
    readonly dynamic?: true
    readonly title?: string
  } {
    const isStatic = this.#options.staticTools.has(toolName)
    return {
      ...{ toolCallId, toolName },
      ...(!isStatic && { dynamic: true as const }),
      ...(title !== undefined && this.#options.dialect > 5 && { title }),
    }
  }

  /** A person is asked about a call. */
  ask(item: PendingItem, title: string | undefined): readonly UiChunk[] {
    const { callId, toolName, payload, provenance, path } = item
    const call = this.add(callId, { toolName, title, arguments: item.arguments })
    call.arguments = item.arguments
    call.approval = { answer: null }
    const input = this.input(call)
    const descriptor = {
      path,
      ...(payload !== undefined && { preview: payload }),
      ...(provenance !== undefined && { provenance }),
    }
    return [...input, ...this.#request(callId, descriptor)]
  }

  /** A person has decided. */
  answer(call: ToldCall, answer: Answer): readonly UiChunk[] {
    if (call.approval === null || !('approved' in answer)) return []
    call.approval.answer = answer
    const { approved, reason, editedArguments } = answer
    if (editedArguments !== undefined) call.arguments = JSON.stringify(editedArguments)
    const edited = this.input(call)
    const decision = { approved, ...(reason !== undefined && { reason }) }
    const { toolCallId } = call
    const { dialect } = this.#options
    if (dialect === 6) return edited
    if (dialect === 5)
      return [
        ...edited,
        { type: 'data-approval', id: toolCallId, data: { approvalId: toolCallId, toolCallId, ...decision } },
      ]
    return [...edited, { type: 'tool-approval-response', approvalId: toolCallId, ...decision }]
  }

  /** A call has ended. */
  settle(
    call: ToldCall,
    outcome: { readonly ok: boolean; readonly output: unknown; readonly text: string },
  ): readonly UiChunk[] {
    const input = this.input(call)
    call.isSettled = true
    const { toolCallId } = call
    const dynamic = this.#options.staticTools.has(call.toolName) ? {} : { dynamic: true as const }
    if (outcome.ok) return [...input, { type: 'tool-output-available', toolCallId, output: outcome.output, ...dynamic }]
    if (isRejected(call) && this.#options.dialect > 5) return [...input, { type: 'tool-output-denied', toolCallId }]
    return [...input, { type: 'tool-output-error', toolCallId, errorText: outcome.text, ...dynamic }]
  }

  /**
   * The calls that hold the client's helper up at a pause are answered for it: it sends when every call of the step is settled or
   * answered.
   */
  answerOthers(): readonly UiChunk[] {
    if (this.#options.dialect !== 7) return []
    return this.batch.flatMap((call): UiChunk[] => {
      if (call.isSettled || call.isAutomatic || call.approval !== null || call.told === null) return []
      call.isAutomatic = true
      const approvalId = `${call.toolCallId}.automatic`
      return [
        { type: 'tool-approval-request', approvalId, toolCallId: call.toolCallId, isAutomatic: true },
        { type: 'tool-approval-response', approvalId, approved: true },
      ]
    })
  }

  /** Approvals that child runs of a call asked for have ended with it. */
  settleChildren(toolCallId: string): readonly UiChunk[] {
    return this.batch.flatMap((call) => {
      if (call.isSettled || !call.toolCallId.startsWith(`${toolCallId}/`)) return []
      const ok = !isRejected(call)
      return this.settle(call, { ok, output: null, text: 'The call did not run.' })
    })
  }

  #request(callId: string, descriptor: object): readonly UiChunk[] {
    const { dialect } = this.#options
    const ids = { approvalId: callId, toolCallId: callId }
    if (dialect === 5) return [{ type: 'data-approval', id: callId, data: { ...ids, ...descriptor } }]
    if (dialect === 6) return [{ type: 'tool-approval-request', ...ids }]
    return [{ type: 'tool-approval-request', ...ids, approvalDescriptor: descriptor }]
  }
}

function isRejected({ approval }: ToldCall): boolean {
  const answer = approval?.answer ?? null
  return answer !== null && 'approved' in answer && !answer.approved
}

/** The value of a JSON text; undefined if it is none. */
export function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text === '' ? '{}' : text) as JsonValue
  } catch {
    return undefined
  }
}

/** The content of an envelope's JSON text. */
export function contentOfEnvelope(output: string): string {
  const envelope = parsed(output)
  return isObject(envelope) && typeof envelope['content'] === 'string' ? envelope['content'] : output
}
