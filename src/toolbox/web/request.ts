import { request as httpRequest } from 'node:http'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import { isObject } from '../../util/json.js'
import { fetchFailure, shownUrl } from './failure.js'
import type { Target } from './target.js'

const ACCEPT = 'text/html,application/xhtml+xml,application/pdf,application/json,text/*;q=0.9,*/*;q=0.5'

/**
 * Asks one host for one page and gives its answer as soon as the head is there. The connection is its own, goes to the
 * addresses that were checked, whatever the name may mean by now, and is cut when the signal is aborted.
 * @throws FileFailure `FetchFailed`; the signal's reason.
 */
export async function requestPage(target: Target, userAgent: string, signal: AbortSignal): Promise<IncomingMessage> {
  signal.throwIfAborted()
  const { url } = target
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest
  const sent = send(url, {
    agent: false,
    headers: { accept: ACCEPT, 'accept-encoding': 'gzip, deflate, br', 'user-agent': userAgent },
    lookup: lookupOf(target),
    signal,
  })
  sent.end()
  try {
    return await answerTo(sent)
  } catch (error) {
    signal.throwIfAborted()
    throw fetchFailure('FetchFailed', `${shownUrl(url.href)} could not be fetched (${codeOf(error)}).`)
  }
}

function lookupOf({ addresses }: Target): LookupFunction {
  const [first] = addresses
  return (_hostname, options, callback) => {
    if (options.all === true) callback(null, [...addresses])
    else callback(null, first.address, first.family)
  }
}

function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once('response', (answer) => {
      // Told to whoever reads it; that it may be dropped unread is no error.
      answer.on('error', () => undefined)
      resolve(answer)
    })
    // There may be more than one, and one after the answer.
    sent.on('error', reject)
    sent.once('upgrade', (_answer, socket) => {
      socket.destroy()
      reject(new Error('it asked for another protocol'))
    })
  })
}

export function codeOf(error: unknown): string {
  if (isObject(error) && typeof error['code'] === 'string') return error['code']
  return error instanceof Error ? error.message.slice(0, 200) : 'unknown error'
}
