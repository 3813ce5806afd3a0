import { parse } from '#contracts/parse.js'
import type { Extension } from '#core/extension/extension.js'
import type { ToolOutcome, ToolSpec } from '#core/tools/tool-spec.js'
import { isObject } from '#util/json.js'
import type { JsonValue } from '#util/json.js'
import { boolean, filledString, functionOf, integer, partial } from '#util/validate.js'
import type { ToolIndex } from './tool-index.js'
import type { EmbedTools } from './vectors.js'

/** Options of `toolSearch`; all optional. */
export interface ToolSearchOptions {
  /** How many definitions `search_tools` answers with if the model names no number, at most 20. Default 5. */
  readonly limit?: number | undefined
  /** What the deferred tools are about, for the model: `GitHub, the calendar, billing`. Default: not said. */
  readonly about?: string | undefined
  /**
   * False if tools are never searched by the provider. Else they are if it has a search; one that leaves names and descriptions in
   * the prompt is only used while these have at most 5,000 characters. Default true.
   */
  readonly hosted?: boolean | undefined
  /** Finds tools by meaning too: the vectors of texts. Those of a tool are asked for once. Default: by words only. */
  readonly embed?: EmbedTools | undefined
}

const OPTIONS = partial<ToolSearchOptions>({
  limit: integer(1, 20),
  about: filledString,
  hosted: boolean,
  embed: functionOf<EmbedTools>(),
})

/**
 * Finds tools that are `deferred`: an extension for `use`. Its tools are `search_tools`, which answers with definitions, and
 * `call_tool`, which calls one of them: the list of tools of a run stays the same, and with it the provider's cache. From its admission
 * on a call by `call_tool` is a call of the named tool, for hooks, policies, approvals, budgets and events. If the provider searches
 * tools itself, it gets the deferred definitions in place of both.
 * @throws HarnessError `invalid_options`.
 *
 * @example
 * const harness = new Harness({
 *   tools: hundreds.map((tool) => deferred(tool)),
 *   use: [toolSearch({ about: 'GitHub, the calendar, billing' })],
 * })
 */
export function toolSearch(options: ToolSearchOptions = {}): Extension {
  const settings = parse(OPTIONS, options, '`toolSearch`')
  const searchesTools: ToolSpec['searchesTools'] = (tools, { capabilities: { toolSearch: kept = 'none' } }) => {
    if (settings.hosted === false || kept === 'none') return false
    return tools.length <= MOST_HOSTED && (kept === 'definitions' || promptLength(tools) <= MOST_IN_PROMPT)
  }
  return { name: 'tool_search', tools: [toolOfSearches(settings, searchesTools), toolOfCalls(searchesTools)] }
}

/** The most tools that a provider searches. */
const MOST_HOSTED = 10_000
/** Characters of names and descriptions. */
const MOST_IN_PROMPT = 5_000

function promptLength(tools: readonly ToolSpec[]): number {
  return tools.reduce((sum, { name, description }) => sum + name.length + description.length, 0)
}

const SEARCH = 'search_tools'
const CALL = 'call_tool'

function toolOfSearches(
  { limit = 5, about, embed }: ToolSearchOptions,
  searchesTools: ToolSpec['searchesTools'],
): ToolSpec {
  let index: ToolIndex | undefined
  return Object.freeze<ToolSpec>({
    name: SEARCH,
    description: [
      `Finds tools that are not listed here${about === undefined ? '' : `: ${about}`}. Answers with their definitions; call one with \`${CALL}\`.`,
      'Search before you say that something cannot be done.',
    ].join(' '),
    parameters: {
      type: 'object',
      properties: {
        query: {
          type: 'string',
          minLength: 1,
          description: 'What the tool should do, in a few words, such as `create an issue`.',
        },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: 20,
          description: `Most tools to answer with. Default ${limit}.`,
        },
      },
      required: ['query'],
      additionalProperties: false,
    },
    annotations: { readOnly: true, idempotent: true },
    reach: {},
    searchesTools,
    async call(args, { tools, signal }) {
      const { query, limit: most = limit } = args as unknown as { readonly query: string; readonly limit?: number }
      const all = [...(tools?.values() ?? [])].filter((tool) => tool.deferred === true)
      index ??= new (await import('./tool-index.js')).ToolIndex(embed)
      return answerOf({ query, most, all, found: await index.search(query, all, signal) })
    },
  })
}

interface Found {
  readonly query: string
  readonly most: number
  readonly all: readonly ToolSpec[]
  /** The best first. */
  readonly found: readonly ToolSpec[]
}

/** The most characters of definitions in one answer; of further tools it has the names. */
const MOST_CHARS = 30_000

function answerOf({ query, most, all, found }: Found): ToolOutcome {
  const shown = query.slice(0, 200)
  if (found.length === 0) {
    const content = `No tool of ${all.length} fits \`${shown}\`. Search in other words: what the tool does, and with what.`
    return { kind: 'succeeded', content, metadata: { tools: [] } }
  }
  let chars = 0
  const best = found.slice(0, most)
  const lines = best.map((tool) => {
    const line = definitionLine(tool)
    chars += line.length
    return chars <= MOST_CHARS
      ? line
      : `{"name":"${tool.name}"} (its definition is too long here: search for this name alone)`
  })
  const head = `${best.length} of ${all.length} tools, the best first. Call one with \`${CALL}\`.`
  return {
    kind: 'succeeded',
    content: [head, ...lines].join('\n'),
    metadata: { tools: best.map(({ name }) => name) },
  }
}

function definitionLine({ name, description, parameters, examples }: ToolSpec): string {
  const { $schema: _dialect, ...schema } = parameters
  const line = JSON.stringify({ name, description, parameters: schema, ...(examples && { examples }) })
  return line.length <= MOST_CHARS
    ? line
    : JSON.stringify({ name, description: description.slice(0, 1000), parameters: '(too long)' })
}

function toolOfCalls(searchesTools: ToolSpec['searchesTools']): ToolSpec {
  return Object.freeze<ToolSpec>({
    name: CALL,
    description: `Calls a tool that \`${SEARCH}\` has found.`,
    parameters: {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 1, description: 'Name of the tool.' },
        arguments: {
          type: 'object',
          description: 'Its arguments, as its `parameters` say.',
          additionalProperties: true,
        },
      },
      required: ['name', 'arguments'],
      additionalProperties: false,
    },
    searchesTools,
    resolve: ({ name, arguments: args }) => ({
      name: nameIn(name),
      arguments: isObject(args) ? args : {},
    }),
    // Reached only by a call that stands for none: of this tool itself, or of the answer of a run.
    call: ({ name }) =>
      Promise.resolve({
        kind: 'failed',
        errorType: 'NotFound',
        content: `\`${nameIn(name)}\` cannot be called by \`${CALL}\`: call it directly, by its name.`,
        retry: true,
      }),
  })
}

/** The schema lets nothing but a string through. */
function nameIn(name: JsonValue | undefined): string {
  return typeof name === 'string' ? name : ''
}
