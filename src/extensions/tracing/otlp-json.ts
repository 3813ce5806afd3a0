import type { JsonObject, JsonValue } from '#util/json.js'
import { SPAN_EVENT } from './names.js'
import { textsIn } from './spans.js'
import type { TraceRecord } from './local-traces.js'

/**
 * Records of a local trace in OpenTelemetry's own JSON (OTLP), as collectors and viewers such as Jaeger read it from a
 * file: one document for any number of spans.
 */
export function otlpJson(
  records: readonly TraceRecord[],
  { serviceName = 'thinharness' }: { readonly serviceName?: string } = {},
): JsonObject {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf({ 'service.name': serviceName }) },
        scopeSpans: [{ scope: { name: 'thinharness' }, spans: records.map(spanOf) }],
      },
    ],
  }
}

/** Of OTLP's `SpanKind` and `StatusCode`. */
const KIND = { internal: 1, client: 3 } as const
const STATUS = { ok: 0, error: 2 } as const

function spanOf(record: TraceRecord): JsonObject {
  const { traceId, spanId, parentSpanId, name, kind, startedAt, endedAt, status, error, attributes } = record
  const message = error?.message ?? error?.type
  return {
    traceId,
    spanId,
    ...(parentSpanId !== null && { parentSpanId }),
    name,
    kind: KIND[kind],
    startTimeUnixNano: nanosecondsOf(startedAt),
    endTimeUnixNano: nanosecondsOf(endedAt),
    attributes: attributesOf(attributes),
    events: eventsOf(record),
    status: { code: STATUS[status], ...(message !== undefined && { message }) },
  }
}

function eventsOf({ events, error, endedAt }: TraceRecord): JsonObject[] {
  const listed = events.map(({ name, at, attributes }) => ({
    name,
    timeUnixNano: nanosecondsOf(at),
    attributes: attributesOf(attributes),
  }))
  if (error === null) return listed
  const attributes = attributesOf({
    [SPAN_EVENT.exceptionType]: error.type,
    [SPAN_EVENT.exceptionMessage]: error.message ?? undefined,
  })
  return [...listed, { name: SPAN_EVENT.exception, timeUnixNano: nanosecondsOf(endedAt), attributes }]
}

/** A string: the number is too large for exact JSON. */
function nanosecondsOf(at: string): string {
  return `${Date.parse(at)}000000`
}

function attributesOf(attributes: JsonObject): JsonObject[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined || value === null ? [] : [{ key, value: valueOf(value) }],
  )
}

/** A list of strings stays a list; other structures become JSON text, as in an OpenTelemetry tracer. */
function valueOf(value: JsonValue): JsonObject {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  }
  const texts = textsIn(value)
  if (texts === null) return { stringValue: JSON.stringify(value) }
  return { arrayValue: { values: texts.map((text) => ({ stringValue: text })) } }
}
