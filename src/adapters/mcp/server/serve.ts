import type * as sdkModule from '@modelcontextprotocol/server'
import type * as stdioModule from '@modelcontextprotocol/server/stdio'
import { HarnessError } from '#contracts/errors.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import {
  either,
  filledString,
  having,
  integer,
  list,
  object,
  oneOf,
  optional,
  partial,
  secret,
  string,
} from '#util/shape.js'
import { isMissing } from '#util/platform/own-package.js'
import { offeredServer } from './offered-server.js'
import { runTool } from './run-tool.js'
import type { ServedHarness } from './run-tool.js'
import { serveHttp } from './serve-http.js'
import type { McpHttpTransport, McpServing } from './serving.js'
import type { McpServerFactory } from '@modelcontextprotocol/server'
import { takeOutput } from '#util/platform/standard-output.js'

export interface ServeMcpOptions {
  /**
   * `stdio`: this process is the server. Its standard output belongs to the protocol; other output goes to standard error.
   */
  readonly transport: 'stdio' | McpHttpTransport
  /** Name of the server for clients. Default `thinharness`. */
  readonly name?: string | undefined
  /** Description of the tool `run`, for the model that calls it. Default: a general sentence. */
  readonly description?: string | undefined
  /**
   * Offered in addition to `run`, in the harness's workspace. They are called outside a run: hooks, policies and provenance do
   * not apply, and a call that needs an approval or asks a question fails.
   */
  readonly tools?: readonly ToolSpec[] | undefined
  /** Most concurrent runs; further ones are rejected. Default 8. */
  readonly maxRuns?: number | undefined
}

/**
 * Serves a harness to MCP clients of every revision: a tool `run`, which takes a prompt, reports progress and returns the
 * answer, and the chosen tools. A client that cancels a call cancels its run. The caller closes the harness.
 *
 * @example
 * await serveMcp(harness, { transport: 'stdio', description: 'Answers questions on our orders.' })
 */
export async function serveMcp(harness: ServedHarness, options: ServeMcpOptions): Promise<McpServing> {
  const { transport, name = 'thinharness', description = DESCRIPTION, tools = [], maxRuns = 8 } = parseOptions(options)
  const sdk = await serverSdk()
  const closing = new AbortController()
  const served = [runTool(harness, { description, maxRuns, signal: closing.signal }), ...tools]
  const { root } = harness
  const factory = offeredServer(sdk, { name, tools: served, root, closing: closing.signal })
  return transport === 'stdio' ? serveOverStdio(factory, closing) : serveHttp(sdk, factory, { transport, closing })
}

const DESCRIPTION = 'Gives a task to an agent, which works on it with its own tools and answers.'

const OPTIONS = object<ServeMcpOptions>({
  transport: either(
    oneOf('stdio'),
    partial<McpHttpTransport>({
      port: integer(0, 65_535),
      host: filledString,
      token: secret(filledString),
      allowedHosts: list(string),
    }),
  ),
  name: optional(filledString),
  description: optional(string),
  tools: optional(list(having<ToolSpec>('a tool, made by `defineTool`', 'call'), 'a list of tools')),
  maxRuns: optional(integer(1)),
})

function parseOptions(options: ServeMcpOptions): ServeMcpOptions {
  const given = parse(OPTIONS, options, '`serveMcp`')
  const names = ['run', ...(given.tools ?? []).map((tool) => tool.name)]
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice === undefined) return given
  throw invalidOptions(`Two tools have the name \`${twice}\`; each needs a name of its own.`)
}

async function serverSdk(): Promise<typeof sdkModule> {
  try {
    return await import('@modelcontextprotocol/server')
  } catch (error) {
    if (!isMissing(error)) throw error
    throw new HarnessError(
      'missing_dependency',
      '`serveMcp` needs `@modelcontextprotocol/server`, which is not installed. Run `npm install @modelcontextprotocol/server`.',
      { cause: error },
    )
  }
}

/** Makes this process the server, until its client closes standard input. */
async function serveOverStdio(factory: McpServerFactory, closing: AbortController): Promise<McpServing> {
  const { serveStdio, StdioServerTransport } = await stdioSdk()
  const { protocol, giveBack } = takeOutput()
  const handle = serveStdio(factory, { transport: new StdioServerTransport(process.stdin, protocol) })
  let isClosed = (): void => undefined
  const closed = new Promise<void>((resolve) => (isClosed = resolve))
  const closeServing = async (): Promise<void> => {
    closing.abort(new HarnessError('closed', 'The server was closed.'))
    await handle.close()
    giveBack()
    isClosed()
  }
  const closeWhenGone = (): void => void closeServing()
  process.stdin.once('end', closeWhenGone).once('close', closeWhenGone)
  return { url: null, closed, close: closeServing, [Symbol.asyncDispose]: closeServing }
}

async function stdioSdk(): Promise<typeof stdioModule> {
  // Bundlers accept within `try` that the package is not installed; `serveMcp` has reported that already.
  try {
    return await import('@modelcontextprotocol/server/stdio')
  } catch (cause) {
    throw new HarnessError('missing_dependency', '`serveMcp` needs `@modelcontextprotocol/server/stdio`.', { cause })
  }
}
