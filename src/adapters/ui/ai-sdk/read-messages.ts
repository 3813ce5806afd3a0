import { mediaPart } from '#contracts/entry.js'
import { atOnce } from '#util/wrapped.js'
import type { Answer } from '#core/state/answers.js'
import type { ContentPart } from '#contracts/entry.js'
import type { JsonValue, JsonObject } from '#util/json.js'
import type { PendingItem } from '#contracts/result.js'
import { isObject } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'
import { InputError } from '../input-error.js'

/** A message of a page, as far as a request is read: its parts are looked at one by one. */
export interface GivenUiMessage {
  readonly id: string
  readonly role: string
  readonly parts: readonly Readonly<Record<string, unknown>>[]
}

/** A part of a message that cannot be taken. */
export class UiMessageError extends InputError {
  override readonly name = 'UiMessageError'
}

/** The messages of a request. Throws a `UiMessageError` that names the first mistake. */
export function readUiMessages(value: unknown): readonly GivenUiMessage[] {
  if (!Array.isArray(value)) throw new UiMessageError('Expected `messages` to be a list of UI messages.')
  return value.map((message: unknown, index) => {
    const { id, role, parts } = isObject(message) ? message : {}
    if (typeof id !== 'string' || id === '')
      throw new UiMessageError(`Expected \`messages[${index}].id\` to be a string.`)
    if (typeof role !== 'string') throw new UiMessageError(`Expected \`messages[${index}].role\` to be a string.`)
    if (!Array.isArray(parts) || !parts.every(isObject))
      throw new UiMessageError(`Expected \`messages[${index}].parts\` to be a list of parts.`)
    return { id, role, parts: parts }
  })
}

/**
 * The last message of a page, which a person wrote, as the content of a prompt: text, images, files and sound. Throws a
 * `UiMessageError` for other parts, and for a link that `allowUrl` does not allow.
 */
export function fromUIMessages(
  messages: readonly unknown[],
  { allowUrl = () => false }: { readonly allowUrl?: ((url: URL) => boolean) | undefined } = {},
): readonly ContentPart[] {
  const last = readUiMessages(messages).at(-1)
  if (last?.role !== 'user') throw new UiMessageError('Expected the last message to be of role user.')
  return last.parts.flatMap((part, index) => {
    const content = readContent(part, `parts[${index}]`, allowUrl)
    return content === null ? [] : [content]
  })
}

function readContent(
  { type, text, url, mediaType, filename }: Readonly<Record<string, unknown>>,
  path: string,
  allowUrl: (url: URL) => boolean,
): ContentPart | null {
  if (type === 'text' && typeof text === 'string') return { type, text }
  if (type !== 'file' || typeof url !== 'string' || typeof mediaType !== 'string')
    throw new UiMessageError(`Expected \`${path}\` of the message to be a text or a file, got ${shownValue(type)}.`)
  const isImage = mediaType.startsWith('image/')
  const data = /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1]
  if (data === undefined) {
    if (isImage && URL.canParse(url) && atOnce('`allowUrl`', allowUrl(new URL(url)))) return { type: 'image', url }
    throw new UiMessageError(`The link in \`${path}\` of the message is not allowed: send the content.`)
  }
  return mediaPart(data, mediaType, typeof filename === 'string' ? filename : undefined)
}

/**
 * The answers that a page gives by its last message: approvals that were answered, and outputs for calls whose question waits.
 * Those for items that do not wait are left out. `given` answers, of the body, count before them.
 */
export function pendingAnswers(
  messages: readonly GivenUiMessage[],
  pending: readonly PendingItem[],
  given: readonly Answer[] = [],
): readonly Answer[] {
  const last = messages.at(-1)
  const parts = last?.role === 'assistant' ? last.parts : []
  const taken = new Set(given.map(({ callId }) => callId))
  const own = pending.flatMap((item): Answer[] => {
    if (taken.has(item.callId)) return []
    const part = parts.find((each) => isAbout(each, item))
    const answer = part === undefined ? null : partAnswer(part, item)
    return answer === null ? [] : [answer]
  })
  return [...given, ...own]
}

function isAbout({ toolCallId, approval }: Readonly<Record<string, unknown>>, { callId }: PendingItem): boolean {
  return toolCallId === callId || (isObject(approval) && approval['id'] === callId)
}

function partAnswer(part: Readonly<Record<string, unknown>>, { kind, callId }: PendingItem): Answer | null {
  const { state, approval, output, errorText } = part
  if (kind !== 'approval' && state === 'output-available') return { callId, answer: output as JsonValue }
  // A page declines a question by an output that is an error.
  if (kind === 'question' && state === 'output-error')
    return { callId, declined: true, ...(typeof errorText === 'string' && { reason: errorText }) }
  if (kind !== 'approval') return null
  const { approved, reason } = isObject(approval) ? approval : ({} as JsonObject)
  if (state !== 'approval-responded' || typeof approved !== 'boolean') return null
  return { callId, approved, ...(typeof reason === 'string' && { reason }) }
}
