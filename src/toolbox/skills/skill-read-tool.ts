import { objectSchema } from '#util/json.js'
import type { Dirent } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'
import type { ToolOutcome, ToolSpec } from '#core/tools/tool-spec.js'
import { characterCount } from '#util/characters.js'
import { excerptOf } from '../process/capture.js'
import { isSystemError } from '../workspace/file-failure.js'
import { shownPath } from '../workspace/path-text.js'
import { SKIPPED } from './discover-skills.js'
import { skillTool } from './skill-tool.js'
import type { SkillCall } from './skill-tool.js'
import { readSkillFile, SKILL_FILE } from './skill.js'
import type { Skill } from './skill.js'

interface SkillReadArguments {
  readonly skill_name: string
  readonly path?: string
  readonly max_chars?: number
}

const MAX_CHARS = 40_000

/** `skill_read`: a file of a skill, by default its `SKILL.md`, and a list of its files. */
export function skillReadTool(skills: readonly Skill[]): ToolSpec {
  return skillTool<SkillReadArguments>(skills, {
    name: 'skill_read',
    description: 'Read the instructions of a skill, or another of its files, with a list of all files.',
    parameters: objectSchema(['skill_name'], {
      skill_name: { type: 'string', minLength: 1, description: 'Name of the skill.' },
      path: { type: 'string', minLength: 1, description: 'File in the skill. Default: its instructions.' },
      max_chars: { type: 'integer', minimum: 1, description: `Most characters of the file. Default ${MAX_CHARS}.` },
    }),
    annotations: { readOnly: true, idempotent: true, openWorld: false },
    reach: { reads: [...new Set(skills.map(({ folder }) => folder))] },
    pathField: 'path',
    run: readFromSkill,
  })
}

async function readFromSkill({ skill, args, context }: SkillCall<SkillReadArguments>): Promise<ToolOutcome> {
  const { path = SKILL_FILE, max_chars: maxChars = MAX_CHARS } = args
  const text = await readSkillFile(skill.folder, path)
  const excerpt = excerptOf(text, maxChars, 1 / 2)
  const content = [
    `# Skill: ${skill.name}`,
    ...folderLine(skill.folder, context.root),
    '',
    '## Files',
    ...(await skillTree(skill.folder)),
    '',
    `## ${shownPath(path)}`,
    excerpt.text,
  ].join('\n')
  const cut = { truncated: true, chars: characterCount(text) }
  return {
    kind: 'succeeded',
    content,
    metadata: { skill: skill.name, path: shownPath(path), ...(excerpt.truncated && cut) },
  }
}

/** The folder, if it is in the workspace: the model has no use for other paths of the host. */
function folderLine(folder: string, root: string): readonly string[] {
  const inside = relative(root, folder)
  const isInside = !isAbsolute(inside) && inside.split(sep)[0] !== '..'
  return isInside ? [`Folder: ${shownPath(inside === '' ? '.' : inside.replaceAll(sep, '/'))}`] : []
}

const MAX_ENTRIES = 200
const MAX_DEPTH = 20

/** The files below a folder, one per line, folder by folder in order; links are listed, not followed. */
async function skillTree(folder: string): Promise<string[]> {
  const lines: string[] = []
  const isComplete = await addFiles({ folder, shown: '', depth: 0 }, lines)
  return isComplete ? lines : [...lines, `(only the first ${MAX_ENTRIES} are listed)`]
}

interface Branch {
  readonly folder: string
  /** Relative to the skill: empty, or with `/` at its end. */
  readonly shown: string
  readonly depth: number
}

/** True if there was room for all files. */
async function addFiles({ folder, shown, depth }: Branch, lines: string[]): Promise<boolean> {
  for (const entry of await skillEntries(folder)) {
    if (SKIPPED.has(entry.name)) continue
    if (lines.length === MAX_ENTRIES) return false
    const name = shown + entry.name
    if (!entry.isDirectory()) {
      lines.push(shownPath(name))
      continue
    }
    const below: Branch = { folder: join(folder, entry.name), shown: `${name}/`, depth: depth + 1 }
    if (depth === MAX_DEPTH || !(await addFiles(below, lines))) return false
  }
  return true
}

/** Empty for a folder that cannot be read, or no longer exists. */
async function skillEntries(folder: string): Promise<Dirent[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries.sort((left, right) => (left.name < right.name ? -1 : 1))
  } catch (error) {
    if (isSystemError(error)) return []
    throw error
  }
}
