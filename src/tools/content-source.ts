import type { ContentSource } from '../contracts/entry.js'
import type { JsonObject } from '../util/json.js'
import type { ToolOutcome } from './outcome.js'
import type { ToolSpec } from './spec.js'

/**
 * Where a result comes from, by what its tool says of itself; undefined where it says nothing. What is widest wins: a
 * program that can read files and the web is a command.
 */
export function contentSourceOf(
  spec: ToolSpec | undefined,
  outcome: ToolOutcome,
  { startedRuns, answered }: { readonly startedRuns: boolean; readonly answered: boolean },
): ContentSource | undefined {
  if (outcome.kind !== 'succeeded' && outcome.kind !== 'failed') return undefined
  const { metadata = {} } = outcome
  if (metadata['source'] === 'mcp') {
    const tool = textIn(metadata, 'mcp_tool_name')
    return { kind: 'server', ...named(textIn(metadata, 'mcp_server_id')), ...(tool !== undefined && { tool }) }
  }
  if (startedRuns) return { kind: 'agent', ...named(textIn(metadata, 'agent')) }
  if (answered) return { kind: 'person' }
  const { programs = [], hosts = [], reads = [], writes = [] } = spec?.reach ?? {}
  if (programs.length > 0) return { kind: 'command' }
  if (hosts.length > 0) return { kind: 'web', ...named(textIn(metadata, 'final_url') ?? textIn(metadata, 'url')) }
  if (reads.length > 0 || writes.length > 0) return { kind: 'workspace', ...named(textIn(metadata, 'path')) }
  return undefined
}

function textIn(metadata: JsonObject, key: string): string | undefined {
  const value = metadata[key]
  return typeof value === 'string' ? value : undefined
}

function named(name: string | undefined): { readonly name?: string } {
  return name === undefined ? {} : { name }
}
