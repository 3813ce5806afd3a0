import type { JsonObject } from '#util/json.js'
import type { ToolAnnotations, ToolReach } from '#core/tools/tool-spec.js'
import { categoryOf, toolEffect } from './category.js'
import { argumentHosts } from './hosts.js'
import { absolutePaths, argumentPaths, pathPlaces } from './paths.js'
import type { PathPlace, Surroundings } from './paths.js'
import type { Category } from './rule.js'
import { commandLine, commandOfWords } from './shell/command-line.js'
import type { CommandLine } from './shell/command-line.js'
import { mentionedPaths } from './shell/mentions.js'
import { fixedWord } from './shell/word.js'

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
