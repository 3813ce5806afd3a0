import type { IncomingMessage } from 'node:http'
import { firstCharacters } from '../../util/characters.js'
import { readBody } from './body.js'
import type { Body } from './body.js'
import { contentTypeOf, decodedText, kindOf, kindOfType, refuseBinary } from './content.js'
import type { ContentKind, ContentType } from './content.js'
import { convert, HTML_TO_MARKDOWN, PDF_TO_TEXT } from './convert.js'
import { fetchFailure, shownUrl } from './failure.js'
import type { FetchSettings } from './options.js'
import { requestPage } from './request.js'
import { parsedUrl, targetOf } from './target.js'

export interface Page {
  /** Where it was found, after redirects. */
  readonly url: string
  readonly status: number
  readonly contentType: string
  /** Unpacked bytes that were read. */
  readonly bytes: number
  /** The page was longer than what is read. */
  readonly cut: boolean
  readonly format: 'markdown' | 'text'
  readonly text: string
}

/** Longest part of the page of an error that the model gets, in characters. */
const MAX_ERROR_CHARS = 1_000
const MAX_ERROR_BYTES = 65_536

/**
 * Fetches a page as text. Each host on the way is looked up once, checked, and connected to by what was checked.
 * @throws FileFailure; the signal's reason.
 */
export async function fetchPage(text: string, settings: FetchSettings, signal: AbortSignal): Promise<Page> {
  const { url, answer } = await followed(parsedUrl(text), settings, signal)
  const type = contentTypeOf(answer.headers['content-type'])
  const status = answer.statusCode ?? 0
  if (status < 200 || status > 299) throw await httpFailure(url, answer, { type, signal })
  if (kindOfType(type) === 'binary') {
    answer.destroy()
    refuseBinary(type)
  }
  const body = await readBody(answer, settings.maxBytes, signal)
  const kind = kindOf(type, body.bytes)
  const read = await readable({ kind, type, body, url, signal })
  return { url: url.href, status, contentType: type.mediaType, bytes: body.bytes.length, cut: body.cut, ...read }
}

interface Found {
  readonly url: URL
  readonly answer: IncomingMessage
}

async function followed(first: URL, settings: FetchSettings, signal: AbortSignal): Promise<Found> {
  let url = first
  for (let redirects = 0; redirects <= settings.maxRedirects; redirects++) {
    const target = await abortable(targetOf(url, settings), signal)
    const answer = await requestPage(target, settings.userAgent, signal)
    const next = redirectOf(answer)
    if (next === undefined) return { url, answer }
    answer.destroy()
    url = parsedUrl(next, url)
  }
  throw fetchFailure('FetchFailed', `${shownUrl(first.href)} redirects more than ${settings.maxRedirects} times.`)
}

function redirectOf({ statusCode = 0, headers }: IncomingMessage): string | undefined {
  return [301, 302, 303, 307, 308].includes(statusCode) ? headers.location : undefined
}

/** Looking up a name cannot be stopped: it is left behind. */
async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop: () => void = () => undefined
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(new Error('aborted'))
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
  })
  try {
    return await Promise.race([work, aborted])
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

interface Reading {
  readonly kind: ContentKind
  readonly type: ContentType
  readonly body: Body
  readonly url: URL
  readonly signal: AbortSignal
}

async function readable({ kind, type, body, url, signal }: Reading): Promise<Pick<Page, 'format' | 'text'>> {
  switch (kind) {
    case 'html': {
      const html = Buffer.from(decodedText(type, body.bytes))
      return { format: 'markdown', text: await convert(HTML_TO_MARKDOWN, html, { base: url, signal }) }
    }
    case 'pdf':
      if (body.cut)
        throw fetchFailure('ContentTooLarge', `The PDF has more than the ${body.bytes.length} bytes that are read.`)
      return { format: 'text', text: await convert(PDF_TO_TEXT, body.bytes, { base: url, signal }) }
    case 'text':
      return { format: 'text', text: decodedText(type, body.bytes) }
    case 'binary':
      return refuseBinary(type)
  }
}

async function httpFailure(
  url: URL,
  answer: IncomingMessage,
  { type, signal }: { readonly type: ContentType; readonly signal: AbortSignal },
) {
  const status = `${answer.statusCode ?? 0} ${answer.statusMessage ?? ''}`.trim()
  const { bytes } = await readBody(answer, MAX_ERROR_BYTES, signal)
  const said = kindOf(type, bytes) === 'text' ? decodedText(type, bytes).trim() : ''
  return fetchFailure(
    'HttpError',
    `${shownUrl(url.href)} answered ${status}.${said === '' ? '' : ` It says: ${firstCharacters(said, MAX_ERROR_CHARS)}`}`,
  )
}
