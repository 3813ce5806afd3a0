import { homedir } from 'node:os'
import { isAbsolute, normalize, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { JsonObject, JsonValue } from '#util/json.js'
import { braceAlternatives, globOf } from '#util/glob.js'
import { isObject } from '#util/json.js'

/** A file or folder that a call names: the strings that stand for it, relative to the workspace and absolute. */
export type PathPlace = readonly string[]

/** The state of the file system when a call is decided. */
export interface Surroundings {
  /** Absolute path of the workspace; undefined: not known. */
  readonly root?: string | undefined
  /** For an absolute path, the one behind its links. */
  readonly links?: ReadonlyMap<string, string> | undefined
}

/** The places that a path stands for: as it is written, and behind its links. A call that is allowed must be allowed all of them. */
export function pathPlaces(text: string, { root, links }: Surroundings, folder = '.'): readonly PathPlace[] {
  return pathSpellings(text).flatMap((path) => {
    if (root === undefined) return [[plainSlashes(normalize(isAbsolute(path) ? path : `${folder}/${path}`))]]
    const absolute = resolve(root, folder, path)
    const real = links?.get(absolute) ?? absolute
    const here = placeAt(absolute, root)
    return real === absolute ? [here] : [here, placeAt(real, links?.get(root) ?? root)]
  })
}

/** The absolute paths in which links are to be looked up. */
export function absolutePaths(text: string, root: string, folder = '.'): readonly string[] {
  return pathSpellings(text).map((path) => resolve(root, folder, path))
}

/** `~` is the home folder for a shell, and a name for other programs. */
function pathSpellings(text: string): readonly string[] {
  const path = fromUrl(text)
  return /^~(?=$|[/\\])/.test(path) ? [path, homedir() + path.slice(1)] : [path]
}

function fromUrl(text: string): string {
  if (!/^file:/i.test(text)) return text
  try {
    return fileURLToPath(new URL(text))
  } catch {
    return text.replace(/^file:\/*/i, '/')
  }
}

function placeAt(absolute: string, root: string): PathPlace {
  return [plainSlashes(relative(root, absolute) || '.'), plainSlashes(absolute)]
}

function plainSlashes(path: string): string {
  const plain = path.replaceAll('\\', '/').normalize('NFC')
  return plain.length > 1 && plain.endsWith('/') ? plain.slice(0, -1) : plain
}

/** Names of arguments that hold paths. */
const PATH_KEY =
  /(?:^|_)(?:paths?|files?|file_?names?|folders?|dir|dirs|directory|directories|cwd|src|dest|destination)$/

/** The paths that arguments name: under a usual name or one of the tool's `pathFields`, at any depth, and `file:` addresses. */
export function argumentPaths(args: JsonObject, fields: readonly string[]): readonly string[] {
  const found: string[] = []
  eachString(args, (text, key) => {
    const isPath = fields.includes(key) || PATH_KEY.test(snakeCase(key)) || /^file:/i.test(text)
    if (isPath && text.length <= 4_096) found.push(text)
  })
  return found
}

/** Every string in arguments, with the name of the member that it is or is in. */
export function eachString(value: JsonObject, visit: (text: string, key: string) => void): void {
  const open: [JsonValue, string][] = [[value, '']]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [each, key] = next
    if (typeof each === 'string') visit(each, key)
    else if (Array.isArray(each)) for (const member of each as readonly JsonValue[]) open.push([member, key])
    else if (isObject(each)) {
      for (const [name, member] of Object.entries(each)) if (member !== undefined) open.push([member, name])
    }
  }
}

export function snakeCase(name: string): string {
  return name.replace(/([a-z\d])([A-Z])/g, '$1_$2').toLowerCase()
}

/** The `path` of a rule. */
export interface PathPattern {
  /** Fixed text at its beginning and its end. */
  readonly prefix: string
  readonly suffix: string
  fits(place: PathPlace): boolean
}

/** `folder/**` is the folder too. Without regard to case, `.ENV` is `.env`. */
export function pathPattern(glob: string, ignoreCase: boolean): PathPattern {
  const home = /^~(?=$|\/)/.test(glob) ? plainSlashes(homedir()) + glob.slice(1) : glob
  const text = foldCase(home.endsWith('/') && home.length > 1 ? `${home}**` : home, ignoreCase).normalize('NFC')
  const alternatives = braceAlternatives(text).map(pathSegments)
  const folders = alternatives.flatMap((each) => (each.at(-1) === '**' ? [each.slice(0, -1)] : []))
  const compiled = globOf([...alternatives, ...folders.filter(({ length }) => length > 0)])
  return {
    prefix: /^[^*?[\]{}\\]*/.exec(text)?.[0] ?? '',
    suffix: /\*\*$/.test(text) ? '' : (/[^*?[\]{}\\]*$/.exec(text)?.[0] ?? ''),
    fits: (place) =>
      place.some(
        (path) =>
          pathSegments(foldCase(path, ignoreCase)).reduce((state, name) => compiled.step(state, name), compiled.start)
            .matched,
      ),
  }
}

export function foldCase(text: string, ignoreCase: boolean): string {
  return ignoreCase ? text.toLowerCase() : text
}

/** The root of the machine is the name `/`. */
function pathSegments(path: string): readonly string[] {
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  return path.startsWith('/') ? ['/', ...names] : names.length === 0 ? ['.'] : names
}
