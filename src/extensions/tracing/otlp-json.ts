import type { JsonObject, JsonValue } from '#util/json.js'
import { SPAN_EVENT } from './attributes.js'
import { stringList } from './span-sink.js'
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
        resource: { attributes: otlpAttributes({ 'service.name': serviceName }) },
        scopeSpans: [{ scope: { name: 'thinharness' }, spans: records.map(otlpSpan) }],
      },
    ],
  }
}

/** Of OTLP's `SpanKind` and `StatusCode`. */
const KIND = { internal: 1, client: 3 } as const
const STATUS = { ok: 0, error: 2 } as const

function otlpSpan(record: TraceRecord): JsonObject {
  const { traceId, spanId, parentSpanId, name, kind, startedAt, endedAt, status, error, attributes } = record
  const message = error?.message ?? error?.type
  return {
    traceId,
    spanId,
    ...(parentSpanId !== null && { parentSpanId }),
    name,
    kind: KIND[kind],
    startTimeUnixNano: unixNanoseconds(startedAt),
    endTimeUnixNano: unixNanoseconds(endedAt),
    attributes: otlpAttributes(attributes),
    events: otlpEvents(record),
    status: { code: STATUS[status], ...(message !== undefined && { message }) },
  }
}

function otlpEvents({ events, error, endedAt }: TraceRecord): JsonObject[] {
  const listed = events.map(({ name, at, attributes }) => ({
    name,
    timeUnixNano: unixNanoseconds(at),
    attributes: otlpAttributes(attributes),
  }))
  if (error === null) return listed
  const attributes = otlpAttributes({
    [SPAN_EVENT.exceptionType]: error.type,
    [SPAN_EVENT.exceptionMessage]: error.message ?? undefined,
  })
  return [...listed, { name: SPAN_EVENT.exception, timeUnixNano: unixNanoseconds(endedAt), attributes }]
}

/** A string: the number is too large for exact JSON. */
function unixNanoseconds(at: string): string {
  return `${Date.parse(at)}000000`
}

function otlpAttributes(attributes: JsonObject): JsonObject[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined || value === null ? [] : [{ key, value: otlpValue(value) }],
  )
}

/** A list of strings stays a list; other structures become JSON text, as in an OpenTelemetry tracer. */
function otlpValue(value: JsonValue): JsonObject {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  }
  const texts = stringList(value)
  if (texts === null) return { stringValue: JSON.stringify(value) }
  return { arrayValue: { values: texts.map((text) => ({ stringValue: text })) } }
}
