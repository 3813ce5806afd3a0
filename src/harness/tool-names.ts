import { invalidOptions } from '#contracts/parse.js'
import { FINAL_RESULT } from '#core/state/output-format.js'
import type { OutputType } from '#core/tools/output-type.js'
import type { JsonObject } from '#util/json.js'
import type { ToolOutcome, ToolSource, ToolSpec } from '#core/tools/tool-spec.js'

/** Throws `invalid_options` for a repeated name, and for that of the tool for structured answers if there is one. */
export function checkToolNames(names: readonly string[], outputType: OutputType | null): void {
  const seen = new Set<string>()
  const twice = names.find((name) => seen.size === seen.add(name).size)
  if (twice !== undefined) throw invalidOptions(`Two tools have the name \`${twice}\`; each needs a name of its own.`)
  if (outputType === null || !names.includes(FINAL_RESULT)) return
  throw invalidOptions(
    `With an \`outputType\` no tool can be called \`${FINAL_RESULT}\`: the model gives its answer by that name.`,
  )
}

/** Throws `invalid_options` for a deferred tool that nothing finds. */
export function checkDeferred(tools: readonly ToolSpec[]): void {
  const first = tools.find(({ deferred }) => deferred === true)
  if (first === undefined || tools.some(({ searchesTools }) => searchesTools !== undefined)) return
  throw invalidOptions(
    `Tool \`${first.name}\` is deferred, and nothing finds it: add \`toolSearch()\` of \`thinharness/tools\` to \`use\`.`,
  )
}

/** The sources, each once and under an id of its own: a second one of an id `x` is `x-2`. */
export function withUniqueIds(sources: readonly ToolSource[]): readonly ToolSource[] {
  const taken = new Set<string>()
  return [...new Set(sources)].map((source) => {
    let id = source.id
    for (let count = 2; taken.has(id); count++) id = `${source.id}-${count}`
    taken.add(id)
    return id === source.id ? source : renamedSource(source, id)
  })
}

/**
 * The tools of servers in an order that does not depend on that of their lists: by name when they are first listed, later ones after those that
 * are known. The same tools are the same bytes for a provider, in each process.
 */
export class ToolOrder {
  readonly #places = new WeakMap<ToolSource, Map<string, number>>()
  /** A list that has not changed stays the same array. */
  readonly #sorted = new WeakMap<readonly ToolSpec[], readonly ToolSpec[]>()

  sorted(source: ToolSource, specs: readonly ToolSpec[]): readonly ToolSpec[] {
    const known = this.#sorted.get(specs)
    if (known !== undefined) return known
    const places = this.#places.get(source) ?? new Map<string, number>()
    this.#places.set(source, places)
    const added = specs.map(({ name }) => name).filter((name) => !places.has(name))
    for (const name of added.sort()) places.set(name, places.size)
    const place = ({ name }: ToolSpec): number => places.get(name) ?? 0
    const sorted = [...specs].sort((left, right) => place(left) - place(right))
    this.#sorted.set(specs, sorted)
    return sorted
  }
}

function renamedSource(source: ToolSource, id: string): ToolSource {
  // A list that has not changed stays the same array.
  const known = new WeakMap<readonly ToolSpec[], readonly ToolSpec[]>()
  return {
    id,
    required: source.required,
    close: (host) => source.close(host),
    tools: async (host, signal) => {
      const specs = await source.tools(host, signal)
      const mine = known.get(specs) ?? specs.map((spec) => relabelledTool(spec, source.id, id))
      known.set(specs, mine)
      return mine
    },
  }
}

/** Names the source `id` in the metadata of the tool and of its results. */
function relabelledTool(spec: ToolSpec, from: string, id: string): ToolSpec {
  const renamedMetadata = (metadata: JsonObject): JsonObject =>
    Object.fromEntries(
      Object.entries(metadata).map(([key, value]) => [key, key === SOURCE_ID && value === from ? id : value]),
    )
  return {
    ...spec,
    metadata: renamedMetadata(spec.metadata ?? {}),
    call: async (args, context): Promise<ToolOutcome> => {
      const outcome = await spec.call(args, context)
      if (outcome.kind === 'rejected' || outcome.metadata === undefined) return outcome
      return { ...outcome, metadata: renamedMetadata(outcome.metadata) }
    },
  }
}

const SOURCE_ID = 'mcp_server_id'
