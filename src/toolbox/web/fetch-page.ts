import { convertDocument, HTML_TO_MARKDOWN, PDF_TO_TEXT } from '../workspace/convert-document.js'
import { contentTypeOf, decodeText, contentKind, kindOfType, refuseBinary } from './content.js'
import type { ContentKind, ContentType } from './content.js'
import { failureAt, fetchFailure, shownUrl } from './fetch-failure.js'
import type { FetchSettings } from './options.js'
import { parseUrl, checkedTarget } from './target.js'
import type { FetchTarget } from './target.js'
import { abortable } from '#util/abort.js'
import { firstCharacters } from '#util/characters.js'
import { isObject } from '#util/json.js'
import { withoutTerminalCodes } from '#util/platform/terminal.js'
import type { IncomingMessage, ClientRequest } from 'node:http'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

export interface WebPage {
  /** Its address after redirects. */
  readonly url: string
  readonly status: number
  readonly contentType: string
  /** Decompressed bytes that were read. */
  readonly bytes: number
  /** The page is longer than the limit. */
  readonly cut: boolean
  readonly format: 'markdown' | 'text'
  readonly text: string
}

/** Longest part of an error page that the model gets, in characters. */
const MAX_ERROR_CHARS = 1_000
const MAX_ERROR_BYTES = 65_536

/**
 * Fetches a page as text. Each host of a redirect is looked up once, checked, and connected to by the checked addresses.
 * @throws FileFailure; the signal's reason.
 */
export async function fetchPage(text: string, settings: FetchSettings, signal: AbortSignal): Promise<WebPage> {
  const answer = await followRedirects(parseUrl(text), settings, signal)
  try {
    return await readPage(answer, settings, signal)
  } catch (error) {
    throw failureAt(answer.url, error)
  }
}

interface Answer {
  readonly url: URL
  readonly response: IncomingMessage
}

async function readPage({ url, response }: Answer, settings: FetchSettings, signal: AbortSignal): Promise<WebPage> {
  const type = contentTypeOf(response.headers['content-type'])
  const status = response.statusCode ?? 0
  if (status < 200 || status > 299) throw await httpFailure(url, response, { type, signal })
  if (kindOfType(type) === 'binary') {
    response.destroy()
    refuseBinary(type)
  }
  const body = await readBody(response, settings.maxBytes, signal)
  const kind = contentKind(type, body.bytes)
  const read = await readableText({ kind, type, body, url, signal })
  return {
    url: url.href,
    status,
    contentType: type.mediaType,
    bytes: body.bytes.length,
    cut: body.cut,
    ...read,
    text: withoutTerminalCodes(read.text),
  }
}

async function followRedirects(first: URL, settings: FetchSettings, signal: AbortSignal): Promise<Answer> {
  let url = first
  for (let redirects = 0; redirects <= settings.maxRedirects; redirects++) {
    // A lookup cannot be stopped: it is abandoned.
    const target = await abortable(checkedTarget(url, settings), signal)
    const response = await requestPage(target, settings.userAgent, signal)
    const next = redirectLocation(response)
    if (next === undefined) return { url, response }
    response.destroy()
    url = parseUrl(next, url)
  }
  throw fetchFailure('FetchFailed', `${shownUrl(first.href)} redirects more than ${settings.maxRedirects} times.`)
}

function redirectLocation({ statusCode = 0, headers }: IncomingMessage): string | undefined {
  return [301, 302, 303, 307, 308].includes(statusCode) ? headers.location : undefined
}

interface Reading {
  readonly kind: ContentKind
  readonly type: ContentType
  readonly body: Body
  readonly url: URL
  readonly signal: AbortSignal
}

async function readableText({ kind, type, body, url, signal }: Reading): Promise<Pick<WebPage, 'format' | 'text'>> {
  switch (kind) {
    case 'html': {
      const html = Buffer.from(decodeText(type, body.bytes))
      return { format: 'markdown', text: await convertDocument(HTML_TO_MARKDOWN, html, { base: url, signal }) }
    }
    case 'pdf':
      return { format: 'text', text: await convertDocument(PDF_TO_TEXT, wholeBody(body, 'PDF'), { base: url, signal }) }
    case 'docx': {
      const { docxToMarkdown } = await import('../workspace/docx.js')
      return { format: 'markdown', text: await docxToMarkdown(wholeBody(body, 'document'), { signal }) }
    }
    case 'text':
      return { format: 'text', text: decodeText(type, body.bytes) }
    case 'binary':
      return refuseBinary(type)
  }
}

