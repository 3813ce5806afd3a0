import type { JsonObject } from '#util/json.js'
import { eachString, snakeCase } from './argument-paths.js'
import { matchesWildcard } from './wildcard.js'

/** Names of arguments that hold addresses or hosts. */
const HOST_KEY = /(?:^|_)(?:urls?|uris?|hosts?|host_?names?|domains?|endpoints?|origins?|href|website)$/

/** The hosts that arguments name; null for an address that cannot be read. */
export function argumentHosts(args: JsonObject): readonly (string | null)[] {
  const hosts: (string | null)[] = []
  eachString(args, (text, key) => {
    if (/^\s*file:/i.test(text)) return
    if (HOST_KEY.test(snakeCase(key)) || /^\s*(?:https?|wss?):/i.test(text)) hosts.push(addressHost(text))
  })
  return hosts
}

/**
 * The host of an address or of itself, in the one form that connections use: lower case, ASCII, without user, port and final dot.
 * Null if there is none.
 */
export function addressHost(text: string): string | null {
  const address = text.trim()
  const own = urlHostName(address)
  if (own !== null) return canonicalHost(own)
  if (/^(?:[a-z][a-z\d+.-]*:\/\/|https?:|wss?:)/i.test(address)) return null
  return urlHostName(`http://${address.replace(/^[/\\]+/, '')}`)?.replace(/\.$/, '') ?? null
}

function urlHostName(address: string): string | null {
  try {
    const { hostname } = new URL(address)
    return hostname === '' ? null : hostname
  } catch {
    return null
  }
}

/** Schemes that the platform does not know keep their hosts as they are written. */
function canonicalHost(host: string): string | null {
  return urlHostName(`http://${host}`)?.replace(/\.$/, '') ?? null
}

/** The `host` of a rule. */
export interface HostPattern {
  readonly isLiteral: boolean
  fits(host: string): boolean
}

export function hostPattern(glob: string): HostPattern {
  const labels = glob.toLowerCase().replace(/\.$/, '').split('.')
  if (!glob.includes('*')) {
    const host = addressHost(glob) ?? glob
    return { isLiteral: true, fits: (given) => given === host }
  }
  const ascii = labels.map((label) => (/^[\x21-\x7e]*$/.test(label) ? label : (addressHost(label) ?? label)))
  return { isLiteral: false, fits: matchesWildcard(ascii.join('.')) }
}
