import { resultForModel } from '#contracts/entry.js'
import type {
  ToolEntry,
  TranscriptEntry,
  AssistantEntry,
  AssistantPart,
  ToolCallPart,
  ContentPart,
  GivenPart,
} from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { isObject, jsonOr } from '#util/json.js'
import { acceptedName, argumentsObject } from '../wire/call-ids.js'
import { foreignText, textWithSources } from '../hosted/foreign-parts.js'
import {
  bareType,
  asGiven,
  filledParts,
  omissionText,
  textWithin,
  thinkingText,
  isTextType,
  soundPart,
  textOfFile,
} from '../wire/content.js'
import { stringIn } from '../wire/wire-fields.js'
import type { PromptFile, FileSource, Version } from './language-model.js'
import { promptCallId } from './provider-traits.js'
import type { ProviderTraits } from './provider-traits.js'
import { nativeData } from './reply.js'

export type EncodeRules = ReplayRules & AiSdkContentRules

/**
 * The messages of entries. The results of a batch are one message, as most APIs require; files that the provider does
 * not support within a result follow in a message of their own. Empty messages are omitted, since APIs reject them.
 */
export function encodeEntries(entries: readonly TranscriptEntry[], rules: EncodeRules): JsonObject[] {
  const messages: JsonObject[] = []
  let results: JsonObject[] = []
  let shown: JsonObject[] = []
  for (const [index, entry] of entries.entries()) {
    if (entry.role !== 'tool') {
      const content = entry.role === 'user' ? userParts(entry.content, rules) : assistantParts(entry, rules)
      if (content.length > 0) messages.push({ role: entry.role, content })
      continue
    }
    const result = encodeResult(entry, rules)
    results.push(result.part)
    shown.push(...result.shown)
    if (entries[index + 1]?.role === 'tool') continue
    messages.push({ role: 'tool', content: results })
    if (shown.length > 0) messages.push({ role: 'user', content: shown })
    results = []
    shown = []
  }
  return messages
}

interface EncodedResult {
  readonly part: JsonObject
  /** Files of the result that the provider does not support within it, after a text that names the call. */
  readonly shown: readonly JsonObject[]
}

function encodeResult(entry: ToolEntry, rules: EncodeRules): EncodedResult {
  const toolCallId = promptCallId(entry.callId, rules.traits)
  const toolName = acceptedName(entry.name)
  const { output, files } = toolResultOutput(entry, rules)
  const origin = textPart(`From the result of the call \`${toolCallId}\` of \`${toolName}\`:`)
  const shown = files.map((file) => filePart(file, rules.version))
  return {
    part: { type: 'tool-result', toolCallId, toolName, output },
    shown: shown.length > 0 ? [origin, ...shown] : [],
  }
}

interface Output {
  readonly output: JsonObject
  /** Files that are not within the output. */
  readonly files: readonly PromptFile[]
}

/** A single text unless the result contains a file: in a list of parts, the specification has no mark for an error. */
function toolResultOutput(entry: ToolEntry, rules: EncodeRules): Output {
  const { traits, version } = rules
  const isFlagged = traits.errorFlag === true && typeof entry.content === 'string'
  const content = resultForModel(entry, isFlagged ? 'flag' : 'prefix')
  const type = entry.isError && traits.plainErrors !== true ? 'error-text' : 'text'
  if (typeof content === 'string') return { output: { type, value: content.trim() === '' ? '' : content }, files: [] }
  const texts: string[] = []
  const inside: JsonObject[] = []
  const files: PromptFile[] = []
  for (const part of filledParts(content)) {
    const form = partForm(part, rules)
    if (form.kind === 'file') {
      const file = traits.resultMedia?.test(form.file.mediaType) === true ? version.resultFile(form.file) : null
      if (file === null) files.push(form.file)
      else inside.push(file)
      continue
    }
    const text = form.kind === 'text' ? form.text : omissionText(form.problem)
    texts.push(text)
    inside.push(textPart(text))
  }
  const hasFiles = inside.length > texts.length
  return { output: hasFiles ? { type: 'content', value: inside } : { type, value: texts.join('\n\n') }, files }
}

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
function assistantParts({ parts }: AssistantEntry, rules: ReplayRules): JsonObject[] {
  return parts.map((part) => promptPart(part, rules)).filter((part) => part !== null)
}

