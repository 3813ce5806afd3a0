import type { ToolSource, ToolSpec } from '#core/tools/tool-spec.js'

/** Options of `deferred` for a server. */
export interface DeferredOptions {
  /** Names of its tools that are listed as usual, such as those that most runs need. Default: none. */
  readonly except?: readonly string[] | undefined
}

/**
 * A tool that is found by search, in place of being listed in every request: `use` must have `toolSearch()`. A server, made by
 * `mcpStdio` and the like, is given back as one whose tools are deferred. What a tool adds to the system prompt is part of its
 * description then; the instructions of a server stay in the system prompt.
 *
 * @example
 * const harness = new Harness({
 *   tools: [lookUpOrder, ...hundreds.map((tool) => deferred(tool))],
 *   mcpServers: [deferred(mcpStdio({ id: 'github', command: 'github-mcp-server' }))],
 *   use: [toolSearch()],
 * })
 */
export function deferred<Deps = unknown>(tool: ToolSpec<Deps>): ToolSpec<Deps>
export function deferred(server: ToolSource, options?: DeferredOptions): ToolSource
export function deferred(given: ToolSpec | ToolSource, options: DeferredOptions = {}): ToolSpec | ToolSource {
  return 'call' in given ? deferredTool(given) : deferredServer(given, options)
}

function deferredTool({ instructions = '', ...tool }: ToolSpec): ToolSpec {
  const description = [tool.description, instructions.trim()].filter((text) => text !== '').join('\n\n')
  return Object.freeze({ ...tool, description, deferred: true })
}

function deferredServer(server: ToolSource, { except = [] }: DeferredOptions): ToolSource {
  // A list that has not changed stays the same array.
  const known = new WeakMap<readonly ToolSpec[], readonly ToolSpec[]>()
  return {
    id: server.id,
    required: server.required,
    close: (host) => server.close(host),
    async tools(host, signal) {
      const specs = await server.tools(host, signal)
      const mine = known.get(specs) ?? specs.map((spec) => (except.includes(spec.name) ? spec : marked(spec)))
      known.set(specs, mine)
      return mine
    },
  }
}

function marked(spec: ToolSpec): ToolSpec {
  return Object.freeze({ ...spec, deferred: true })
}
