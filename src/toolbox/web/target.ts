import { isIP } from 'node:net'
import { isPublicAddress } from './addresses.js'
import { fetchFailure, shownUrl } from './fetch-failure.js'
import { isAmong, plainHost } from './host-list.js'
import type { FetchSettings, HostAddress } from './options.js'

const MAX_URL_CHARS = 8_192

/** The target of a request, with checked addresses; no others are connected to. */
export interface FetchTarget {
  readonly url: URL
  readonly addresses: readonly [HostAddress, ...HostAddress[]]
}

/** @throws FileFailure `InvalidInput` if it is not the address of a web page. */
export function parseUrl(text: string, base?: URL): URL {
  if (text.length > MAX_URL_CHARS)
    throw fetchFailure('InvalidInput', `The URL is longer than ${MAX_URL_CHARS} characters.`)
  const url = URL.canParse(text, base?.href) ? new URL(text, base) : undefined
  if (url === undefined)
    throw fetchFailure('InvalidInput', `\`${shownUrl(text)}\` is not a URL. Pass it completely, with \`https://\`.`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw fetchFailure('FetchRefused', `Only \`http\` and \`https\` URLs are fetched, not \`${url.protocol}\`.`)
  }
  if (url.username !== '' || url.password !== '') {
    throw fetchFailure('FetchRefused', 'URLs with a user name or a password are not fetched.')
  }
  return url
}

/**
 * Looks up a host once, and checks its addresses. A name is refused if one of its addresses is not public.
 * @throws FileFailure `FetchRefused`, or `FetchFailed` if the name is unknown.
 */
export async function checkedTarget(url: URL, settings: FetchSettings): Promise<FetchTarget> {
  const host = plainHost(url.hostname)
  requireAllowed(host, settings)
  const [first, ...others] = isIP(host) === 0 ? await lookUp(host, settings) : [literalAddress(host)]
  if (first === undefined) throw fetchFailure('FetchFailed', `The host \`${host}\` has no address.`)
  const notPublic = [first, ...others].find(({ address }) => !isPublicAddress(address))
  if (notPublic !== undefined && !mayBePrivate(host, settings)) {
    throw fetchFailure(
      'FetchRefused',
      `The host \`${host}\` has an address that is not public; such hosts are not fetched.`,
    )
  }
  return { url, addresses: [first, ...others] }
}

function requireAllowed(host: string, { allowHosts, denyHosts }: FetchSettings): void {
  const denied = isAmong(host, denyHosts) || (allowHosts !== undefined && !isAmong(host, allowHosts))
  if (denied) throw fetchFailure('FetchRefused', `The host \`${host}\` may not be fetched.`)
}

function mayBePrivate(host: string, { allowPrivate }: FetchSettings): boolean {
  return typeof allowPrivate === 'boolean' ? allowPrivate : isAmong(host, allowPrivate)
}

function literalAddress(host: string): HostAddress {
  return { address: host, family: isIP(host) === 6 ? 6 : 4 }
}

async function lookUp(host: string, { lookup }: FetchSettings): Promise<readonly HostAddress[]> {
  try {
    return await lookup(host)
  } catch {
    throw fetchFailure('FetchFailed', `The host \`${host}\` was not found.`)
  }
}
