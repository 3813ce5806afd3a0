import type { DurableEvent, TokenUsage } from 'thinharness'
import type { RunRules } from '#core/state/run-rules.js'
import type { DurablePayloads } from '#core/state/events.js'
import { apply } from '#core/loop/apply.js'
import { openState } from '#core/state/state.js'
import type { RunState } from '#core/state/state.js'
import type { AssistantPart, UserEntry } from '#contracts/entry.js'
import { NO_TOKENS } from '#contracts/entry.js'

export const AT = '2026-01-01T00:00:00.000Z'
export const USAGE: TokenUsage = { ...NO_TOKENS, inputTokens: 10, outputTokens: 5 }

export const RULES: RunRules = {
  limits: { modelRequests: 64, toolCalls: null, inputTokens: null, outputTokens: null, timeMs: null, costUsd: null },
  outputRetries: 1,
  toolRetries: 1,
  toolRetryBudgets: {},
  answersByTool: false,
}

type Payload<Kind extends keyof DurablePayloads> = Partial<DurablePayloads[Kind]>

/** A durable event, with what the test does not care about filled in by `DEFAULTS`. */
export function event<Kind extends keyof DurablePayloads>(
  kind: Kind,
  seq: number,
  payload: Payload<Kind> = {},
): DurableEvent {
  const base = {
    runId: 'run_t',
    seq,
    at: AT,
    durable: true,
    parentRunId: null,
    parentToolCallId: null,
    agentName: null,
  }
  return { kind, ...base, ...DEFAULTS[kind], ...payload } as unknown as DurableEvent
}

const DEFAULTS: { readonly [Kind in keyof DurablePayloads]?: Payload<Kind> } = {
  run_started: {
    version: 3,
    prompt: 'Go.',
    root: '/work',
    provider: 'p',
    model: 'm',
    maxModelRequests: 64,
    maxToolCalls: null,
    metadata: {},
    rules: RULES,
    history: [],
  },
  model_request_started: { requestKind: 'start', provider: 'p', model: 'm', entries: [], notices: [] },
  tool_call_completed: {
    toolName: 'a',
    toolIndex: 0,
    ok: true,
    cancelled: false,
    retryKind: null,
    errorType: null,
    message: null,
    durationMs: 1,
    output: '{"ok":true,"content":"ok","metadata":{}}',
  },
}

export function user(index: number, text: string): UserEntry {
  return { role: 'user', id: `e${index + 1}`, at: AT, content: [{ type: 'text', text }] }
}

export function calls(...names: readonly string[]): AssistantPart[] {
  return names.map((name, index) => ({ type: 'tool_call', callId: `call_${index + 1}`, name, arguments: '{}' }))
}

export function text(said: string): AssistantPart[] {
  return [{ type: 'text', text: said }]
}

/** A run's state, event by event; each `then` gives its event the next number. */
export class Story {
  readonly events: DurableEvent[]
  readonly state: RunState

  constructor(started: Payload<'run_started'> = {}) {
    const first = event('run_started', 1, started)
    this.events = [first]
    this.state = openState(first as DurableEvent & { kind: 'run_started' })
  }

  then<Kind extends keyof DurablePayloads>(kind: Kind, payload: Payload<Kind> = {}): this {
    const next = event(kind, this.state.seq + 1, payload)
    this.events.push(next)
    apply(this.state, next)
    return this
  }

  asks(payload: Payload<'model_request_started'> = {}): this {
    return this.then('model_request_started', payload)
  }

  /** A reply of these parts; the harness makes of it what `resolution` says. */
  replies(
    parts: readonly AssistantPart[],
    resolution: DurablePayloads['model_message']['resolution'] = parts.some((part) => part.type === 'tool_call')
      ? { kind: 'continue' }
      : { kind: 'final', mode: null, callId: null },
  ): this {
    const { length } = this.state.transcript
    const finishReason = parts.some((part) => part.type === 'tool_call') ? 'tool_calls' : 'stop'
    return this.then('model_message', {
      entry: {
        role: 'assistant',
        id: `e${length + 1}`,
        at: AT,
        parts,
        provider: 'p',
        model: 'm',
        finishReason,
        usage: USAGE,
      },
      resolution,
    })
  }

  starts(callId: string): this {
    return this.then('tool_call_started', { callId, toolName: 'a', toolIndex: 0, arguments: '{}' })
  }

  completes(callId: string, payload: Payload<'tool_call_completed'> = {}): this {
    return this.then('tool_call_completed', { callId, ...payload })
  }
}
