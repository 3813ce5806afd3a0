import { createHash } from 'node:crypto'
import { entryId } from '#contracts/entry.js'
import type { AssistantPart, UserEntry } from '#contracts/entry.js'
import { apply, stateAtFirst } from '#core/loop/apply.js'
import { lengthWhenClosed } from '#core/state/closing.js'
import { FORMAT_VERSION } from '#core/state/events.js'
import type { DurablePayloads, RequestKind } from '#core/state/events.js'
import { NO_RULES } from '#core/state/run-rules.js'
import type { RunState } from '#core/state/state.js'
import { renderEnvelope } from '#core/tools/boundary/envelope.js'
import type { JsonObject } from '#util/json.js'
import type { DurableEvent } from '../../index.js'
import type { SaidMessage, SessionTurn, TurnCall, SessionTurns } from './turns.js'

/** What the log of an imported session says of it. */
export interface Imported {
  readonly runId: string
  readonly root: string
  readonly provider: string
  readonly model: string
  readonly metadata: JsonObject
  readonly labels: Readonly<Record<string, string>>
  /** For what the file gives no time. ISO 8601. */
  readonly at: string
  /** Of a subagent: the call that started it. */
  readonly parent?: { readonly runId: string; readonly callId: string | null; readonly agentName: string } | undefined
}

/** The id of the run of a file: the same content is the same run. */
export function runIdOf(text: string, agent = ''): string {
  return `run_${createHash('sha256').update(`${agent}\n${text}`).digest('hex').slice(0, 32)}`
}

/**
 * The log of a conversation: one run, in which each message of a person is steering, so that every turn can be looked at and
 * forked. It ends with its answer, or as cancelled if the session stopped before.
 */
export function logOf({ turns, unanswered }: SessionTurns, imported: Imported): readonly DurableEvent[] {
  const writer = new Writer(imported)
  const [first, ...more] = turns[0]?.said ?? unanswered
  const { content = [{ type: 'text', text: BEGINS_WITH_A_REPLY }], at = null } = first ?? {}
  writer.begin({ content, at: at ?? turns.find((turn) => turn.at !== null)?.at ?? null })
  turns.forEach((turn, index) => writer.turn(turn, index === 0 ? more : turn.said))
  const rest = turns.length === 0 ? more : unanswered
  if (rest.length > 0 || turns.length === 0) writer.request(rest, { provider: undefined, model: undefined })
  return writer.end()
}

const BEGINS_WITH_A_REPLY = '(The file begins with a reply.)'
const NO_RESULT = 'The file has no result of this call.'

type Answering = Pick<SessionTurn, 'provider' | 'model'>

class Writer {
  readonly #events: DurableEvent[] = []
  readonly #imported: Imported
  #state: RunState | undefined
  #at = ''

  constructor(imported: Imported) {
    this.#imported = imported
  }

