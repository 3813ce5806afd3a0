import { CONTENT_SOURCES } from '#contracts/entry.js'
import type { ContentSource } from '#contracts/entry.js'
import { nodeModule } from '#util/platform/node.js'

/** A source as an option names it: `web`, `web:*.evil.test`, `workspace:inbox`. Null if it can match no source. */
export function isSourceName(text: string): boolean {
  const [kind = '', ...rest] = text.split(':')
  if (!CONTENT_SOURCES.some((each) => each === kind)) return false
  if (rest.length === 0) return true
  const name = rest.join(':')
  switch (kind) {
    case 'web':
      return webName(name) !== null
    case 'workspace':
      return name !== '' && !/[*\0]|^~/.test(name)
    case 'server':
    case 'agent':
      return name !== '' && !name.includes('*')
    default:
      // Commands and people have no names.
      return false
  }
}

/**
 * True if a source is one of `wanted`, or below one. `nameless`: a source without a name may be any of its kind, and is among those of each
 * name. Relative paths are those of the workspace `root`.
 */
export function isAmong(
  { kind, name }: Omit<ContentSource, 'sources'>,
  wanted: readonly string[],
  { nameless, root }: { readonly nameless: boolean; readonly root: string },
): boolean {
  return wanted.some((each) => {
    if (each === kind) return true
    if (!each.startsWith(`${kind}:`)) return false
    if (name === undefined) return nameless
    const above = each.slice(kind.length + 1)
    if (kind === 'workspace') return isPathBelow(name, above, root)
    if (kind === 'web') return isAddressBelow(name, above)
    return isBelow(name, above) || (kind === 'server' && URL.canParse(name) && isAddressBelow(name, above))
  })
}

function isBelow(name: string, above: string): boolean {
  return name === above || name.startsWith(above.endsWith('/') ? above : `${above}/`)
}

/** By the paths as they are written, and by the places that links lead to. */
function isPathBelow(name: string, above: string, root: string): boolean {
  const names = pathForms(name, root)
  return pathForms(above, root).some((each) => names.some((path) => isBelow(path, each)))
}

function pathForms(path: string, root: string): readonly string[] {
  const [fs, paths] = [nodeModule('node:fs'), nodeModule('node:path')]
  if (fs === undefined || paths === undefined) return [path]
  const whole = paths.resolve(root, path)
  // What is below a file that is gone is where its folder is.
  for (let folder = whole; ; folder = paths.dirname(folder)) {
    try {
      const place = paths.join(fs.realpathSync(folder), paths.relative(folder, whole))
      return place === whole ? [whole] : [whole, place]
    } catch {
      if (folder === paths.dirname(folder)) return [whole]
    }
  }
}

/** An address as an option names it. */
interface WebName {
  readonly url: URL
  /** Null: any. */
  readonly protocol: string | null
  readonly port: string | null
  /** Every host below it. */
  readonly isParent: boolean
}

/** `evil.test`, `*.evil.test`, `[::1]:8080`, `https://evil.test/a`; null for anything that is no address of the web. */
function webName(text: string): WebName | null {
  const [, protocol = '', rest = ''] = /^(https?:\/\/|)(.*)$/i.exec(text) ?? []
  const bare = rest.replace(/^[^@/?#]*@/, '')
  const isParent = bare.startsWith('*.')
  const host = bare.slice(isParent ? 2 : 0).replace(/^([\da-f]*(?::[\da-f.]*){2,})(?=\/|$)/i, '[$1]')
  const url = `${protocol || 'http://'}${host}`
  if (host === '' || host.includes('://') || /^[/?#:]/.test(host) || /[\s*\\]/.test(host) || !URL.canParse(url))
    return null
  const port = /^(?:\[[^\]]*\]|[^:/?#]*):(\d+)/.exec(host)?.[1] ?? null
  return { url: plainUrl(url), protocol: protocol === '' ? null : protocol.slice(0, -2).toLowerCase(), port, isParent }
}

/** One form of each address: `https://me@Evil.test./%61` is `https://evil.test/a`. */
function plainUrl(text: string): URL {
  const url = new URL(text)
  url.username = url.password = url.hash = ''
  url.hostname = url.hostname.replace(/\.$/, '')
  return url
}

function isAddressBelow(name: string, above: string): boolean {
  const wanted = webName(above)
  const whole = /^[a-z][\w+.-]*:\/\//i.test(name) ? name : `http://${name}`
  if (wanted === null || !URL.canParse(whole)) return name === above
  const url = plainUrl(whole)
  const { hostname } = wanted.url
  const isHost = wanted.isParent ? url.hostname.endsWith(`.${hostname}`) : url.hostname === hostname
  const isPort =
    wanted.port === null && wanted.protocol === null ? true : portOf(url) === (wanted.port ?? portOf(wanted.url))
  if (!isHost || !isPort || (wanted.protocol !== null && url.protocol !== wanted.protocol)) return false
  const [path, prefix] = [decodedPath(url), decodedPath(wanted.url)]
  return wanted.url.search === '' ? isBelow(path, prefix) : path === prefix && url.search === wanted.url.search
}

function portOf({ port, protocol }: URL): string {
  return port || (protocol === 'https:' ? '443' : '80')
}

function decodedPath({ pathname }: URL): string {
  try {
    return decodeURIComponent(pathname)
  } catch {
    return pathname
  }
}
