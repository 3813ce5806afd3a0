import { atOnce } from '#util/wrapped.js'
import type { Answer } from '#core/state/answers.js'
import type { ContentPart } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { CLIENT_TOOLS } from '#session/tools/client-tools.js'
import { badRequest, RequestError } from './http.js'
import type { HandlerOptions } from './options.js'
import type { NewMessage, ThreadChange } from './thread.js'

/** The JSON object in the body of a request. Rejects one that is larger than `maxBodyBytes`, or no JSON object. */
export async function readBody(
  request: Request,
  { maxBodyBytes = 4_194_304 }: Pick<HandlerOptions, 'maxBodyBytes'>,
): Promise<JsonObject> {
  const text = await readBodyText(request, maxBodyBytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw badRequest('Expected the body to be JSON.')
  }
  if (!isObject(value)) throw badRequest('Expected the body to be a JSON object.')
  if (isDeeper(value, DEEPEST)) throw badRequest(`Expected the body to have at most ${DEEPEST} levels.`)
  return value as JsonObject
}

/** Levels of a body. Nothing that a page sends is nested so deeply, and no function that recurs into it fails. */
const DEEPEST = 100

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1))
}

async function readBodyText(request: Request, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder()
  let [text, size] = ['', 0]
  const reader = request.body?.getReader()
  for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
    const bytes = next.value as Uint8Array
    size += bytes.byteLength
    if (size > maxBytes) {
      await reader?.cancel().catch(() => undefined)
      throw new RequestError(413, 'body_too_large', { message: `Expected a body of at most ${maxBytes} bytes.` })
    }
    text += decoder.decode(bytes, { stream: true })
  }
  return text + decoder.decode()
}

const WHEN_BUSY = ['queue', 'steer', 'decline', 'reject'] as const

/** A message in the body of a request: `text`, or `content` as parts. */
export function readContent(
  { text, content }: JsonObject,
  options: Pick<HandlerOptions, 'allowUrl'>,
): readonly ContentPart[] {
  if (typeof text === 'string' && content === undefined) return [{ type: 'text', text }]
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content)) throw badRequest('Expected `text`, or `content` as a list of parts.')
  return content.map((part: unknown, index) => readPart(part, `content[${index}]`, options))
}

function readPart(part: unknown, path: string, { allowUrl }: Pick<HandlerOptions, 'allowUrl'>): ContentPart {
  const { type, text, data, mediaType, url, name } = isObject(part) ? part : {}
  if (type === 'text' && typeof text === 'string') return { type, text }
  if (type === 'image' && typeof url === 'string') {
    checkUrl(url, path, allowUrl)
    return { type, url }
  }
  if (typeof data === 'string' && typeof mediaType === 'string') {
    if (type === 'image') return { type, data, mediaType }
    if (type === 'audio') return { type, data, mediaType }
    if (type === 'file') return { type, data, mediaType, ...(typeof name === 'string' && { name }) }
  }
  throw badRequest(
    `Expected \`${path}\` to be a part of type text, image, file or audio with its members, got ${JSON.stringify(part).slice(0, 80)}.`,
  )
}

/** Refuses a link that the host does not allow. */
function checkUrl(url: string, path: string, allowUrl: HandlerOptions['allowUrl']): void {
  if (URL.canParse(url) && atOnce('`allowUrl`', allowUrl?.(new URL(url))) === true) return
  throw badRequest(`The link in \`${path}\` is not allowed: send the content.`)
}

/** The answers in the body of a request; the run checks them. */
export function readAnswers({ answers }: JsonObject, options: Pick<HandlerOptions, 'remember'>): readonly Answer[] {
  if (!Array.isArray(answers) || answers.length === 0) throw badRequest('Expected `answers` to be a list of answers.')
  return answers.map((answer: unknown, index) => {
    if (isObject(answer) && typeof answer['callId'] === 'string') {
      checkRemember(answer['remember'], `answers[${index}]`, options)
      // The author is who the host says it is.
      const { by: _by, ...unsigned } = answer
      return unsigned as unknown as Answer
    }
    throw badRequest(`Expected \`answers[${index}]\` to be an answer with a \`callId\`.`)
  })
}

/** A person who may approve one call need not be one who may allow all that follow. */
function checkRemember(
  remember: unknown,
  path: string,
  { remember: allowed = [] }: Pick<HandlerOptions, 'remember'>,
): void {
  if (remember === undefined) return
  const kind = remember === 'tool' || remember === 'category' ? remember : 'rule'
  if (!allowed.includes(kind))
    throw badRequest(`Expected \`${path}\` without \`remember\`: the server does not take ${kind} there.`)
}

export function readWhenBusy({ whenBusy }: JsonObject): NewMessage['whenBusy'] {
  if (whenBusy === undefined) return undefined
  const known = WHEN_BUSY.find((each) => each === whenBusy)
  if (known !== undefined) return known
  throw badRequest(`Expected \`whenBusy\` to be one of ${WHEN_BUSY.join(', ')}, got ${JSON.stringify(whenBusy)}.`)
}

/** A change of a conversation in the body of a request. */
export function readChange({ title, mode, remove, release, ...rest }: JsonObject): ThreadChange {
  const [unknown] = Object.keys(rest)
  if (unknown !== undefined)
    throw badRequest(`Expected \`title\`, \`mode\`, \`remove\` or \`release\`, got \`${unknown}\`.`)
  for (const [name, value] of Object.entries({ title, mode }))
    if (value !== undefined && typeof value !== 'string') throw badRequest(`Expected \`${name}\` to be a string.`)
  const ids: unknown = remove ?? []
  if (!Array.isArray(ids) || !ids.every((id) => typeof id === 'string'))
    throw badRequest('Expected `remove` to be a list of message ids.')
  return {
    ...(typeof title === 'string' && { title }),
    ...(typeof mode === 'string' && { mode }),
    ...(release === true && { release }),
    remove: ids,
  }
}

export function readMessageId({ messageId }: JsonObject): string {
  if (messageId === undefined) return `msg_${globalThis.crypto.randomUUID().replaceAll('-', '')}`
  if (typeof messageId === 'string' && messageId !== '') return messageId
  throw badRequest('Expected `messageId` to be a string that is not empty.')
}

/** The metadata for the run of a message: what the page sends has a name of its own. Its tools count only if the handlers take them. */
export function pageMetadata({ metadata }: JsonObject, { clientTools }: HandlerOptions): object | undefined {
  if (!isObject(metadata)) return undefined
  const { [CLIENT_TOOLS]: tools, ...page } = metadata
  return { ...(clientTools === true && tools !== undefined && { [CLIENT_TOOLS]: tools }), page }
}
