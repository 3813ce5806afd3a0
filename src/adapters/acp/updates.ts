import { endKind } from '#contracts/result.js'
import type { SessionUpdate, StopReason as AcpStopReason } from '@agentclientprotocol/sdk'
import type { ChatEvent } from '#session/thread/chat-cursor.js'
import type { AnyRunEvent } from '../ui/projection.js'
import type { AcpProjection } from './projection.js'
import type { AcpChat } from './options.js'
import { errorSentence } from '../ui/error-sentence.js'

/** A run that has paused or ended. */
export interface StretchEnd {
  readonly runId: string
  /** Number of its last event. */
  readonly seq: number
  readonly isPaused: boolean
  readonly end: PromptEnd
}

export interface UpdatesSetup {
  readonly chat: AcpChat
  readonly projection: AcpProjection
  readonly send: (update: SessionUpdate) => Promise<void>
  /** The events so far are shown too. */
  readonly replays: boolean
}

/** Sends to the editor what happens in a conversation, in order, and knows how far it has come. */
export class Updates {
  readonly #setup: UpdatesSetup
  readonly #stopping = new AbortController()
  readonly #waiting = new Set<() => void>()
  #isCaughtUp = false
  #thread = 0
  readonly #seqs = new Map<string, number>()
  readonly #ends = new Map<string, StretchEnd>()
  #stretch: PromptStretch = { limits: null, finishReason: null }
  #hasStopped = false
  readonly #reading: Promise<void>

  constructor(setup: UpdatesSetup) {
    this.#setup = setup
    const { thread, runs } = setup.chat.snapshot
    const last = runs.at(-1)
    const place = { thread: thread.seq, runId: last?.runId ?? null, seq: last?.seq ?? 0 }
    // An editor that is gone gets nothing: its prompts are cancelled.
    this.#reading = this.#read(place).catch(() => undefined)
  }

  /** Resolves when everything that had happened before is sent. */
  caughtUp(): Promise<void> {
    return this.#until(() => this.#isCaughtUp)
  }

  /** The end of the stretch of a run whose last event comes after `seq`; null if the updates were stopped before it. */
  async endOf(runId: string, seq: number): Promise<StretchEnd | null> {
    const stretchEnd = (): StretchEnd | null => {
      const end = this.#ends.get(runId)
      return end !== undefined && end.seq > seq ? end : null
    }
    await this.#until(() => stretchEnd() !== null)
    return stretchEnd()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#reading
  }

  async #read(place: { readonly thread: number; readonly runId: string | null; readonly seq: number }): Promise<void> {
    const { chat, projection, replays } = this.#setup
    const { signal } = this.#stopping
    try {
      for await (const event of chat.events({ signal, children: true })) {
        const updates = projection.next(event)
        if (this.#isCaughtUp || replays) for (const update of updates) await this.#setup.send(update)
        this.#note(event)
        const { runId, seq } = place
        const isAtRun = runId === null || (this.#seqs.get(runId) ?? 0) >= seq
        if (!this.#isCaughtUp && this.#thread >= place.thread && isAtRun) this.#isCaughtUp = true
        for (const wake of this.#waiting) wake()
      }
    } finally {
      this.#hasStopped = true
      for (const wake of this.#waiting) wake()
    }
  }

  #note(event: ChatEvent): void {
    if ('threadId' in event) this.#thread = event.seq
    else if (event.parentRunId === null) this.#noteRun(event)
  }

  #noteRun(event: AnyRunEvent): void {
    const { runId, seq, kind, durable } = event
    if (durable) this.#seqs.set(runId, seq)
    if (kind === 'run_started') this.#stretch = { limits: event.rules.limits, finishReason: null }
    if (kind === 'model_message') this.#stretch = { ...this.#stretch, finishReason: event.entry.finishReason }
    if (kind !== 'run_completed' && kind !== 'run_failed' && kind !== 'run_left') return
    const isPaused = kind === 'run_completed' && event.pending.length > 0
    // An end that is not stored has the number of the event before it.
    this.#ends.set(runId, { runId, seq: durable ? seq : seq + 1, isPaused, end: promptEnd(event, this.#stretch) })
  }

  /** Resolves when `isTrue`, or when no more events come. */
  async #until(isTrue: () => boolean): Promise<void> {
    while (!isTrue() && !this.#hasStopped) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake)
          resolve()
        }
        this.#waiting.add(wake)
      })
    }
  }
}

type Ended = Extract<AnyRunEvent, { readonly kind: 'run_completed' | 'run_failed' | 'run_left' }>
type Started = Extract<AnyRunEvent, { readonly kind: 'run_started' }>
type Replied = Extract<AnyRunEvent, { readonly kind: 'model_message' }>

/** The last stretch of a run, as far as its end depends on it. */
export interface PromptStretch {
  readonly limits: Started['rules']['limits'] | null
  readonly finishReason: Replied['entry']['finishReason'] | null
}

/** The end of a prompt, or the failure that it is answered with. */
export type PromptEnd =
  | { readonly stopReason: AcpStopReason }
  | { readonly failure: { readonly message: string; readonly data: Readonly<Record<string, unknown>> } }

export function promptEnd(event: Ended, { limits, finishReason }: PromptStretch): PromptEnd {
  if (event.kind === 'run_completed') return { stopReason: 'end_turn' }
  if (event.kind === 'run_left') return promptFailure('interrupted', 'interrupted', event.runId)
  const { stopReason, code, runId, usage } = event
  const kind = endKind(stopReason)
  if (kind === 'stopped') return { stopReason: stopReason === 'cancelled' ? 'cancelled' : 'end_turn' }
  if (kind === 'limited') {
    const isOver = (limit: number | null | undefined, used: number): boolean =>
      limit !== null && limit !== undefined && used >= limit
    const byTokens = isOver(limits?.inputTokens, usage.inputTokens) || isOver(limits?.outputTokens, usage.outputTokens)
    return { stopReason: byTokens ? 'max_tokens' : 'max_turn_requests' }
  }
  if (finishReason === 'length') return { stopReason: 'max_tokens' }
  if (finishReason === 'refusal' || finishReason === 'content_filter') return { stopReason: 'refusal' }
  return promptFailure(code, stopReason, runId)
}

function promptFailure(code: string, stopReason: string, runId: string): PromptEnd {
  return { failure: { message: errorSentence({ code }), data: { code, stopReason, runId } } }
}
