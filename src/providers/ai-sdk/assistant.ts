import type { AssistantEntry, AssistantPart, ToolCallPart } from '../../contracts/entry.js'
import { isObject, parseJson } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import { acceptedName, argumentsObject } from '../wire/calls.js'
import { textWithin, thinkingText } from '../wire/content.js'
import { stringIn } from '../wire/read.js'
import { textPart } from './content.js'
import type { FileSource, Version } from './language-model.js'
import { promptCallId } from './traits.js'
import type { ProviderTraits } from './traits.js'
import { nativeData } from './wire.js'

export interface ReplayRules {
  /** As in `NativePart.provider`. */
  readonly provider: string
  readonly version: Version
  readonly traits: ProviderTraits
}

/**
 * Parts of an earlier reply. This provider's parts are sent back with their metadata. Reasoning of another provider
 * becomes text, and its parts without text are omitted.
 */
export function assistantParts({ parts }: AssistantEntry, rules: ReplayRules): JsonObject[] {
  return parts.map((part) => promptPart(part, rules)).filter((part) => part !== null)
}

function promptPart(part: AssistantPart, rules: ReplayRules): JsonObject | null {
  const own = nativeData(part, rules.provider)
  const metadata = metadataField(own)
  switch (part.type) {
    case 'text':
      return part.text === '' && !('providerOptions' in metadata) ? null : { ...textPart(part.text), ...metadata }
    case 'reasoning':
      if (isAccepted(own, rules.traits)) return { type: 'reasoning', text: part.text, ...metadata }
      return part.text === '' ? null : textPart(thinkingText(part.text))
    case 'tool_call':
      return { ...callPart(part, rules.traits), ...metadata }
    case 'opaque':
      return own === null ? foreignPart(part) : opaquePart(own, metadata, rules.version)
  }
}

function metadataField(own: JsonObject | null): JsonObject {
  const metadata = own?.['providerMetadata']
  return isObject(metadata) ? { providerOptions: metadata } : {}
}

/** False for reasoning that was cut off before the seal that the provider requires. */
function isAccepted(own: JsonObject | null, { seals }: ProviderTraits): boolean {
  if (own === null || seals === undefined) return own !== null
  const spaces: readonly unknown[] = isObject(own['providerMetadata']) ? Object.values(own['providerMetadata']) : []
  return spaces.filter(isObject).some((space) => seals.some((seal) => stringIn(space[seal]) !== ''))
}

/** The part's own id, name and arguments take precedence: the tool boundary may have repaired them. */
function callPart({ callId, name, arguments: text }: ToolCallPart, traits: ProviderTraits): JsonObject {
  return {
    type: 'tool-call',
    toolCallId: promptCallId(callId, traits),
    toolName: acceptedName(name),
    input: argumentsObject(text),
  }
}

/** A part of another provider as text, if it contains any, such as a refusal. */
function foreignPart(part: AssistantPart): JsonObject | null {
  const text = textWithin(part)
  return text === '' ? null : textPart(text)
}

/** Parts of the provider itself that can be sent back: its own calls and their results, files, summaries, its own blocks. */
function opaquePart(own: JsonObject, metadata: JsonObject, version: Version): JsonObject | null {
  const { type, toolCallId, toolName, mediaType } = own
  if (type === 'compaction') return { ...textPart(stringIn(own['content'])), ...metadata }
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

function outputOf({ result, isError }: JsonObject): JsonObject {
  return { type: isError === true ? 'error-json' : 'json', value: result ?? null }
}

/** The content of a file, in the form of any version. */
function sourceOf(data: JsonValue | undefined): FileSource | null {
  if (typeof data === 'string') return { data }
  if (!isObject(data)) return null
  const { data: base64, url, originalUrl } = data
  const address = originalUrl ?? url
  if (typeof base64 === 'string') return { data: base64 }
  return typeof address === 'string' && URL.canParse(address) ? { url: address } : null
}
