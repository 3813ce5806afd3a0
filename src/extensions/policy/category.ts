import type { JsonObject } from '#util/json.js'
import type { ToolAnnotations, ToolReach } from '#core/tools/tool-spec.js'
import type { Category } from './rule.js'

/** The members of a `ToolSpec` that decide its category. */
export interface Categorised {
  readonly name: string
  readonly annotations?: ToolAnnotations | undefined
  readonly reach?: ToolReach | undefined
  readonly metadata?: JsonObject | undefined
}

/**
 * The category of a tool: `mcp` if it comes from an MCP server; else by its declared reach and annotations; else by the words of
 * its name. A tool about which nothing is known is `other`.
 */
export function categoryOf(tool: Categorised): Category {
  return isFromServer(tool) ? 'mcp' : toolEffect(tool)
}

/** The same without regard to where the tool comes from. */
export function toolEffect({ name, annotations, reach }: Omit<Categorised, 'metadata'>): Category {
  const declared = declaredEffect(annotations, reach)
  if (declared !== null) return declared
  const byName = effectByName(name)
  // A tool that changes something is not what its name says.
  return annotations?.readOnly === false && (byName === 'read' || byName === 'network') ? 'other' : byName
}

function isFromServer({ metadata }: Categorised): boolean {
  return metadata?.['source'] === 'mcp'
}

function declaredEffect(annotations: ToolAnnotations = {}, reach: ToolReach = {}): Category | null {
  const { readOnly, openWorld } = annotations
  if (isFilled(reach.programs)) return 'execute'
  if (isFilled(reach.writes) && readOnly !== true) return 'edit'
  if (isFilled(reach.hosts) || (readOnly === true && openWorld === true)) return 'network'
  if (readOnly === true) return 'read'
  if (isFilled(reach.reads)) return readOnly === undefined ? 'read' : null
  return readOnly === false && openWorld === false ? 'edit' : null
}

function isFilled(list: readonly string[] | undefined): boolean {
  return list !== undefined && list.length > 0
}

/** Words of names, the most dangerous first. */
const WORDS: readonly (readonly [Category, ReadonlySet<string>])[] = [
  [
    'execute',
    new Set(['bash', 'shell', 'sh', 'exec', 'execute', 'terminal', 'powershell', 'command', 'cmd', 'script']),
  ],
  ['edit', new Set(['write', 'edit', 'patch', 'delete', 'remove', 'rename', 'move', 'append'])],
  ['network', new Set(['fetch', 'http', 'https', 'url', 'web', 'browse', 'download', 'upload'])],
  ['read', new Set(['read', 'list', 'glob', 'grep', 'search', 'view'])],
]

function effectByName(name: string): Category {
  const words = name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
  return WORDS.find(([, known]) => words.some((word) => known.has(word)))?.[0] ?? 'other'
}
