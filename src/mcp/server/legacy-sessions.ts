import { randomUUID } from 'node:crypto'
import type { McpServerFactory, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import type * as sdkModule from '@modelcontextprotocol/server'

/** Sessions that are kept; the one that was used least lately ends when another begins. */
const MOST_SESSIONS = 1_000

/**
 * Serves clients of older revisions, a session each: only within one can a client cancel what it asked for. The SDK's own
 * serving of them keeps nothing between requests.
 */
export class LegacySessions {
  readonly #sdk: typeof sdkModule
  readonly #factory: McpServerFactory
  readonly #sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()

  constructor(sdk: typeof sdkModule, factory: McpServerFactory) {
    this.#sdk = sdk
    this.#factory = factory
  }

  async fetch(request: Request): Promise<Response> {
    const id = request.headers.get('mcp-session-id')
    if (id === null) return (await this.#begin()).handleRequest(request)
    const session = this.#sessions.get(id)
    if (session === undefined) return new Response('This session is not known.', { status: 404 })
    this.#sessions.delete(id)
    this.#sessions.set(id, session)
    return session.handleRequest(request)
  }

  async close(): Promise<void> {
    const open = [...this.#sessions.values()]
    this.#sessions.clear()
    await Promise.allSettled(open.map((session) => session.close()))
  }

  /** A transport without a session yet: it takes one with `initialize`, and refuses anything else. */
  async #begin(): Promise<WebStandardStreamableHTTPServerTransport> {
    const session: WebStandardStreamableHTTPServerTransport = new this.#sdk.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => this.#keep(id, session),
      onsessionclosed: (id) => {
        this.#sessions.delete(id)
      },
    })
    const server = await this.#factory({ era: 'legacy' })
    await server.connect(session)
    return session
  }

  #keep(id: string, session: WebStandardStreamableHTTPServerTransport): void {
    this.#sessions.set(id, session)
    const [oldest] = this.#sessions
    if (this.#sessions.size <= MOST_SESSIONS || oldest === undefined) return
    this.#sessions.delete(oldest[0])
    void oldest[1].close()
  }
}
