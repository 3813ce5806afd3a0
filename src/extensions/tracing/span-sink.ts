import type { ProviderFailure } from '#contracts/provider-failure.js'
import type { JsonValue } from '#util/json.js'
import type { RunEvent } from '#core/state/events.js'

export type EventOf<Kind extends RunEvent['kind']> = RunEvent & { readonly kind: Kind }

/** Attributes of a span or of an event on one. Absent members are not there; structures are JSON. */
export type Attributes = Readonly<Record<string, JsonValue | undefined>>

export interface SpanStart {
  readonly name: string
  readonly kind: 'internal' | 'client'
  readonly startedAt: string
  readonly attributes: Attributes
  /** The span that contains this one; null if none is known. */
  readonly parent: Span | null
}

export interface RunSpanStart extends SpanStart {
  readonly runId: string
  readonly parentRunId: string | null
  readonly root: string
  /** W3C `traceparent` of the span of the run before its pause or crash. */
  readonly earlier: string | null
}

/** A span that has begun. */
export interface Span {
  set(attributes: Attributes): void
  event(name: string, attributes: Attributes, at: string): void
  /** The span ends in an error, of one of a few classes, with a message if content is allowed. */
  fail(error: SpanError, at: string): void
  end(at: string): void
  /** Executes `work` with this span as the current one. */
  within<T>(work: () => T): T
  /** W3C `traceparent` to continue the span elsewhere, if there is one. */
  readonly traceparent: string | null
}

export interface SpanError {
  readonly type: string
  readonly message: string | null
  /** Why a provider gave no answer, if that is the error. */
  readonly failure?: ProviderFailure | undefined
}

/** Receives spans. */
export interface SpanSink {
  startRun(span: RunSpanStart): Span
  start(span: SpanStart & { readonly parent: Span }): Span
}

/** The strings of a list of strings; null for other values. OpenTelemetry has no other structures. */
export function stringList(value: JsonValue): string[] | null {
  if (!Array.isArray(value)) return null
  const texts = value.filter((each): each is string => typeof each === 'string')
  return texts.length === value.length ? texts : null
}
