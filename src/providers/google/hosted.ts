import type { AssistantPart, Citation, HostedPart, ImagePart, TextPart } from '#contracts/entry.js'
import { invalidOptions } from '#contracts/parse.js'
import type { HostedTool, ToolDefinition } from '#core/model-session.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { hostedSource, outcome, pageLines, textOfValue } from '../hosted/calls.js'
import { annotated, byteOffset } from '../hosted/citations.js'
import { hostedRefusal, isHosted, ownFields, setFields } from '../hosted/hosted-definition.js'
import type { HostedDefinition } from '../hosted/hosted-definition.js'
import { listIn, objectsIn, stringIn } from '../wire/wire-fields.js'
import type { WireFields } from '../wire/wire-fields.js'
import { PROVIDER } from './models.js'
import type { Family } from './models.js'

/** Google's own tools of a request, after the functions. Throws `invalid_options` for one that the model does not have. */
export function googleTools(tools: readonly ToolDefinition[], id: string, family: Family): readonly JsonObject[] {
  const hosted = tools.filter(isHosted)
  if (hosted.length > 0 && hosted.length < tools.length && !family.isThird) {
    const names = hosted.map(({ name }) => `\`${name}\``).join(', ')
    throw invalidOptions(`\`${id}\` cannot have ${names} beside other tools: choose a model of Gemini 3 or later.`)
  }
  return hosted.flatMap((tool) => googleTool(tool, id, family))
}

const WITHOUT: Readonly<Partial<Record<HostedTool['kind'], readonly string[]>>> = {
  web_search: ['allowedDomains', 'blockedDomains'],
  web_fetch: ['allowedDomains', 'blockedDomains'],
  code_execution: ['fileIds'],
}

/** A tool as the API names it. An option that the API does not have, and that would open more than it says, is refused. */
function googleTool(tool: HostedDefinition, id: string, { hostedTools }: Family): readonly JsonObject[] {
  const { kind, config } = tool.hosted
  if (!hostedTools.includes(kind)) throw hostedRefusal(tool, `${PROVIDER}:${id}`, hostedTools)
  const missing = WITHOUT[kind]?.find((name) => config[name] !== undefined)
  if (missing !== undefined)
    throw invalidOptions(`Expected \`${tool.name}\` without \`${missing}\`: Gemini's API does not have it.`)
  const own = ownFields(config, PROVIDER)
  if (kind === 'image_generation') return []
  if (kind === 'web_search') return [{ googleSearch: own }]
  if (kind === 'web_fetch') return [{ urlContext: own }]
  if (kind === 'code_execution') return [{ codeExecution: own }]
  const { storeIds, maxResults } = config
  return [{ fileSearch: { ...setFields({ fileSearchStoreNames: storeIds, topK: maxResults }), ...own } }]
}

const KINDS: ReadonlyMap<string, string> = new Map([
  ['GOOGLE_SEARCH_WEB', 'web_search'],
  ['GOOGLE_SEARCH_IMAGE', 'web_search'],
  ['URL_CONTEXT', 'web_fetch'],
  ['FILE_SEARCH', 'file_search'],
])

/**
 * A call that the API executed, its result, or an image that the model made; null for any other part of a reply. `pages` is the
 * result of a search: its own is a widget for browsers.
 */
export function hostedPart(part: WireFields, pages: string): HostedPart | ImagePart | null {
  const { toolCall, toolResponse, executableCode, codeExecutionResult, inlineData } = part
  if (isObject(toolCall)) return { ...executedCall(toolCall), arguments: JSON.stringify(toolCall['args'] ?? {}) }
  if (isObject(toolResponse)) {
    const call = executedCall(toolResponse)
    return { ...call, ...outcome(call.name === 'web_search' ? pages : textOfValue(toolResponse['response']), false) }
  }
  if (isObject(executableCode)) {
    const { id, ...code } = executableCode
    return { ...executedProgram(id), arguments: JSON.stringify(code) }
  }
  if (isObject(codeExecutionResult)) {
    const { id, outcome: word, output } = codeExecutionResult
    return { ...executedProgram(id), ...outcome(stringIn(output), word !== 'OUTCOME_OK') }
  }
  const { data, mimeType } = isObject(inlineData) ? inlineData : {}
  // Images of thoughts are drafts.
  const isImage = part['thought'] !== true && stringIn(mimeType).startsWith('image/') && stringIn(data) !== ''
  return isImage ? { type: 'image', data: stringIn(data), mediaType: stringIn(mimeType) } : null
}

function executedCall({ id, toolType }: WireFields): HostedPart {
  const name = KINDS.get(stringIn(toolType)) ?? stringIn(toolType).toLowerCase()
  return { type: 'hosted', callId: stringIn(id), name, source: hostedSource(name) }
}

function executedProgram(id: unknown): HostedPart {
  return { type: 'hosted', callId: stringIn(id), name: 'code_execution', source: hostedSource('code_execution') }
}

/** The pages that a candidate cites, as lines. */
export function citedPages({ groundingMetadata }: WireFields): string {
  return pageLines(isObject(groundingMetadata) ? objectsIn(groundingMetadata['groundingChunks']).map(sourceOf) : [])
}

/** The field of a native form that is not sent back. */
export const GROUNDING = 'groundingMetadata'

