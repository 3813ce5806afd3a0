import type * as sdkModule from '@modelcontextprotocol/server'
import { HarnessError } from '../../contracts/errors.js'
import type { ToolSpec } from '../../tools/spec.js'
import { unknownKey } from '../../util/unknown-key.js'
import { isMissing } from '../sdk/sdk.js'
import { offeredServer } from './offered-server.js'
import { runTool } from './run-tool.js'
import type { ServedHarness } from './run-tool.js'
import { serveHttp } from './serve-http.js'
import { serveOverStdio } from './serve-stdio.js'
import type { McpHttpTransport, McpServing } from './serving.js'

export interface ServeMcpOptions {
  /**
   * `stdio`: this process is the server. Its standard output belongs to the protocol: what is written there otherwise goes to
   * standard error.
   */
  readonly transport: 'stdio' | McpHttpTransport
  /** Name that clients are told. Default `thinharness`. */
  readonly name?: string
  /** What the tool `run` is good for, for the model that calls it. Default: a plain sentence. */
  readonly description?: string
  /**
   * Offered beside `run`, in the harness's workspace. They are called outside a run: no hook and no rule of provenance applies,
   * and a call that a person must agree to, or that asks one, fails.
   */
  readonly tools?: readonly ToolSpec[]
  /** Runs at once; a further one is refused. Default 8. */
  readonly maxRuns?: number
}

/**
 * Serves a harness to MCP clients of every revision: a tool `run` that takes a prompt, tells how far it is and gives the
 * answer, and the chosen tools. A call that its client cancels cancels the run. The harness stays the caller's to close.
 *
 * @example
 * await serveMcp(harness, { transport: 'stdio', description: 'Answers questions on our orders.' })
 */
export async function serveMcp(harness: ServedHarness, options: ServeMcpOptions): Promise<McpServing> {
  const { transport, name = 'thinharness', description = DESCRIPTION, tools = [], maxRuns = 8 } = checked(options)
  const sdk = await serverSdk()
  const closing = new AbortController()
  const served = [runTool(harness, { description, maxRuns, signal: closing.signal }), ...tools]
  const { root } = harness
  const factory = offeredServer(sdk, { name, tools: served, root, closing: closing.signal })
  return transport === 'stdio' ? serveOverStdio(factory, closing) : serveHttp(sdk, factory, transport, closing)
}

const DESCRIPTION = 'Gives a task to an agent, which works on it with its own tools and answers.'

function checked(options: ServeMcpOptions): ServeMcpOptions {
  const problem = unknownKey(options, ['transport', 'name', 'description', 'tools', 'maxRuns'], 'option of `serveMcp`')
  if (problem !== undefined) throw new HarnessError('invalid_options', problem)
  const { transport, maxRuns = 1, tools = [] } = options
  if (transport !== 'stdio' && typeof transport !== 'object') {
    throw new HarnessError(
      'invalid_options',
      'Expected `transport` of `serveMcp` to be `stdio` or `{ port, host, token }`.',
    )
  }
  if (!Number.isInteger(maxRuns) || maxRuns < 1) {
    throw new HarnessError(
      'invalid_options',
      `Expected \`maxRuns\` to be a whole number from 1 up, got \`${maxRuns}\`.`,
    )
  }
  const names = ['run', ...tools.map((tool) => tool.name)]
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice === undefined) return options
  throw new HarnessError('invalid_options', `Two tools have the name \`${twice}\`; each needs a name of its own.`)
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
