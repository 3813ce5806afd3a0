import { list, string, where } from '#util/validate.js'

/** True if a host (of a parsed URL) matches one of `patterns`: a name, `*.` and a parent name, or an address. */
export function isAmong(host: string, patterns: readonly string[]): boolean {
  const name = plainHost(host)
  return patterns.some((each) => {
    const wanted = each.toLowerCase()
    return wanted.startsWith('*.') ? name.endsWith(wanted.slice(1)) : name === plainHost(exactHost(wanted) ?? wanted)
  })
}

/** A host without the brackets of IPv6 and without the dot at the end of a full name. */
export function plainHost(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

export const hosts = list(
  where(string, 'a host such as `example.com` or `*.example.com`', isHost),
  'a list of hosts such as `example.com` or `*.example.com`',
)

/** False for a string that cannot equal a host of a URL. */
function isHost(text: string): boolean {
  return exactHost(text.replace(/^\*\./, '')) !== undefined
}

/** The host in the form of URLs; `undefined` if it is not exactly a host. */
function exactHost(text: string): string | undefined {
  const bracketed = text.includes(':') && !text.startsWith('[') ? `[${text}]` : text
  if (text === '' || /[/\\@?#*\s]/.test(text) || !URL.canParse(`http://${bracketed}/`)) return undefined
  const url = new URL(`http://${bracketed}/`)
  return url.port === '' ? url.hostname : undefined
}