function promptPart(part: AssistantPart, rules: ReplayRules): JsonObject | null {
  const own = nativeData(part, rules.provider)
  const metadata = metadataField(own)
  switch (part.type) {
    case 'text':
      return part.text.trim() === '' && !('providerOptions' in metadata)
        ? null
        : {
            ...textPart(own === null && part.annotations !== undefined ? textWithSources(part) : part.text),
            ...metadata,
          }
    case 'reasoning':
      if (isAccepted(own, rules.traits)) return { type: 'reasoning', text: part.text, ...metadata }
      return part.text === '' ? null : textPart(thinkingText(part.text))
    case 'tool_call':
      return { ...callPart(part, rules.traits), ...metadata }
    case 'hosted':
    case 'image':
      if (own === null) return textPart(foreignText(part))
      return opaquePart('data' in part ? { ...own, data: part.data } : own, metadata, rules.version)
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
      return { type, toolCallId, toolName, output: ownResultOutput(own), ...metadata }
    case 'file':
    case 'reasoning-file': {
      const source = fileSource(own['data'])
      return source === null ? null : { type, data: version.fileData(source), mediaType, ...metadata }
    }
    default:
      return { type, kind: own['kind'], ...metadata }
  }
}

function anyInput(input: JsonValue | undefined): JsonValue {
  return typeof input === 'string' ? jsonOr(input, input) : (input ?? {})
}

function ownResultOutput({ result, isError }: JsonObject): JsonObject {
  return { type: isError === true ? 'error-json' : 'json', value: result ?? null }
}

/** The content of a file, in the form of any version. */
function fileSource(data: JsonValue | undefined): FileSource | null {
  if (typeof data === 'string') return { data }
  if (!isObject(data)) return null
  const { data: base64, url, originalUrl } = data
  const address = originalUrl ?? url
  if (typeof base64 === 'string') return { data: base64 }
  return typeof address === 'string' && URL.canParse(address) ? { url: address } : null
}

/** The known inputs of a model. */
export interface AiSdkContentRules {
  /** Name of the model's provider, for messages. */
  readonly provider: string
  readonly version: Version
  /** Kinds of input other than text; undefined: all. */
  readonly inputs: readonly ContentPart['type'][] | undefined
}

/** Parts of a user message. Throws `invalid_options` for content that the model is known not to support. */
function userParts(content: readonly ContentPart[], rules: AiSdkContentRules): JsonObject[] {
  return filledParts(content).map((part) => {
    const sound = soundPart(part)
    const form = soundForm(sound.part ?? part, rules)
    if (form.kind === 'unsupported') throw new HarnessError('invalid_options', form.problem)
    if (sound.part === null) return textPart(omissionText(sound.problem, 'message'))
    return form.kind === 'text' ? textPart(form.text) : filePart(form.file, rules.version)
  })
}

/** A part of a message in the form of the specification, or the reason why the model does not support it. */
type PartForm =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly file: PromptFile }
  | { readonly kind: 'unsupported'; readonly problem: string }

/** Text files are sent as text: few providers support them as files. */
function partForm(given: ContentPart, rules: AiSdkContentRules): PartForm {
  const sound = soundPart(asGiven(given))
  return sound.part === null ? { kind: 'unsupported', problem: sound.problem } : soundForm(sound.part, rules)
}

function soundForm(part: GivenPart, { provider, version, inputs }: AiSdkContentRules): PartForm {
  if (part.type === 'text') return { kind: 'text', text: part.text }
  if (part.type === 'file' && isTextType(part.mediaType)) return { kind: 'text', text: textOfFile(part) }
  if (inputs?.includes(part.type) === false) {
    return { kind: 'unsupported', problem: `The model of \`${provider}\` does not support \`${part.type}\`.` }
  }
  if ('url' in part) return { kind: 'file', file: imageAt(part.url, version) }
  const { data, mediaType } = part
  const name = part.type === 'file' && part.name !== undefined ? { name: part.name } : {}
  return { kind: 'file', file: { source: { data }, mediaType: bareType(mediaType), ...name } }
}

function textPart(text: string): JsonObject {
  return { type: 'text', text }
}

function filePart({ source, mediaType, name }: PromptFile, version: Version): JsonObject {
  return { type: 'file', data: version.fileData(source), mediaType, ...(name !== undefined && { filename: name }) }
}

function imageAt(url: string, version: Version): PromptFile {
  if (!URL.canParse(url)) {
    const message = `Expected the \`url\` of an image to be a URL, got \`${url.slice(0, 100)}\`.`
    throw new HarnessError('invalid_options', message)
  }
  return { source: { url }, mediaType: version.anyOf('image') }
}
