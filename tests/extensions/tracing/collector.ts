import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

/** A span as OTLP has it in JSON. */
export interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[]
  readonly events: readonly { readonly name: string }[]
  readonly status: { readonly code: number; readonly message?: string }
}

export interface OtlpDocument {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[] }[]
}

/** An OTLP/HTTP collector on loopback that keeps what it is sent. */
export async function collector() {
  const requests: { path: string; type: string; body: OtlpDocument }[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as OtlpDocument
      requests.push({ path: request.url ?? '', type: request.headers['content-type'] ?? '', body })
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1/traces`,
    requests,
    get spans(): OtlpSpan[] {
      return requests.flatMap(({ body }) => spansIn(body))
    },
  }
}

export function spansIn(document: OtlpDocument): OtlpSpan[] {
  return document.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
}

/** What a span is, without ids and times. */
export function shapeOf(spans: readonly OtlpSpan[]): unknown[] {
  const names = new Map(spans.map(({ spanId, name }) => [spanId, name]))
  return spans.map(({ name, kind, parentSpanId, attributes, events, status }) => ({
    name,
    kind,
    parent: parentSpanId === undefined ? null : (names.get(parentSpanId) ?? 'unknown'),
    attributes: attributes.map(plain).toSorted((one, other) => (one.key < other.key ? -1 : 1)),
    events: events.map((event) => event.name),
    status,
  }))
}

/** OTLP allows a whole number as a number and as text. */
function plain({ key, value }: OtlpSpan['attributes'][number]): OtlpSpan['attributes'][number] {
  return { key, value: 'intValue' in value ? { intValue: String(value['intValue']) } : value }
}