/** What a candidate says of its searches and pages beside its parts, for a model that does not show their calls. */
export function groundingParts(candidate: WireFields): readonly AssistantPart[] {
  const { groundingMetadata, urlContextMetadata } = candidate
  const { webSearchQueries } = isObject(groundingMetadata) ? groundingMetadata : {}
  const pages = isObject(urlContextMetadata) ? objectsIn(urlContextMetadata['urlMetadata']) : []
  const queries = queriesIn(webSearchQueries)
  const found: HostedPart[] = []
  if (queries.length > 0) {
    const told = outcome(citedPages(candidate), false)
    found.push({ ...executedCall({ toolType: 'GOOGLE_SEARCH_WEB' }), arguments: JSON.stringify({ queries }), ...told })
  }
  for (const { retrievedUrl: url, urlRetrievalStatus: status } of pages) {
    const source = hostedSource('web_fetch', stringIn(url))
    const told = outcome(stringIn(status), status !== 'URL_RETRIEVAL_STATUS_SUCCESS')
    found.push({ ...executedCall({ toolType: 'URL_CONTEXT' }), source, arguments: JSON.stringify({ url }), ...told })
  }
  const native = { provider: PROVIDER, data: { [GROUNDING]: (groundingMetadata ?? {}) as JsonObject } }
  return found.map((part) => ({ ...part, native }))
}

/** Queries that are charged for: each once, and none that is empty. */
function queriesIn(queries: unknown): readonly string[] {
  return [...new Set(listIn(queries).map(stringIn))].filter((query) => query !== '')
}

/** Calls to pay for: the third generation is charged by the query, earlier ones by the request. */
export function chargedCalls({ groundingMetadata }: WireFields, isThird: boolean): WireFields {
  const { length } = isObject(groundingMetadata) ? queriesIn(groundingMetadata['webSearchQueries']) : []
  return length === 0 ? {} : { web_search_requests: isThird ? length : 1 }
}

function sourceOf({
  web,
  retrievedContext,
  maps,
}: WireFields): { readonly url: string; readonly title: string } & WireFields {
  const source = [web, retrievedContext, maps].find(isObject) ?? {}
  const { uri, title, text, fileSearchStore } = source
  const quote = source === retrievedContext ? text : undefined
  return { url: stringIn(uri), title: stringIn(title), quote, fileId: uri === undefined ? fileSearchStore : undefined }
}

/** The parts of a reply, its texts with the sources of their passages. */
export function withCitations(parts: readonly AssistantPart[], candidate: WireFields): readonly AssistantPart[] {
  const { groundingMetadata, citationMetadata } = candidate
  const { groundingSupports, groundingChunks } = isObject(groundingMetadata) ? groundingMetadata : {}
  const sources = objectsIn(groundingChunks).map(sourceOf)
  const supports = objectsIn(groundingSupports).flatMap(({ segment, groundingChunkIndices: indices }) =>
    listIn(indices).map((index) => ({
      segment: isObject(segment) ? segment : {},
      source: sources[Number(index)] ?? {},
    })),
  )
  const quoted = isObject(citationMetadata) ? objectsIn(citationMetadata['citations']) : []
  const all = [
    ...supports,
    ...quoted.map((each) => ({ segment: each, source: { url: each['uri'], title: each['title'] } })),
  ]
  if (all.length === 0) return parts
  const whole = parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const passages = all.map(({ segment, source }) => citation(passageOf(segment, whole), source))
  let start = 0
  return parts.map((part) => {
    if (part.type !== 'text') return part
    const begin = start
    start += part.text.length
    return citedText(part, begin, passages)
  })
}

/** A text with the passages that end in it. `native` marks it as this provider's, so that it goes back without its sources. */
function citedText(
  part: TextPart & Pick<AssistantPart, 'native'>,
  begin: number,
  passages: readonly Citation[],
): AssistantPart {
  const { length } = part.text
  const own = passages.flatMap((each) => {
    const [from, to] = [Math.max(0, each.from - begin), Math.min(length, each.to - begin)]
    return from < to ? [{ ...each, from, to }] : []
  })
  return own.length === 0 ? part : { native: { provider: PROVIDER, data: {} }, ...part, ...annotated(own) }
}

/** Offsets count bytes, of a text that a stream has sent in pieces; so the words of the passage, if they are there, are looked up. */
function passageOf({ startIndex = 0, endIndex, text }: WireFields, whole: string): Pick<Citation, 'from' | 'to'> {
  const words = stringIn(text)
  const [from, to] = [byteOffset(whole, Number(startIndex)), byteOffset(whole, Number(endIndex ?? 0))]
  if (words === '' || whole.slice(from, to) === words) return { from, to: Math.max(from, to) }
  const at = whole.indexOf(words)
  return at < 0 ? { from, to: Math.max(from, to) } : { from: at, to: at + words.length }
}

function citation(passage: Pick<Citation, 'from' | 'to'>, source: WireFields): Citation {
  const words = ['url', 'title', 'fileId', 'quote'].flatMap((name) =>
    stringIn(source[name]) === '' ? [] : [[name, source[name]]],
  )
  return { ...(Object.fromEntries(words) as Omit<Citation, 'from' | 'to'>), ...passage }
}
