import type { ToolAnnotations } from '#core/tools/tool-spec.js'
import { canonicalJson, isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { ownVersion } from '#util/platform/packages.js'

/** A live connection to a server. Requests reject with the SDK's own errors. */
export interface McpConnection {
  /** The negotiated revision, such as `2025-11-25`. */
  readonly protocolVersion: string
  /** Arguments are repeated in headers, as some tools declare. */
  readonly hasArgumentHeaders: boolean
  readonly offers: { readonly tools: boolean; readonly resources: boolean; readonly prompts: boolean }
  /** The server's instructions for a model; may be empty. */
  readonly instructions: string
  /** Sends one request; the result is as received. */
  request(method: string, params: JsonObject, options: McpRequestOptions): Promise<unknown>
  /** Calls the tool of a definition that the server has listed. */
  callTool(definition: JsonObject, args: JsonObject, options: McpRequestOptions): Promise<unknown>
  /** Ends the connection, and the server's process if we started it. Never rejects. */
  close(): Promise<void>
}

export interface McpRequestOptions {
  readonly signal?: AbortSignal
  /** Longest wait for a sign of life, in ms: progress restarts it. */
  readonly timeoutMs: number
  readonly onProgress?: (progress: McpProgress) => void
}

export interface McpProgress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

/** A process, as it is started. */
export interface ProcessCommand {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string | null
}

/** Gives the command that starts a process in a sandbox, and `close` for when the process has ended. */
export type Confine = (process: ProcessCommand) => Promise<{
  readonly command: ProcessCommand
  /** Aborted when the process must be killed at once: it could see a protected file. */
  readonly uncovered: AbortSignal | null
  readonly close: () => Promise<void>
}>

/** How a server is reached. */
export type McpEndpoint =
  | {
      readonly kind: 'stdio'
      readonly command: string
      readonly args: readonly string[]
      /** The whole environment of the process. */
      readonly env: Readonly<Record<string, string>>
      readonly cwd: string | null
      /** Puts the process into a sandbox; null if it runs without one. */
      readonly confine: Confine | null
    }
  | {
      readonly kind: 'http' | 'sse'
      readonly url: URL
      readonly fetch: typeof fetch
      readonly auth: McpAuthProvider | null
    }

/**
 * An `OAuthClientProvider` of the SDK that is installed, such as `ClientCredentialsProvider` or one of your own: keeps
 * tokens, and sends a person to the page where access is granted.
 */
export interface McpAuthProvider {
  readonly redirectUrl: unknown
  readonly clientMetadata: object
  clientInformation(): unknown
  tokens(): unknown
}

/** How a connection is opened, and its listeners. */
export interface ConnectionSetup {
  readonly endpoint: McpEndpoint
  /** Longest time to a usable connection, in ms. */
  readonly connectMs: number
  /** Ends the opening. */
  readonly signal?: AbortSignal | undefined
  /** Requests that the server may send; null ones are not offered. */
  readonly asks: {
    readonly elicit: ((params: JsonObject, signal: AbortSignal) => Promise<JsonObject>) | null
    readonly sample: ((params: JsonObject, signal: AbortSignal) => Promise<SamplingResult>) | null
    readonly roots: (() => RootsResult) | null
  }
  readonly onToolsChanged: () => void
  readonly onClosed: () => void
  /** Output of a process to standard error. */
  readonly onStderr: (text: string) => void
  /** Input that is not a message, and other problems outside of requests. */
  readonly onProblem: (problem: string) => void
}

/** The answer to `sampling/createMessage`. */
export type SamplingResult = {
  role: 'assistant'
  content: { type: 'text'; text: string }
  model: string
  stopReason: 'endTurn' | 'maxTokens'
}

/** The answer to `roots/list`. */
export type RootsResult = {
  roots: { uri: string; name: string }[]
}

/** The MCP client library. */
export interface McpSdk {
  open(setup: ConnectionSetup): Promise<McpConnection>
  /** Trades the authorization code of a callback address for tokens, which go to the provider. */
  finishAuth(endpoint: McpEndpoint & { readonly kind: 'http' | 'sse' }, callback: URLSearchParams): Promise<void>
}

/** Name and version that servers and clients are given. */
export const CLIENT_INFO = { name: 'thinharness', version: ownVersion() }

/** Largest message of a server, in bytes: a larger one ends the connection. */
export const LARGEST_MESSAGE = 10 * 1024 * 1024

/** The hints of the protocol, by the annotations of tools that they are. */
export const HINTS: { readonly [Name in keyof ToolAnnotations]-?: string } = {
  readOnly: 'readOnlyHint',
  destructive: 'destructiveHint',
  idempotent: 'idempotentHint',
  openWorld: 'openWorldHint',
}

/** More pages are not asked for. */
const MOST_PAGES = 500
const MOST_ITEMS = 10_000

/**
 * The items of a list request, of all its pages, each once; `member` is the list in the result. A cursor that was sent before, or a page of
 * known items only, ends the list.
 */
export async function allPages(
  { request }: Pick<McpConnection, 'request'>,
  pages: { readonly method: string; readonly member: string; readonly warn?: (text: string) => void },
  options: McpRequestOptions,
): Promise<JsonObject[]> {
  const { method, member, warn } = pages
  const items = new Map<string, JsonObject>()
  const cursors = new Set<unknown>()
  let cursor: string | undefined
  do {
    cursors.add(cursor)
    const result = await request(method, cursor === undefined ? {} : { cursor }, options)
    const { [member]: list, nextCursor } = isObject(result) ? result : {}
    if (!Array.isArray(list)) throw new Error(`The answer to \`${method}\` has no list \`${member}\`.`)
    const before = items.size
    for (const item of list) if (isObject(item)) items.set(canonicalJson(item), item as JsonObject)
    if (typeof nextCursor !== 'string') return [...items.values()]
    cursor = nextCursor
    if (list.length > 0 && items.size === before) break
  } while (!cursors.has(cursor) && cursors.size < MOST_PAGES && items.size < MOST_ITEMS)
  warn?.(`Its list of \`${method}\` has no end: the first ${items.size} are used.`)
  return [...items.values()]
}