  begin({ content, at }: SaidMessage): void {
    const { root, provider, model, metadata, labels, at: written } = this.#imported
    const [only] = content
    const prompt = content.length === 1 && only?.type === 'text' ? only.text : content
    this.#add('run_started', at ?? written, {
      ...{ version: FORMAT_VERSION, begun: 'fresh', prompt, root, provider, model, metadata, labels, history: [] },
      ...{ maxModelRequests: null, maxToolCalls: null, rules: NO_RULES },
    })
  }

  /** The request, the reply and the calls of a turn. */
  turn(turn: SessionTurn, said: readonly SaidMessage[]): void {
    this.request(said, turn)
    const { provider, model } = this.#answering(turn)
    const calls = turn.parts.flatMap((part) => ('callId' in part && !('type' in part) && !part.hosted ? [part] : []))
    const finishReason = calls.length > 0 ? 'tool_calls' : 'stop'
    const parts = turn.parts.map((part) => ('type' in part ? part : partOf(part)))
    const at = this.#later(turn.at)
    const id = entryId(this.#state?.transcript.length ?? 0)
    const cost = turn.costUsd === undefined ? {} : { cost: Math.ceil(turn.costUsd * 1e6) }
    this.#add('model_message', at, {
      finalizedOutputMode: null,
      entry: { id, at, role: 'assistant', parts, provider, model, finishReason, usage: turn.usage },
      resolution: calls.length > 0 ? { kind: 'continue' } : { kind: 'final', mode: null, callId: null },
      ...{ nativeFinishReason: null, responseId: null, responseModel: null, ...cost },
    })
    calls.forEach((call, toolIndex) => {
      const { callId, name: toolName } = call
      this.#add('tool_call_started', at, { callId, toolName, toolIndex, arguments: call.arguments })
    })
    calls.forEach((call, toolIndex) => this.#complete(call, toolIndex, at))
  }

  request(said: readonly SaidMessage[], answering: Answering): void {
    const from = this.#state === undefined ? 0 : lengthWhenClosed(this.#state)
    const entries = said.map((message, index): UserEntry => {
      return { id: entryId(from + index), at: this.#later(message.at), role: 'user', content: message.content }
    })
    // A request is sent when it can be: after its messages, or after the results before it.
    const sent = said.at(-1)?.at ?? null
    const { provider, model } = this.#answering(answering)
    this.#add('model_request_started', sent, { requestKind: this.#kind(said), provider, model, entries, notices: [] })
  }

  end(): readonly DurableEvent[] {
    const { usage, phase } = this.#state ?? {}
    if (usage === undefined || phase === undefined) return []
    if (phase.at === 'answered') this.#add('run_completed', null, { stopReason: 'end_turn', usage, pending: [] })
    else {
      const message = 'The session that was imported stopped here.'
      const why = { stopReason: 'cancelled', code: 'cancelled', errorType: 'HarnessError', message } as const
      this.#add('run_failed', null, { ...why, usage })
    }
    return this.#events
  }

  #complete({ callId, name: toolName, result }: TurnCall, toolIndex: number, began: string): void {
    const ok = result !== null && !result.isError
    const content = result === null ? NO_RESULT : result.content
    const errorType = ok ? null : result === null ? 'NoResult' : 'ToolError'
    const at = this.#later(result?.at ?? null)
    this.#add('tool_call_completed', at, {
      ...{ callId, toolName, toolIndex, ok, cancelled: false, retryKind: null, errorType },
      message: ok ? null : content,
      durationMs: Date.parse(at) - Date.parse(began),
      output: renderEnvelope({ ok, content, metadata: errorType === null ? {} : { error_type: errorType } }),
      ...(result !== null && result.media.length > 0 && { parts: result.media }),
    })
  }

  #kind(said: readonly SaidMessage[]): RequestKind {
    if (this.#state?.phase.at === 'opening') return 'start'
    return said.length > 0 ? 'steering' : 'tool_outputs'
  }

  #answering({ provider, model }: Answering): { readonly provider: string; readonly model: string } {
    return { provider: provider ?? this.#imported.provider, model: model ?? this.#imported.model }
  }

  /** Times of a log never go back. */
  #later(at: string | null): string {
    return at !== null && at > this.#at ? at : this.#at
  }

  #add<Kind extends keyof DurablePayloads>(kind: Kind, at: string | null, payload: DurablePayloads[Kind]): void {
    const { runId, parent } = this.#imported
    const base = {
      ...{ kind, runId, seq: this.#events.length + 1, at: (this.#at = this.#later(at)), durable: true },
      ...{ parentRunId: parent?.runId ?? null, parentToolCallId: parent?.callId ?? null },
      agentName: parent?.agentName ?? null,
    }
    const event = { ...base, ...payload } as unknown as DurableEvent
    this.#state = this.#state === undefined ? stateAtFirst(event) : apply(this.#state, event)
    this.#events.push(event)
  }
}

function partOf({ callId, name, arguments: text, hosted, result }: TurnCall): AssistantPart {
  if (!hosted) return { type: 'tool_call', callId, name, arguments: text }
  const source = { kind: /search|fetch/.test(name) ? 'web' : 'server', name } as const
  const outcome = result === null ? {} : { result: result.content, ...(result.isError && { isError: true as const }) }
  return { type: 'hosted', callId, name, source, arguments: text, ...outcome }
}
