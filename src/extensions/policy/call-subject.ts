import { argumentHosts } from './argument-hosts.js'
import { absolutePaths, argumentPaths, pathPlaces } from './argument-paths.js'
import type { PathPlace, Surroundings } from './argument-paths.js'
import type { Category } from './rule.js'
import { commandLine, commandOfWords, mentionedPaths } from './shell/command-line.js'
import type { CommandLine } from './shell/command-line.js'
import { fixedWord } from './shell/word.js'
import type { ToolAnnotations, ToolReach } from '#core/tools/tool-spec.js'
import type { JsonObject } from '#util/json.js'

/** A call as rules see it. */
export interface DescribedCall {
  /** Name of the tool. */
  readonly tool: string
  /** The arguments. Default: none. */
  readonly args?: JsonObject | undefined
  readonly annotations?: ToolAnnotations | undefined
  readonly reach?: ToolReach | undefined
  /** The tool's `pathFields`: arguments that name paths, in addition to those with a usual name such as `path`. */
  readonly pathFields?: readonly string[] | undefined
  /** The tool's own rule; the answer of its function, if it is one. Default: false. */
  readonly requiresApproval?: boolean | 'always' | undefined
  /** The tool's `metadata`; that of a tool of an MCP server says so. */
  readonly metadata?: JsonObject | undefined
  /** Sources of content that is in the arguments: `web:https://example.com/`, `server:github`. Default: none. */
  readonly sources?: readonly string[] | undefined
  /** Name of the subagent that calls; null or none: the run at the top. */
  readonly agent?: string | null | undefined
  /** Absolute path of the workspace, in which relative paths are. Default: absolute paths are outside of it. */
  readonly root?: string | undefined
}

/** A call, prepared for rules. */
export interface Subject {
  readonly tool: string
  readonly category: Category
  readonly args: JsonObject
  readonly sources: readonly string[]
  readonly agent: string | null
  readonly approval: boolean | 'always'
  readonly isInteractive: boolean
  /** The places that its arguments name. */
  readonly places: readonly PathPlace[]
  /** The hosts that its arguments name; null for an address that cannot be read. */
  readonly hosts: readonly (string | null)[]
  /** The shell command that it runs; null for a tool that runs none. */
  readonly line: CommandLine | null
  /** The folder that the shell command starts in. */
  readonly folder: string
  readonly surroundings: Surroundings
}

/** Tools that only speak to the person at hand, or only look into the conversation. */
const INTERACTIVE: ReadonlySet<string> = new Set([
  ...['ask_user', 'submit_plan', 'request_access', 'recall'],
  ...['tasks', 'task_write', 'task_update', 'task_complete', 'task_check'],
])

/** @param links The paths behind links, if they were looked up. */
export function callSubject(call: DescribedCall, links?: ReadonlyMap<string, string>): Subject {
  const { tool, args = {}, sources = [], agent = null, requiresApproval = false, pathFields = [], root } = call
  const described = { ...call, name: tool }
  const category = categoryOf(described)
  const surroundings = { root, links }
  return {
    ...{ tool, category, args, sources, agent, approval: requiresApproval, surroundings },
    isInteractive: category !== 'mcp' && INTERACTIVE.has(tool),
    places: argumentPaths(args, pathFields).flatMap((path) => pathPlaces(path, surroundings)),
    hosts: argumentHosts(args),
    line: toolEffect(described) === 'execute' ? argumentLine(args) : null,
    folder: argumentFolder(args),
  }
}

/** Absolute paths in which links can lead elsewhere, for a call in a known workspace. */
export function pathsToFollow(call: DescribedCall, root: string): readonly string[] {
  const { args = {}, pathFields = [] } = call
  const { line, folder } = callSubject(call)
  const named = argumentPaths(args, pathFields).flatMap((path) => absolutePaths(path, root))
  const mentioned = line === null ? [] : mentionedPaths(line, folder)
  return [root, ...named, ...mentioned.flatMap(({ text, folder: from }) => absolutePaths(text, root, from))]
}

/** The command in the arguments of a tool that runs commands: text for a shell, or a list of words. */
function argumentLine({ command, cmd }: JsonObject): CommandLine | null {
  const given = command ?? cmd
  if (typeof given === 'string') return commandLine(given)
  if (!Array.isArray(given) || given.length === 0) return null
  return commandOfWords((given as readonly unknown[]).map((word) => fixedWord(String(word))))
}

function argumentFolder({ cwd }: JsonObject): string {
  return typeof cwd === 'string' ? cwd : '.'
}

/** The members of a `ToolSpec` that decide its category. */
export interface Categorised {
  readonly name: string
  readonly annotations?: ToolAnnotations | undefined
  readonly reach?: ToolReach | undefined
  readonly metadata?: JsonObject | undefined
}

/**
 * The category of a tool: `mcp` if it comes from an MCP server; else by its declared reach and annotations; else by the words of
 * its name. A tool about which nothing is known is `other`.
 */
export function categoryOf(tool: Categorised): Category {
  return isFromServer(tool) ? 'mcp' : toolEffect(tool)
}

/** The same without regard to where the tool comes from. */
function toolEffect({ name, annotations, reach }: Omit<Categorised, 'metadata'>): Category {
  const declared = declaredEffect(annotations, reach)
  if (declared !== null) return declared
  const byName = effectByName(name)
  // A tool that changes something is not what its name says.
  return annotations?.readOnly === false && (byName === 'read' || byName === 'network') ? 'other' : byName
}

function isFromServer({ metadata }: Categorised): boolean {
  return metadata?.['source'] === 'mcp'
}

function declaredEffect(annotations: ToolAnnotations = {}, reach: ToolReach = {}): Category | null {
  const { readOnly, openWorld } = annotations
  if (isFilled(reach.programs)) return 'execute'
  if (isFilled(reach.writes) && readOnly !== true) return 'edit'
  if (isFilled(reach.hosts) || (readOnly === true && openWorld === true)) return 'network'
  if (readOnly === true) return 'read'
  if (isFilled(reach.reads)) return readOnly === undefined ? 'read' : null
  return readOnly === false && openWorld === false ? 'edit' : null
}

function isFilled(list: readonly string[] | undefined): boolean {
  return list !== undefined && list.length > 0
}

/** Words of names, the most dangerous first. */
const WORDS: Readonly<Record<Exclude<Category, 'mcp' | 'other'>, readonly string[]>> = {
  execute: ['bash', 'shell', 'sh', 'exec', 'execute', 'terminal', 'powershell', 'command', 'cmd', 'script'],
  edit: ['write', 'edit', 'patch', 'delete', 'remove', 'rename', 'move', 'append'],
  network: ['fetch', 'http', 'https', 'url', 'web', 'browse', 'download', 'upload'],
  read: ['read', 'list', 'glob', 'grep', 'search', 'view'],
}
const CATEGORY_WORDS = Object.entries(WORDS) as [Category, readonly string[]][]

function effectByName(name: string): Category {
  const words = name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
  return CATEGORY_WORDS.find(([, known]) => words.some((word) => known.includes(word)))?.[0] ?? 'other'
}
