import { isIP } from 'node:net'
import { isPublicAddress } from './addresses.js'
import { fetchFailure, shownUrl } from './failure.js'
import { isAmong, plainHost } from './hosts.js'
import type { FetchSettings, HostAddress } from './options.js'

const MAX_URL_CHARS = 8_192

/** Where a request goes: the addresses have been checked, and no others are connected to. */
export interface Target {
  readonly url: URL
  readonly addresses: readonly [HostAddress, ...HostAddress[]]
}

/** @throws FileFailure `InvalidInput` for what is no address of a web page. */
export function parsedUrl(text: string, base?: URL): URL {
  if (text.length > MAX_URL_CHARS)
    throw fetchFailure('InvalidInput', `The URL is longer than ${MAX_URL_CHARS} characters.`)
  const url = URL.canParse(text, base?.href) ? new URL(text, base) : undefined
  if (url === undefined)
    throw fetchFailure('InvalidInput', `\`${shownUrl(text)}\` is no URL. Give it whole, with \`https://\`.`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw fetchFailure('FetchRefused', `Only \`http\` and \`https\` URLs are fetched, not \`${url.protocol}\`.`)
  }
  if (url.username !== '' || url.password !== '') {
    throw fetchFailure('FetchRefused', 'URLs with a user name or a password are not fetched.')
  }
  return url
}

/**
 * Looks a host up, once, and checks what was found. A name with an address that is not public among its own is refused
 * as a whole.
 * @throws FileFailure `FetchRefused`, or `FetchFailed` when the name is not known.
 */
export async function targetOf(url: URL, settings: FetchSettings): Promise<Target> {
  const host = plainHost(url.hostname)
  requireAllowed(host, settings)
  const [first, ...others] = isIP(host) === 0 ? await lookedUp(host, settings) : [literal(host)]
  if (first === undefined) throw fetchFailure('FetchFailed', `The host \`${host}\` has no address.`)
  const hidden = [first, ...others].find(({ address }) => !isPublicAddress(address))
  if (hidden !== undefined && !mayBePrivate(host, settings)) {
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

function literal(host: string): HostAddress {
  return { address: host, family: isIP(host) === 6 ? 6 : 4 }
}

async function lookedUp(host: string, { lookup }: FetchSettings): Promise<readonly HostAddress[]> {
  try {
    return await lookup(host)
  } catch {
    throw fetchFailure('FetchFailed', `The host \`${host}\` was not found.`)
  }
}
