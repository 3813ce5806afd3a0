import { isSystemError, fileFailureOf } from '../workspace/file-failure.js'
import { escapeControls } from '../workspace/path-text.js'
import { SKILL_FILE, readSkillFile } from './skill.js'
import type { Skill } from './skill.js'
import { firstCharacters } from '#util/characters.js'
import { isObject } from '#util/json.js'
import type { Dirent } from 'node:fs'
import { readdir, realpath } from 'node:fs/promises'
import { join, basename } from 'node:path'

export interface Discovery {
  /** Folders with a `SKILL.md`: absolute, links resolved, each once, in order. */
  readonly folders: readonly string[]
  readonly warnings: readonly string[]
}

/** Folders without skills that may be very large. */
export const SKIPPED = new Set(['.git', 'node_modules', '__pycache__', '.venv'])

const MAX_DEPTH = 6
const MAX_FOLDERS = 2_000

/**
 * Finds skills in folders (absolute), level by level, sorted by name. Folders in a skill are parts of it, not skills. A link
 * to a folder is followed only directly in one of `dirs`.
 */
export async function discoverSkills(dirs: readonly string[]): Promise<Discovery> {
  const search = new Search()
  for (const dir of dirs) await search.run(dir)
  return search
}

interface Place {
  readonly path: string
  readonly depth: number
}

class Search implements Discovery {
  readonly folders: string[] = []
  readonly warnings: string[] = []
  readonly #seen = new Set<string>()

