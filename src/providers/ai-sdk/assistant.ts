import type { AssistantEntry, AssistantPart, ToolCallPart } from '../../contracts/entry.js'
import { isObject, parseJson } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import { textPart } from './content.js'
import { calledName } from '../wire/called-name.js'
import { promptCallId } from './traits.js'
import { nativeData } from './native.js'
import type { PromptPart } from './wire.js'
import { stringIn } from './wire.js'
import type { ProviderTraits } from './traits.js'
import type { FileSource, Version } from './versions.js'

export interface ReplayRules {
  /** As in `NativePart.provider`. */
  readonly provider: string
  readonly version: Version
  readonly traits: ProviderTraits
}

/**
 * Parts of an earlier reply. What this provider gave goes back with the metadata that it had; reasoning of another
 * provider becomes text, and what has no text there is left out.
 */
export function assistantParts({ parts }: AssistantEntry, rules: ReplayRules): PromptPart[] {
  return parts.map((part) => replayed(part, rules)).filter((part) => part !== null)
}

function replayed(part: AssistantPart, rules: ReplayRules): PromptPart | null {
  const own = nativeData(part, rules.provider)
  const metadata = metadataField(own)
  switch (part.type) {
    case 'text':
      return part.text === '' && !('providerOptions' in metadata) ? null : { ...textPart(part.text), ...metadata }
    case 'reasoning':
      if (isTakenBack(own, rules.traits)) return { type: 'reasoning', text: part.text, ...metadata }
      return part.text === '' ? null : textPart(`<thinking>\n${part.text}\n</thinking>`)
    case 'tool_call':
      return { ...callPart(part, rules.traits), ...metadata }
    case 'opaque':
      return own === null ? textWithin(part) : opaquePart(own, metadata, rules.version)
  }
}

function metadataField(own: JsonObject | null): { readonly providerOptions?: JsonObject } {
  const metadata = own?.['providerMetadata']
  return isObject(metadata) ? { providerOptions: metadata } : {}
}

/** A thought that was cut off may lack the seal without which it is passed over. */
function isTakenBack(own: JsonObject | null, { seals }: ProviderTraits): boolean {
  if (own === null || seals === undefined) return own !== null
  const spaces: readonly unknown[] = isObject(own['providerMetadata']) ? Object.values(own['providerMetadata']) : []
  return spaces.filter(isObject).some((space) => seals.some((seal) => stringIn(space[seal]) !== ''))
}

/** The part's own id, name and arguments count: the tool boundary may have repaired them. */
function callPart({ callId, name, arguments: text }: ToolCallPart, traits: ProviderTraits): PromptPart {
  return {
    type: 'tool-call',
    toolCallId: promptCallId(callId, traits),
    toolName: calledName(name),
    input: inputOf(text),
  }
}

/** Arguments as an object, which APIs want; text that is none is kept in it as the model wrote it. */
function inputOf(text: string): JsonObject {
  if (text.trim() === '') return {}
  const parsed = parseJson(text)
  return parsed.ok && isObject(parsed.value) ? parsed.value : { invalid_arguments: text }
}

/** What the provider can be given back of what is not ours: its own calls and their results, files, its own blocks. */
function opaquePart(own: JsonObject, metadata: object, version: Version): PromptPart | null {
  const { type, toolCallId, toolName, mediaType } = own
  if (typeof type !== 'string' || !version.replayable.has(type)) return null
  switch (type) {
    case 'tool-call':
      return { type, toolCallId, toolName, input: anyInput(own['input']), providerExecuted: true, ...metadata }
    case 'tool-result':
      return { type, toolCallId, toolName, output: outputOf(own), ...metadata }
    case 'file':
    case 'reasoning-file': {
      const source = sourceOf(own['data'])
      return source === null ? null : { type, data: version.fileData(source), mediaType, ...metadata }
    }
    default:
      return { type, kind: own['kind'], ...metadata }
  }
}

function anyInput(input: JsonValue | undefined): JsonValue {
  if (typeof input !== 'string') return input ?? {}
  const parsed = parseJson(input)
  return parsed.ok ? parsed.value : input
}

function outputOf({ result, isError }: JsonObject): PromptPart {
  return { type: isError === true ? 'error-json' : 'json', value: result ?? null }
}

/** Where a file is, in the form of any version. */
function sourceOf(data: JsonValue | undefined): FileSource | null {
  if (typeof data === 'string') return { data }
  if (!isObject(data)) return null
  const { data: bytes, url, originalUrl } = data
  const address = originalUrl ?? url
  if (typeof bytes === 'string') return { data: bytes }
  return typeof address === 'string' && URL.canParse(address) ? { url: address } : null
}

/** What another provider's part says, where it says something: a refusal, for one. */
function textWithin({ native }: AssistantPart): PromptPart | null {
  if (native === undefined || !isObject(native.data)) return null
  const held: readonly unknown[] = [native.data, ...Object.values(native.data)]
  const text = held
    .filter(isObject)
    .flatMap((object) => [object['text'], object['refusal']])
    .find((said) => typeof said === 'string')
  return text === undefined || text === '' ? null : textPart(text)
}
