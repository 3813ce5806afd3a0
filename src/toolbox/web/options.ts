import { HarnessError } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import { unknownKey } from '../../util/unknown-key.js'
import { checkHosts } from './hosts.js'

/** Finds the addresses of a name; rejects when it has none. */
export type Lookup = (hostname: string) => Promise<readonly HostAddress[]>

export interface HostAddress {
  readonly address: string
  readonly family: 4 | 6
}

/** What `fetchUrl` can be told; every field is optional. */
export interface FetchUrlOptions {
  /**
   * Hosts that may be fetched: `example.com`, `*.example.com` for all names below it, an address. A host of a redirect
   * must be among them too. Default: all.
   */
  readonly allowHosts?: readonly string[]
  /** Hosts that may not be fetched, in the same form; they win over `allowHosts`. Default none. */
  readonly denyHosts?: readonly string[]
  /**
   * Whether addresses that are not public may be fetched: private, loopback, link-local and the like. As a list, only for
   * these hosts. Default false.
   */
  readonly allowPrivate?: boolean | readonly string[]
  /** Most that is read of a body, unpacked, in bytes; the rest of a text is left out. Default 5 MiB. */
  readonly maxBytes?: number
  /** Time for everything, redirects and conversion included, in ms. Default 30,000. */
  readonly timeoutMs?: number
  /** Redirects that are followed. Default 5. */
  readonly maxRedirects?: number
  /** Longest text that the model gets, in characters; the whole of a longer one is kept in a file. Default 40,000. */
  readonly maxChars?: number
  /** Default `thinharness`. */
  readonly userAgent?: string
  /** Folder for texts that are too long, inside `root`. Default `.thinharness/outputs`. */
  readonly outputDir?: string
  /** Folder that `outputDir` lies in. Default: the harness's root. */
  readonly root?: string
  /** Finds the addresses of a name. Default: as the system does. */
  readonly lookup?: Lookup
}

export interface FetchSettings {
  readonly allowHosts: readonly string[] | undefined
  readonly denyHosts: readonly string[]
  readonly allowPrivate: boolean | readonly string[]
  readonly maxBytes: number
  readonly timeoutMs: number
  readonly maxRedirects: number
  readonly maxChars: number
  readonly userAgent: string
  readonly lookup: Lookup
}

const KNOWN = [
  ...['allowHosts', 'denyHosts', 'allowPrivate', 'maxBytes', 'timeoutMs', 'maxRedirects', 'maxChars', 'userAgent'],
  ...['outputDir', 'root', 'lookup'],
]

/** @throws HarnessError `invalid_options`, naming the option, what was expected and what came. */
export function checkFetchOptions(options: FetchUrlOptions): FetchSettings {
  requireKnown(options)
  const { allowHosts, denyHosts = [], allowPrivate = false, maxRedirects = 5, userAgent = 'thinharness' } = options
  for (const key of ['maxBytes', 'timeoutMs', 'maxChars'] as const) checkWhole(key, options[key] ?? 1, 1)
  checkWhole('maxRedirects', maxRedirects, 0)
  if (allowHosts !== undefined) checkHosts('allowHosts', allowHosts)
  checkHosts('denyHosts', denyHosts)
  if (typeof allowPrivate !== 'boolean') checkHosts('allowPrivate', allowPrivate)
  if (typeof userAgent !== 'string' || !/^[\x20-\x7e]+$/.test(userAgent)) {
    throw invalid('Expected `userAgent` of `fetchUrl` to be a line of ASCII text.')
  }
  return {
    allowHosts,
    denyHosts,
    allowPrivate,
    maxBytes: options.maxBytes ?? 5_242_880,
    timeoutMs: options.timeoutMs ?? 30_000,
    maxRedirects,
    maxChars: options.maxChars ?? 40_000,
    userAgent,
    lookup: options.lookup ?? systemLookup,
  }
}

async function systemLookup(hostname: string): Promise<readonly HostAddress[]> {
  const { lookup } = await import('node:dns/promises')
  const found = await lookup(hostname, { all: true, order: 'verbatim' })
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }))
}

function requireKnown(options: unknown): void {
  if (!isObject(options)) throw invalid('Expected `fetchUrl` to be given an object of options.')
  const unknown = unknownKey(options, KNOWN, 'option of `fetchUrl`')
  if (unknown !== undefined) throw invalid(unknown)
  const { lookup } = options
  if (lookup !== undefined && typeof lookup !== 'function') {
    throw invalid('Expected `lookup` of `fetchUrl` to be a function.')
  }
}

/** The longest that a timer can wait; also more than any body. */
const MOST = 2 ** 31 - 1

function checkWhole(key: string, value: unknown, least: number): void {
  if (Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= MOST) return
  throw invalid(
    `Expected \`${key}\` of \`fetchUrl\` to be a whole number from ${least} to ${MOST}, got \`${String(value)}\`.`,
  )
}

function invalid(message: string): HarnessError {
  return new HarnessError('invalid_options', message)
}
