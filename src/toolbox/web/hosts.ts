import { HarnessError } from '../../contracts/errors.js'

/** Whether a host (of a parsed URL) is one of `hosts`: by name, by `*.` and the name above it, by address. */
export function isAmong(host: string, hosts: readonly string[]): boolean {
  const name = plainHost(host)
  return hosts.some((each) => {
    const wanted = each.toLowerCase()
    return wanted.startsWith('*.') ? name.endsWith(wanted.slice(1)) : name === plainHost(hostOf(wanted) ?? wanted)
  })
}

/** A host without the brackets of IPv6 and the dot that may end a full name. */
export function plainHost(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

/** @throws HarnessError `invalid_options` for what no host of a URL can ever equal. */
export function checkHosts(key: string, hosts: unknown): void {
  const items: readonly unknown[] = Array.isArray(hosts) ? hosts : [undefined]
  for (const item of items) {
    if (typeof item === 'string' && hostOf(item.replace(/^\*\./, '')) !== undefined) continue
    const shown = typeof item === 'string' ? `\`${item}\`` : 'something else'
    throw new HarnessError(
      'invalid_options',
      `Expected \`${key}\` of \`fetchUrl\` to be a list of hosts such as \`example.com\` or \`*.example.com\`, got ${shown}.`,
    )
  }
}

/** The host as URLs write it, or `undefined` when it is more or less than a host. */
function hostOf(text: string): string | undefined {
  const bracketed = text.includes(':') && !text.startsWith('[') ? `[${text}]` : text
  if (text === '' || /[/\\@?#*\s]/.test(text) || !URL.canParse(`http://${bracketed}/`)) return undefined
  const url = new URL(`http://${bracketed}/`)
  return url.port === '' ? url.hostname : undefined
}
