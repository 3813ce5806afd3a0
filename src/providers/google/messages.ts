import { resultForModel } from '#contracts/entry.js'
import type {
  AssistantEntry,
  AssistantPart,
  ContentPart,
  ImagePart,
  ToolCallPart,
  ToolEntry,
  TranscriptEntry,
} from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { acceptedCallId, acceptedName, argumentsObject } from '../wire/call-ids.js'
import {
  bareType,
  asGiven,
  filledParts,
  isTextType,
  omissionText,
  soundPart,
  textWithin,
  thinkingText,
} from '../wire/content.js'
import { foreignText, textWithSources } from '../hosted/foreign-parts.js'
import { stringIn } from '../wire/wire-fields.js'
import { GROUNDING } from './hosted.js'
import { PROVIDER } from './models.js'

/** What depends on the model and its host. */
export interface ContentRules {
  /** The first call of a reply needs a signature, and results may contain media. */
  readonly isThird: boolean
  readonly hasCallIds: boolean
}

/**
 * The contents of a conversation. The results of a batch, with the notice of the harness after them, are one content. Entries
 * without parts for the API are omitted, since it refuses empty contents.
 */
export function encodeContents(entries: readonly TranscriptEntry[], rules: ContentRules): readonly JsonObject[] {
  const contents: JsonObject[] = []
  let batch: Batch | null = null
  for (const entry of entries) {
    if (entry.role === 'tool') {
      batch ??= { results: [], media: [] }
      addResult(batch, entry, rules)
      continue
    }
    const notice = batch !== null && entry.role === 'user' && entry.notice === true ? userParts(entry.content) : null
    if (batch !== null) contents.push(batchContent(batch, notice ?? []))
    batch = null
    if (notice !== null) continue
    const parts = entry.role === 'user' ? userParts(entry.content) : modelParts(entry, rules)
    if (parts.length > 0) contents.push({ role: entry.role === 'user' ? 'user' : 'model', parts })
  }
  if (batch !== null) contents.push(batchContent(batch, []))
  return contents
}

/** The results of a reply's calls. */
interface Batch {
  readonly results: JsonObject[]
  /** Content that the API does not take within a result, for the end of the content. */
  readonly media: JsonObject[]
}

function batchContent({ results, media }: Batch, notice: readonly JsonObject[]): JsonObject {
  return { role: 'user', parts: [...results, ...media, ...notice] }
}

/** Media that the third generation takes within a result. */
const WITHIN_RESULTS = new Set(['image/png', 'image/jpeg', 'image/webp', 'application/pdf', 'text/plain'])

/** A result is an object; `output` and `error` are the names that the API reads. */
function addResult({ results, media }: Batch, entry: ToolEntry, { isThird, hasCallIds }: ContentRules): void {
  const { callId, name, isError } = entry
  const content = resultForModel(entry, 'flag')
  const texts: string[] = typeof content === 'string' ? [content] : []
  const inside: JsonObject[] = []
  for (const part of typeof content === 'string' ? [] : filledParts(content)) {
    const form = partForm(part)
    if (form.part === null) texts.push(omissionText(form.problem))
    else if (part.type === 'text') texts.push(part.text)
    else if (isThird && WITHIN_RESULTS.has(inlineType(form.part))) inside.push(form.part)
    else media.push(form.part)
  }
  results.push({
    functionResponse: {
      ...(hasCallIds && { id: acceptedCallId(callId, CALL_ID) }),
      name: functionName(name),
      response: { [isError ? 'error' : 'output']: texts.join('\n') },
      ...(inside.length > 0 && { parts: inside }),
    },
  })
}

function inlineType({ inlineData }: JsonObject): string {
  return isObject(inlineData) ? stringIn(inlineData['mimeType']) : ''
}

const CALL_ID = /^[\w.:-]{1,128}$/

/** A name begins with a letter or an underscore. */
function functionName(name: string): string {
  const accepted = acceptedName(name)
  return /^[a-z_]/i.test(accepted) ? accepted : `_${accepted.slice(0, 63)}`
}

/** Google's own text in place of a signature, for calls that its models have not made. */
const UNSIGNED = 'skip_thought_signature_validator'

/**
 * The parts of an earlier reply. This provider's parts are sent back unchanged, those of other providers as far as the API has
 * a form for them. Of parallel calls only the first is signed.
 */
