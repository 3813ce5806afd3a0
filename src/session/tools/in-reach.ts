import type { ToolContext, ToolReach, ToolSpec } from '#core/tools/tool-spec.js'
import { homedir } from 'node:os'
import { isAbsolute, join, relative, resolve } from 'node:path'

/** Exactly one of these. */
interface Wanted {
  readonly path?: string
  readonly host?: string
  readonly command?: string
  readonly tool?: string
}

/**
 * Whether a tool of the run could use what a request for access names, once it is allowed. A rule for a path or host never allows
 * a command, and a tool that does not say what it reaches could reach anything, unless its world is closed.
 */
export function isInReach(request: Wanted, { tools, root }: ToolContext): boolean {
  if (tools === undefined) return true
  const { path, host, command, tool } = request
  const all = [...tools.values()]
  if (tool !== undefined) return tool.includes('*') || tools.has(tool)
  if (command !== undefined) return all.some((each) => mayReach(each, ({ programs = [] }) => programs.length > 0))
  const plain = all.filter(({ reach }) => (reach?.programs ?? []).length === 0)
  if (host !== undefined) return plain.some((each) => mayReach(each, ({ hosts = [] }) => hosts.some(hostFits(host))))
  const wanted = globFolder(path ?? '', root)
  const fits = (given: string): boolean => {
    const place = resolve(root, given)
    return isIn(place, wanted) || isIn(wanted, place)
  }
  return plain.some((each) => mayReach(each, ({ reads = [], writes = [] }) => [...reads, ...writes].some(fits)))
}

function mayReach({ reach, annotations }: ToolSpec, covers: (reach: ToolReach) => boolean): boolean {
  return reach === undefined ? annotations?.openWorld !== false : covers(reach)
}

function hostFits(host: string): (given: string) => boolean {
  const [name, wanted = name] = /^(?:\*\.)?(.*?)\.?$/.exec(host.toLowerCase()) ?? [host]
  return (given) => {
    const own = given.toLowerCase()
    return own === '*' || own === wanted || (own.startsWith('*.') && `.${wanted}`.endsWith(own.slice(1)))
  }
}

/** The folder or file that a glob begins with. */
function globFolder(glob: string, root: string): string {
  const fixed = /^[^*?[{]*/.exec(glob)?.[0] ?? ''
  const folder = fixed === glob ? glob : fixed.replace(/[^/]*$/, '')
  return /^~(?=$|\/)/.test(folder) ? join(homedir(), folder.slice(1)) : resolve(root, folder)
}

function isIn(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !/^\.\.[\\/]/.test(way) && !isAbsolute(way)
}
