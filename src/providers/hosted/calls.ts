import type { AssistantPart, ContentSource, HostedPart, TokenUsage } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import { membersWith, objectsIn, stringIn } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'

const WEB = /web|url|google_search|browser/
const COMMAND = /code|bash|shell|python|interpreter|editor/

/**
 * Where the content of a hosted tool comes from. `name`: the address of a page, the name of a server, else that of the tool.
 *
 * @example
 *   hostedSource('web_fetch', 'https://a.example') // { kind: 'web', name: 'https://a.example' }
 */
export function hostedSource(tool: string, name = tool): ContentSource {
  return { kind: WEB.test(tool) ? 'web' : COMMAND.test(tool) ? 'command' : 'server', name }
}

/** A call of a server that the provider is connected to. */
export function serverSource(server: string): ContentSource {
  return { kind: 'server', name: server }
}

/** `result` and `isError` of a hosted part, as far as they are there. */
export function outcome(result: string, failed: boolean): Pick<HostedPart, 'result' | 'isError'> {
  return { ...(result !== '' && { result }), ...(failed && { isError: true as const }) }
}

/**
 * Pages as lines: title and address.
 *
 * @example
 *   pageLines([{ title: 'Tides', url: 'https://a.example' }]) // 'Tides: https://a.example'
 */
export function pageLines(pages: unknown): string {
  const lines = objectsIn(pages).map(({ title, url, name }) => [stringIn(title ?? name), stringIn(url)])
  return lines.map((line) => line.filter((word) => word !== '').join(': ')).join('\n')
}

/** A value of an API as text: its texts one after the other, or else its JSON; empty for nothing. */
export function textOfValue(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return ''
  const texts = objectsIn(value).map(({ text }) => stringIn(text))
  return texts.some((text) => text !== '') ? texts.join('\n') : JSON.stringify(value)
}

const OPENS_PAGE = /^\{"type":"(?:open_page|find|find_in_page)"/

/**
 * `usage` with the calls that the provider executed, by tool. `reported` are counts of the provider, which take precedence.
 *
 * @example
 *   withHostedCalls(usage, parts, { web_search_requests: 2 }) // { …, hostedCalls: { web_search: 2 } }
 */
export function withHostedCalls(usage: TokenUsage, parts: readonly AssistantPart[], reported?: unknown): TokenUsage {
  let counts: Record<string, number> | null = isObject(reported) ? {} : null
  for (const part of parts) {
    const name = part.type === 'image' ? 'image_generation' : part.type === 'hosted' ? countedAs(part) : null
    if (name !== null) (counts ??= {})[name] = (counts[name] ?? 0) + 1
  }
  if (counts === null) return usage
  if (isObject(reported)) Object.assign(counts, reportedCounts(reported))
  const hostedCalls = membersWith(counts, (count) => count > 0)
  return Object.keys(hostedCalls).length === 0 ? usage : { ...usage, hostedCalls }
}

const KINDS: ReadonlySet<string> = new Set(['web_search', 'web_fetch', 'file_search', 'image_generation'])

/** The tool of a call that is charged for; null for a result, and for a page that a search opens. */
function countedAs({ name, source, arguments: input }: HostedPart): string | null {
  if (input === undefined || OPENS_PAGE.test(input)) return null
  if (KINDS.has(name)) return name
  if (source.kind === 'command') return 'code_execution'
  return source.kind === 'web' ? 'web_search' : 'connector'
}

function reportedCounts(reported: WireFields): Readonly<Record<string, number>> {
  const counts = Object.entries(reported).flatMap(([name, count]) => {
    const tool = /^(.*)_requests$/.exec(name)?.[1]
    return tool === undefined || typeof count !== 'number' ? [] : [[tool, count] as const]
  })
  return Object.fromEntries(counts)
}