/** Documents are not read in part. */
function wholeBody({ bytes, cut }: Body, name: string): Buffer {
  if (cut) throw fetchFailure('ContentTooLarge', `The ${name} has more than the ${bytes.length} bytes that are read.`)
  return bytes
}

async function httpFailure(
  url: URL,
  response: IncomingMessage,
  { type, signal }: { readonly type: ContentType; readonly signal: AbortSignal },
) {
  const status = `${response.statusCode ?? 0} ${response.statusMessage ?? ''}`.trim()
  const { bytes } = await readBody(response, MAX_ERROR_BYTES, signal)
  const message = contentKind(type, bytes) === 'text' ? decodeText(type, bytes).trim() : ''
  return fetchFailure(
    'HttpError',
    `${shownUrl(url.href)} answered ${status}.${message === '' ? '' : ` Its message: ${firstCharacters(message, MAX_ERROR_CHARS)}`}`,
  )
}

interface Body {
  readonly bytes: Buffer
  /** The body is longer than `maxBytes`. */
  readonly cut: boolean
}

/**
 * A body, decompressed, or its first `maxBytes`: not more than that is held in memory.
 * @throws FileFailure `FetchFailed`; the signal's reason.
 */
async function readBody(response: IncomingMessage, maxBytes: number, signal: AbortSignal): Promise<Body> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of decompressedBody(response)) {
      const bytes = chunk as Buffer
      chunks.push(bytes)
      size += bytes.length
      if (size > maxBytes) break
    }
  } catch (error) {
    signal.throwIfAborted()
    throw fetchFailure('FetchFailed', `The response was interrupted (${requestErrorCode(error)}).`)
  } finally {
    response.destroy()
  }
  signal.throwIfAborted()
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), cut: size > maxBytes }
}

function decompressedBody(response: IncomingMessage): AsyncIterable<unknown> {
  const decompressor = decompressorOf(response.headers['content-encoding'])
  if (decompressor === undefined) return response
  response.once('error', (error) => decompressor.destroy(error))
  return response.pipe(decompressor)
}

function decompressorOf(encoding = 'identity') {
  switch (encoding.trim().toLowerCase()) {
    case 'identity':
    case '':
      return undefined
    case 'gzip':
    case 'x-gzip':
      return createGunzip()
    case 'deflate':
      return createInflate()
    case 'br':
      return createBrotliDecompress()
    default:
      throw fetchFailure(
        'FetchFailed',
        `The response has an encoding that was not requested: \`${encoding.slice(0, 50)}\`.`,
      )
  }
}

const ACCEPT = 'text/html,application/xhtml+xml,application/pdf,application/json,text/*;q=0.9,*/*;q=0.5'

/**
 * Requests a page from one host; resolves as soon as the head of the response is there. The connection is not shared, uses
 * the checked addresses, whatever the name resolves to meanwhile, and is closed when the signal is aborted.
 * @throws FileFailure `FetchFailed`; the signal's reason.
 */
export async function requestPage(
  target: FetchTarget,
  userAgent: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  signal.throwIfAborted()
  const { url } = target
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest
  const request = send(url, {
    agent: false,
    headers: { accept: ACCEPT, 'accept-encoding': 'gzip, deflate, br', 'user-agent': userAgent },
    lookup: lookupChecked(target),
    signal,
  })
  request.end()
  try {
    return await responseTo(request)
  } catch (error) {
    signal.throwIfAborted()
    throw fetchFailure('FetchFailed', `${shownUrl(url.href)} could not be fetched (${requestErrorCode(error)}).`)
  }
}

function lookupChecked({ addresses }: FetchTarget): LookupFunction {
  const [first] = addresses
  return (_hostname, options, callback) => {
    if (options.all === true) callback(null, [...addresses])
    else callback(null, first.address, first.family)
  }
}

function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', (response) => {
      // Readers get the error; dropping a response unread is not an error.
      response.on('error', () => undefined)
      resolve(response)
    })
    // There may be several errors, also after the response.
    request.on('error', reject)
    request.once('upgrade', (_response, socket) => {
      socket.destroy()
      reject(new Error('it requested another protocol'))
    })
  })
}

export function requestErrorCode(error: unknown): string {
  if (isObject(error) && typeof error['code'] === 'string') return error['code']
  return error instanceof Error ? error.message.slice(0, 200) : 'unknown error'
}
