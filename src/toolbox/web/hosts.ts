import { list, string, where } from '../../util/shape.js'

/** Whether a host (of a parsed URL) is one of `patterns`: by name, by `*.` and the name above it, by address. */
export function isAmong(host: string, patterns: readonly string[]): boolean {
  const name = plainHost(host)
  return patterns.some((each) => {
    const wanted = each.toLowerCase()
    return wanted.startsWith('*.') ? name.endsWith(wanted.slice(1)) : name === plainHost(hostOf(wanted) ?? wanted)
  })
}

/** A host without the brackets of IPv6 and the dot that may end a full name. */
export function plainHost(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

export const hosts = list(
  where(string, 'a host such as `example.com` or `*.example.com`', isHost),
  'a list of hosts such as `example.com` or `*.example.com`',
)

/** False for a string that no host of a URL can ever equal. */
function isHost(text: string): boolean {
  return hostOf(text.replace(/^\*\./, '')) !== undefined
}

/** The host as URLs write it, or `undefined` when it is more or less than a host. */
function hostOf(text: string): string | undefined {
  const bracketed = text.includes(':') && !text.startsWith('[') ? `[${text}]` : text
  if (text === '' || /[/\\@?#*\s]/.test(text) || !URL.canParse(`http://${bracketed}/`)) return undefined
  const url = new URL(`http://${bracketed}/`)
  return url.port === '' ? url.hostname : undefined
}
