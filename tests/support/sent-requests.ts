import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, vi } from 'vitest'
import type * as TransportModule from '#providers/http/open-transport.js'
import type { Transport, TransportRequest } from '#providers/http/wire-format.js'

declare module 'vitest' {
  interface ProvidedContext {
    /** Folder of the requests that tests send, a file for each file of tests. */
    readonly sentRequests: string
  }
}

/**
 * Loaded before each test file: writes down the requests of every adapter, over any connection. They are checked after all
 * tests (`checked-requests.ts`).
 */
vi.mock('#providers/http/open-transport.js', async (original) => {
  const module = await original<typeof TransportModule>()
  const opened: typeof module.openTransport = (settings) => recording(module.openTransport(settings))
  return { ...module, openTransport: opened }
})

function recording(transport: Transport): Transport {
  return {
    bodies: transport.bodies,
    send(request) {
      record(request)
      return transport.send(request)
    },
    stream(request) {
      record(request)
      return transport.stream(request)
    },
    ...(transport.call !== undefined && { call: transport.call.bind(transport) }),
    ...(transport.connect !== undefined && { connect: transport.connect.bind(transport) }),
    close: () => transport.close(),
  }
}

const APIS: ReadonlyMap<string, string> = new Map([
  ['/responses', 'openai-responses'],
  ['/chat/completions', 'openai-chat'],
  ['/v1/messages', 'anthropic-messages'],
])

const file = join(inject('sentRequests'), `${process.pid}-${performance.now()}.jsonl`)
const written = new Set<string>()

function record({ path, headers, body }: TransportRequest): void {
  const api = APIS.get(path)
  if (api === undefined) return
  const text = Array.isArray(body) ? Buffer.concat(body as readonly Uint8Array[]).toString() : JSON.stringify(body)
  if (written.has(text) || isOfTheFuture(text)) return
  written.add(text)
  const { currentTestName = '', testPath = '' } = expect.getState()
  const name = `${testPath.replace(/^.*\/tests\//, '')}: ${currentTestName}`
  // Requests with a beta feature of this library have a schema of their own.
  const schema = headers['anthropic-beta'] === undefined ? api : 'anthropic-messages-beta'
  const about = JSON.stringify({ name, api: schema, version: headers['anthropic-version'] })
  appendFileSync(file, `${about.slice(0, -1)},"body":${text}}\n`)
}

/** Something that an API may have one day is in none of its schemas. */
function isOfTheFuture(body: string): boolean {
  return /"type":"future_|"future_field":/.test(body)
}
