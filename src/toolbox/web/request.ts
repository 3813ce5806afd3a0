import { request as httpRequest } from 'node:http'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import { isObject } from '#util/json.js'
import { fetchFailure, shownUrl } from './failure.js'
import type { FetchTarget } from './target.js'

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
    lookup: lookupOf(target),
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

function lookupOf({ addresses }: FetchTarget): LookupFunction {
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