function modelParts({ parts }: AssistantEntry, rules: ContentRules): readonly JsonObject[] {
  const encoded: JsonObject[] = []
  let isSigned = !rules.isThird
  for (const each of parts) {
    const part = modelPart(each, rules)
    if (part === null) continue
    const needsSignature = each.type === 'tool_call' && !isSigned && part['thoughtSignature'] === undefined
    encoded.push(needsSignature ? { ...part, thoughtSignature: UNSIGNED } : part)
    isSigned ||= each.type === 'tool_call'
  }
  return encoded
}

function modelPart(part: AssistantPart, rules: ContentRules): JsonObject | null {
  const native = part.native?.provider === PROVIDER && isObject(part.native.data) ? part.native.data : null
  switch (part.type) {
    case 'text':
      if (native === null) return plainPart(textWithSources(part))
      return part.text === '' ? null : { ...native, text: part.text }
    case 'reasoning':
      return native === null
        ? plainPart(part.text === '' ? '' : thinkingText(part.text))
        : { ...native, text: part.text }
    case 'tool_call':
      return callPart(part, native, rules)
    case 'hosted':
      // What stood beside the parts of a reply is none of them.
      return native === null ? plainPart(foreignText(part)) : GROUNDING in native ? null : native
    case 'image':
      return native === null ? plainPart(foreignText(part)) : imagePart(part, native)
    case 'opaque':
      return native ?? plainPart(textWithin(part))
  }
}

function imagePart(part: ImagePart, native: JsonObject): JsonObject {
  const { inlineData } = native
  return {
    ...native,
    inlineData: { ...(isObject(inlineData) && inlineData), ...('data' in part && { data: part.data }) },
  }
}

function plainPart(text: string): JsonObject | null {
  return text === '' ? null : { text }
}

/** The part's own id, name and arguments take precedence: the tool boundary may have repaired them. */
function callPart(
  { callId, name, arguments: text }: ToolCallPart,
  native: JsonObject | null,
  rules: ContentRules,
): JsonObject {
  const id = rules.hasCallIds ? { id: acceptedCallId(callId, CALL_ID) } : {}
  return { ...native, functionCall: { ...id, name: functionName(name), args: argumentsObject(text) } }
}

/** Parts of a user message. Throws `invalid_options` for content that the API does not support. */
function userParts(content: readonly ContentPart[]): readonly JsonObject[] {
  return filledParts(content).map((part) => {
    const form = partForm(part)
    if (form.part !== null) return form.part
    if (!form.isBroken) throw new HarnessError('invalid_options', form.problem)
    return { text: omissionText(form.problem, 'message') }
  })
}

/** A part in the form of the API, or the reason why it has none; `isBroken`: no API takes it. */
type Form =
  { readonly part: JsonObject } | { readonly part: null; readonly problem: string; readonly isBroken: boolean }

const IMAGE_TYPES = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/heic', 'image/heif'])

function partForm(given: ContentPart): Form {
  const sound = soundPart(asGiven(given))
  if (sound.part === null) return { part: null, problem: sound.problem, isBroken: true }
  const { part } = sound
  if (part.type === 'text') return { part: { text: part.text } }
  if ('url' in part) return { part: { fileData: { fileUri: part.url, mimeType: imageTypeOf(part.url) } } }
  const mimeType = inputType(bareType(part.mediaType))
  if (mimeType !== null) return { part: { inlineData: { mimeType, data: part.data } } }
  const supported = 'images (PNG, JPEG, WebP, HEIC), audio, video, PDF and text files'
  const problem = `Gemini's API supports ${supported}, got \`${part.type}\` of type \`${part.mediaType}\`.`
  return { part: null, problem, isBroken: false }
}

/** The type under which the API takes media; null if it does not. */
function inputType(type: string): string | null {
  if (type === 'application/pdf' || IMAGE_TYPES.has(type) || /^(?:audio|video)\//.test(type)) return type
  return isTextType(type) && !type.startsWith('image/') ? 'text/plain' : null
}

/** By the ending of its address: the API wants a type, and reads the real one from the bytes. */
function imageTypeOf(url: string): string {
  const [, ending = ''] = /\.(png|webp|heic|heif|jpe?g)(?:[?#]|$)/i.exec(url) ?? []
  const name = ending.toLowerCase()
  return name === '' || name.startsWith('jp') ? 'image/jpeg' : `image/${name}`
}
