import type { JsonObject } from '../index.js'

/** One span that has ended: a line of a local trace. Times are ISO 8601 in UTC with milliseconds. */
export interface TraceRecord {
  readonly type: 'span'
  /** 32 hex digits: the same for a run, its children, and what it does after a pause or a crash. */
  readonly traceId: string
  /** 16 hex digits. */
  readonly spanId: string
  readonly parentSpanId: string | null
  readonly name: string
  readonly kind: 'internal' | 'client'
  readonly startedAt: string
  readonly endedAt: string
  readonly durationMs: number
  readonly status: 'ok' | 'error'
  readonly error: { readonly type: string; readonly message: string | null } | null
  readonly attributes: JsonObject
  readonly events: readonly { readonly name: string; readonly at: string; readonly attributes: JsonObject }[]
}
