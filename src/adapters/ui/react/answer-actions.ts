import type { FollowedEvent } from '../client/follow-run.js'
import type { RequestOutcome, LiveStore } from './live-store.js'
import type { Answer } from '#core/state/answers.js'
import type { JsonObject, JsonValue } from '#util/json.js'

/** Answers of a person to what waits. None of these rejects: each resolves with its outcome, and a refusal is the `error` of the store. */
export interface AnswerActions {
  /** Answers items; those of one reply are best answered together. */
  readonly answer: (...answers: readonly Answer[]) => Promise<RequestOutcome>
  /** Lets a call run, with other arguments if they are given. */
  readonly approve: (callId: string, change?: { readonly editedArguments?: JsonObject }) => Promise<RequestOutcome>
  /** Refuses a call; the model reads the reason. */
  readonly reject: (callId: string, reason?: string) => Promise<RequestOutcome>
  /** Answers a question of a tool. */
  readonly reply: (callId: string, answer: JsonValue) => Promise<RequestOutcome>
  /** Declines to answer a question. */
  readonly decline: (callId: string, reason?: string) => Promise<RequestOutcome>
}

/** What a store knows of answers: the calls of those that are under way. */
export interface AnswerFacts {
  readonly answering: readonly string[]
}

/** The answers for what waits at `path`. */
export function answerActions<Own extends AnswerFacts, State extends object>(
  live: LiveStore<Own, State>,
  path: string,
): AnswerActions {
  const answer = async (...answers: readonly Answer[]): Promise<RequestOutcome> => {
    const ids = answers.map(({ callId }) => callId)
    const setAnswering = (answering: readonly string[]): void => live.set({ own: { ...live.own, answering } })
    setAnswering([...live.own.answering, ...ids])
    const outcome = await live.post(path, { answers })
    if (!outcome.ok) setAnswering(live.own.answering.filter((callId) => !ids.includes(callId)))
    return outcome
  }
  return {
    answer,
    approve: (callId, { editedArguments } = {}) =>
      answer({ callId, approved: true, ...(editedArguments !== undefined && { editedArguments }) }),
    reject: (callId, reason) => answer({ callId, approved: false, ...(reason !== undefined && { reason }) }),
    reply: (callId, value) => answer({ callId, answer: value }),
    decline: (callId, reason) => answer({ callId, declined: true, ...(reason !== undefined && { reason }) }),
  }
}

/** The answers under way after an event: a call may ask again. */
export function answeringAfter(answering: readonly string[], event: FollowedEvent): readonly string[] {
  if (answering.length === 0 || 'threadId' in event) return answering
  if (event.kind === 'answer_received') return answering.filter((callId) => callId !== event.callId)
  return event.kind === 'run_completed' || event.kind === 'run_failed' ? NONE : answering
}

const NONE: readonly never[] = []