  async run(dir: string): Promise<void> {
    const open: Place[] = [{ path: dir, depth: 0 }]
    for (let place = open.shift(); place !== undefined; place = open.shift()) {
      if (this.#seen.size >= MAX_FOLDERS) {
        this.warnings.push(`${dir}: more than ${MAX_FOLDERS} folders; the rest was not searched.`)
        return
      }
      open.push(...(await this.#visit(place)))
    }
  }

  async #visit({ path, depth }: Place): Promise<Place[]> {
    try {
      const folder = await realpath(path)
      if (this.#seen.has(folder)) return []
      this.#seen.add(folder)
      const entries = await readdir(folder, { withFileTypes: true })
      if (entries.some(({ name }) => name === SKILL_FILE)) {
        this.folders.push(folder)
        return []
      }
      if (depth === MAX_DEPTH) return []
      const below = entries.filter((entry) => mayContainSkills(entry, depth)).map(({ name }) => name)
      return below.sort().map((name) => ({ path: join(folder, name), depth: depth + 1 }))
    } catch (error) {
      if (!isSystemError(error)) throw error
      // A link to a file or to a missing path is not a folder.
      if (depth === 0) this.warnings.push(`${path}: the folder cannot be read (${error.code ?? 'unknown error'}).`)
      return []
    }
  }
}

function mayContainSkills(entry: Dirent, depth: number): boolean {
  if (SKIPPED.has(entry.name)) return false
  return entry.isDirectory() || (depth === 0 && entry.isSymbolicLink())
}

export interface SkillRead {
  /** `undefined` if it cannot be used; then a warning states the reason. */
  readonly skill: Skill | undefined
  readonly warnings: readonly string[]
}

const FIELDS = ['name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools']
/** Supported here, although not in the specification. */
const HIDDEN = 'disable-model-invocation'
const MAX_NAME_CHARS = 64
/** A longer name is ignored. */
const LONGEST_NAME_CHARS = 200
const MAX_DESCRIPTION_CHARS = 1_024

/** The skill of a folder. Violations of the format are warnings; a skill is omitted only if it cannot be used. */
export async function readSkill(folder: string): Promise<SkillRead> {
  const dropped = (problem: string): SkillRead => ({
    skill: undefined,
    warnings: [`The skill was omitted: ${problem}.`],
  })
  const text = await skillText(folder)
  if (!text.ok) return dropped(text.problem)
  const parsed = await parseFrontMatter(text.text)
  if (!parsed.ok) return dropped(parsed.problem)
  const { fields } = parsed
  const description = oneLine(fields['description'])
  if (description === '') return dropped('it has no `description`')
  const name = skillName(fields, folder)
  const warnings = [
    ...nameProblems(oneLine(fields['name']), basename(folder)),
    ...fieldProblems(fields),
    ...(description.length > MAX_DESCRIPTION_CHARS
      ? [`\`description\` has more than ${MAX_DESCRIPTION_CHARS} characters: the rest is omitted.`]
      : []),
  ]
  const hidden = fields[HIDDEN] === true
  return { skill: { name, description: firstCharacters(description, MAX_DESCRIPTION_CHARS), folder, hidden }, warnings }
}

async function skillText(folder: string): Promise<{ ok: true; text: string } | { ok: false; problem: string }> {
  try {
    return { ok: true, text: await readSkillFile(folder, SKILL_FILE) }
  } catch (error) {
    const failure = fileFailureOf(error, SKILL_FILE)
    if (failure === undefined) throw error
    return { ok: false, problem: failure.message }
  }
}

function skillName(fields: Readonly<Record<string, unknown>>, folder: string): string {
  const name = oneLine(fields['name'])
  return name === '' || name.length > LONGEST_NAME_CHARS ? oneLine(basename(folder)) : name
}

function nameProblems(name: string, folder: string): string[] {
  if (name === '') return ['`name` is missing: the name of its folder is used.']
  if (name.length > LONGEST_NAME_CHARS) return ['`name` is too long to be used: the name of its folder is used.']
  const problems = [
    ...(name.length > MAX_NAME_CHARS ? [`\`name\` has more than ${MAX_NAME_CHARS} characters.`] : []),
    ...(/^[\p{Ll}\p{Lo}\d-]+$/u.test(name)
      ? []
      : ['`name` has characters other than small letters, digits and hyphens.']),
    ...(/^-|-$|--/.test(name) ? ['`name` begins or ends with a hyphen, or has two in a row.'] : []),
  ]
  return name.normalize('NFKC') === folder.normalize('NFKC')
    ? problems
    : [...problems, '`name` differs from its folder.']
}

function fieldProblems(fields: Readonly<Record<string, unknown>>): string[] {
  const unknown = Object.keys(fields).filter((key) => !FIELDS.includes(key) && key !== HIDDEN)
  const notStrings = ['license', 'compatibility', 'allowed-tools'].filter(
    (key) => fields[key] !== undefined && typeof fields[key] !== 'string',
  )
  const { metadata } = fields
  const shown = unknown.slice(0, 10).map((key) => `\`${oneLine(key).slice(0, 60)}\``)
  return [
    ...(unknown.length > 0 ? [`Unknown fields: ${shown.join(', ')}.`] : []),
    ...notStrings.map((key) => `\`${key}\` is not a string.`),
    ...(metadata === undefined || isObject(metadata) ? [] : ['`metadata` is not a map.']),
  ]
}

/** Names and descriptions must not add lines to the list that the model reads. */
function oneLine(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' ? escapeControls(value.trim().replace(/\s+/g, ' ')) : ''
}

export type FrontMatter =
  | { readonly ok: true; readonly fields: Readonly<Record<string, unknown>>; readonly body: string }
  | { readonly ok: false; readonly problem: string }

/** The fields between the `---` lines at the start of a file, and the text after them. Unquoted colons are repaired. */
export async function parseFrontMatter(text: string): Promise<FrontMatter> {
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/)
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === '---')
  if (lines[0]?.trimEnd() !== '---' || end === -1)
    return { ok: false, problem: 'it has no front matter between `---` lines' }
  const block = lines.slice(1, end)
  const fields =
    (await frontMatterFields(block.join('\n'))) ?? (await frontMatterFields(block.map(withQuotes).join('\n')))
  if (fields === undefined) return { ok: false, problem: 'its front matter is not YAML with fields' }
  return { ok: true, fields, body: lines.slice(end + 1).join('\n') }
}

async function frontMatterFields(block: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  const { parse } = await import('yaml')
  try {
    const value: unknown = parse(block, { schema: 'core', logLevel: 'error', prettyErrors: false, uniqueKeys: false })
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** `description: Use it: now` is not YAML, but common. */
function withQuotes(line: string): string {
  const [, key, value] = /^([A-Za-z][\w-]*):[ \t]+([^\s"'|>[{&*!%@`].*)$/.exec(line) ?? []
  return key === undefined || value === undefined || !value.includes(':')
    ? line
    : `${key}: ${JSON.stringify(value.trim())}`
}
