import { parse } from '#contracts/parse.js'
import { boolean, either, functionOf, integer, matching, milliseconds, partial, string } from '#util/validate.js'
import type { Complete } from '#util/validate.js'
import { hosts } from './host-list.js'

/** Finds the addresses of a name; rejects if it has none. */
export type Lookup = (hostname: string) => Promise<readonly HostAddress[]>

export interface HostAddress {
  readonly address: string
  readonly family: 4 | 6
}

/** Options of `fetchUrl`; all optional. */
export interface FetchUrlOptions {
  /**
   * Hosts that may be fetched: `example.com`, `*.example.com` for all names below it, an address. A host of a redirect
   * must be among them too. Default: all.
   */
  readonly allowHosts?: readonly string[] | undefined
  /** Hosts that may not be fetched, in the same form; they win over `allowHosts`. Default none. */
  readonly denyHosts?: readonly string[] | undefined
  /**
   * True if addresses that are not public may be fetched: private, loopback, link-local and the like. As a list, only for
   * these hosts. Default false.
   */
  readonly allowPrivate?: boolean | readonly string[] | undefined
  /** Most bytes of a body that are read, decompressed; the rest of a text is left out. Default 5 MiB. */
  readonly maxBytes?: number | undefined
  /** Time for everything, redirects and conversion included, in ms. Default 30,000. */
  readonly timeoutMs?: number | undefined
  /** Redirects that are followed. Default 5. */
  readonly maxRedirects?: number | undefined
  /** Most characters that the model gets; a longer text is kept whole in a file. Default 40,000. */
  readonly maxChars?: number | undefined
  /** Default `thinharness`. */
  readonly userAgent?: string | undefined
  /** Folder for texts that are too long, inside `root`. Default `.thinharness/outputs`. */
  readonly outputDir?: string | undefined
  /** The folder that contains `outputDir`. Default: the harness's root. */
  readonly root?: string | undefined
  /** Finds the addresses of a name. Default: the system's resolver. */
  readonly lookup?: Lookup | undefined
}

export type FetchSettings = FetchUrlOptions & typeof DEFAULTS

const DEFAULTS: Complete<Omit<FetchUrlOptions, 'allowHosts' | 'outputDir' | 'root'>> = {
  denyHosts: [],
  allowPrivate: false,
  maxBytes: 5_242_880,
  timeoutMs: 30_000,
  maxRedirects: 5,
  maxChars: 40_000,
  userAgent: 'thinharness',
  lookup: systemLookup,
}

const OPTIONS = partial<FetchUrlOptions>({
  allowHosts: hosts,
  denyHosts: hosts,
  allowPrivate: either(boolean, hosts),
  maxBytes: integer(1),
  timeoutMs: milliseconds,
  maxRedirects: integer(0),
  maxChars: integer(1),
  userAgent: matching(/^[\x20-\x7e]+$/, 'a line of ASCII characters'),
  outputDir: string,
  root: string,
  lookup: functionOf(),
})

/** The options with their defaults. Throws `invalid_options`, naming the option, the expected and the given value. */
export function fetchSettings(options: FetchUrlOptions): FetchSettings {
  return { ...DEFAULTS, ...parse(OPTIONS, options, '`fetchUrl`') }
}

/** The resolver of the system. */
export async function systemLookup(hostname: string): Promise<readonly HostAddress[]> {
  const { lookup } = await import('node:dns/promises')
  const addresses = await lookup(hostname, { all: true, order: 'verbatim' })
  return addresses.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }))
}
