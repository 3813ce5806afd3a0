import { isAbsolute, relative, resolve } from 'node:path'
import type { ToolCallContent, ToolCallLocation, ToolKind } from '@agentclientprotocol/sdk'
import type { ContentPart } from '#contracts/entry.js'
import type { HarnessDescription } from '#harness/launch/describe.js'
import { cutText, firstCharacters, isLonger } from '#util/characters.js'
import { isObject, jsonOr } from '#util/json.js'

/** What is known of a tool. */
export type ToolFacts = Pick<HarnessDescription['tools'][number], 'name' | 'annotations' | 'reach'>

/** A call as an editor shows it. */
export interface ShownCall {
  readonly title: string
  readonly kind: ToolKind
  readonly rawInput: unknown
  readonly locations: ToolCallLocation[]
}

/** Longest title, in characters. */
const MAX_TITLE = 80

/** Kinds of the tools of this package. */
const KINDS: ReadonlyMap<string, ToolKind> = new Map([
  ['read', 'read'],
  ['list', 'search'],
  ['glob', 'search'],
  ['search', 'search'],
  ['jsonl_search', 'search'],
  ['write', 'edit'],
  ['edit', 'edit'],
  ['bash', 'execute'],
  ['fetch_url', 'fetch'],
  ['web_search', 'fetch'],
  ['subagent', 'think'],
  ['parallel_llm', 'think'],
  ['submit_plan', 'switch_mode'],
])

/** Arguments that name files, and lists of operations with such arguments. */
const PATHS = ['path', 'file', 'file_path', 'filename']
const LISTS = ['edits', 'files', 'paths']

/** `argumentText` is JSON; `root` is the workspace. */
export function shownCall(
  toolName: string,
  argumentText: string,
  { root, facts }: { readonly root: string; readonly facts: ToolFacts | undefined },
): ShownCall {
  const rawInput: unknown = jsonOr(argumentText, argumentText)
  const args = isObject(rawInput) ? rawInput : {}
  return {
    title: callTitle(toolName, args),
    kind: toolKind(toolName, facts),
    rawInput,
    locations: argumentPaths(args, root).map((path) => ({ path })),
  }
}

/** One line without control characters, of at most 80 characters. */
export function oneLine(text: string, most = MAX_TITLE): string {
  // A long text need not be read whole.
  const line = firstCharacters(text, most * 4)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
  return isLonger(line, most) ? cutText(line, most - 1) : line
}

/** The name and the first short argument. */
function callTitle(toolName: string, args: Readonly<Record<string, unknown>>): string {
  const [first] = [args, ...listedOperations(args)].flatMap((each) =>
    Object.values(each).filter(
      (value) => typeof value === 'string' && value.trim() !== '' && value.length <= MAX_TITLE,
    ),
  )
  return oneLine(typeof first === 'string' ? `${toolName} ${first}` : toolName)
}

function toolKind(toolName: string, facts: ToolFacts | undefined): ToolKind {
  const known = KINDS.get(toolName)
  if (known !== undefined || facts === undefined) return known ?? 'other'
  const { annotations, reach } = facts
  if (reach !== null) {
    if (reach.programs !== undefined && reach.programs.length > 0) return 'execute'
    if (reach.hosts !== undefined && reach.hosts.length > 0) return annotations.readOnly === true ? 'fetch' : 'other'
    if (reach.writes !== undefined && reach.writes.length > 0) return 'edit'
    if (reach.reads !== undefined && reach.reads.length > 0) return 'read'
  }
  return annotations.readOnly === true && annotations.openWorld !== true ? 'read' : 'other'
}

/** Absolute paths in the workspace, each once. */
function argumentPaths(args: Readonly<Record<string, unknown>>, root: string): readonly string[] {
  const named = [args, ...listedOperations(args)].flatMap((each) =>
    PATHS.map((name) => each[name]).filter((value) => typeof value === 'string'),
  )
  return [...new Set(named.flatMap((path) => pathInside(path, root) ?? []))]
}

function listedOperations(args: Readonly<Record<string, unknown>>): readonly Readonly<Record<string, unknown>>[] {
  return LISTS.flatMap((name) => {
    const items = args[name]
    return Array.isArray(items) ? items.filter(isObject) : []
  })
}

function pathInside(path: string, root: string): string | null {
  if (path === '' || path.includes('\0')) return null
  const whole = resolve(root, path)
  const way = relative(root, whole)
  return way === '..' || way.startsWith('../') || way.startsWith('..\\') || isAbsolute(way) ? null : whole
}

/** The changes of a call whose old and new texts are in its arguments. */
export function editDiffs(toolName: string, rawInput: unknown, root: string): readonly ToolCallContent[] {
  if (toolName !== 'edit' || !isObject(rawInput)) return []
  return listedOperations(rawInput).flatMap(({ path, old_string: oldText, new_string: newText }): ToolCallContent[] => {
    if (typeof path !== 'string' || typeof oldText !== 'string' || typeof newText !== 'string') return []
    const whole = pathInside(path, root)
    return whole === null ? [] : [{ type: 'diff', path: whole, oldText, newText }]
  })
}

export function textContent(text: string): ToolCallContent {
  return { type: 'content', content: { type: 'text', text } }
}

/** Images and sounds of a result; a file is named. */
export function partContent(part: ContentPart): ToolCallContent | null {
  if (part.type === 'text') return null
  if (part.type === 'file')
    return textContent(`[file${part.name === undefined ? '' : ` ${part.name}`}, ${part.mediaType}]`)
  if (!('data' in part)) return { type: 'content', content: { type: 'resource_link', name: 'image', uri: part.url } }
  const { type, data, mediaType: mimeType } = part
  return { type: 'content', content: { type, data, mimeType } }
}
