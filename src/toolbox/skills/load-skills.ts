import { join, resolve } from 'node:path'
import { invalidOptions } from '#contracts/parse.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { didYouMean } from '#util/suggest.js'
import { expandHome } from '../workspace/path-text.js'
import { discoverSkills, readSkill } from './discover-skills.js'
import { parseSkillsOptions } from './options.js'
import type { SkillsOptions } from './options.js'
import { skillReadTool } from './skill-read-tool.js'
import { skillRunTool } from './skill-run-tool.js'
import { SKILL_FILE } from './skill.js'
import type { Skill } from './skill.js'

/** The skills of some folders, ready for a harness. */
export interface LoadedSkills {
  /** All skills, including hidden ones. */
  readonly skills: readonly Skill[]
  /** For the system prompt: one line per skill. Empty if there are no visible skills. */
  readonly summary: string
  /** `skill_read` and `skill_run`; none if there are no visible skills. */
  readonly tools: readonly ToolSpec[]
  /** Problems with folders and skills; a skill that cannot be used is omitted. Each begins with a path. */
  readonly warnings: readonly string[]
}

/**
 * Loads skills in the Agent Skills format: their names and descriptions now, everything else when the model requests it.
 * @param root Base of relative `dirs`.
 * @throws HarnessError `invalid_options`: for options, for two skills with the same name, for a selected one that is missing.
 */
export async function loadSkills(given: SkillsOptions, root = process.cwd()): Promise<LoadedSkills> {
  const options = parseSkillsOptions(given)
  const { folders, warnings: general } = await discoverSkills(options.dirs.map((dir) => resolve(root, expandHome(dir))))
  const warnings = [...general]
  const all: Skill[] = []
  for (const folder of folders) {
    const read = await readSkill(folder)
    if (read.skill !== undefined) all.push(read.skill)
    warnings.push(...read.warnings.map((warning) => `${join(folder, SKILL_FILE)}: ${warning}`))
  }
  requireUnique(all)
  const skills = selectSkills(all, options.selected)
  const visible = skills.filter(({ hidden }) => !hidden)
  const tools = visible.length === 0 ? [] : [skillReadTool(visible), skillRunTool(visible, options)]
  return { skills, summary: skillsSummary(visible), tools, warnings }
}

function requireUnique(skills: readonly Skill[]): void {
  for (const [index, skill] of skills.entries()) {
    const first = skills.find(({ name }) => name === skill.name)
    if (first === undefined || skills.indexOf(first) === index) continue
    const files = [first, skill].map(({ folder }) => `\`${join(folder, SKILL_FILE)}\``).join(' and ')
    throw invalidOptions(`Two skills are named \`${skill.name}\`: ${files}.`)
  }
}

function selectSkills(skills: readonly Skill[], selected: readonly string[] | undefined): readonly Skill[] {
  if (selected === undefined) return skills
  const repeated = selected.find((name, index) => selected.indexOf(name) !== index)
  if (repeated !== undefined) {
    throw invalidOptions(`\`selected\` of \`skills\` names \`${repeated}\` twice.`)
  }
  return selected.map((name) => {
    const skill = skills.find((each) => each.name === name)
    if (skill !== undefined) return skill
    const known = skills.map((each) => each.name)
    throw invalidOptions(`There is no skill \`${name}\` to select.${didYouMean(name, known)}`)
  })
}

function skillsSummary(skills: readonly Skill[]): string {
  if (skills.length === 0) return ''
  const heading =
    'Skills: instructions for special tasks. Call `skill_read` with the name of a skill before you use it.'
  return [heading, ...skills.map(({ name, description }) => `- ${name} - ${description}`)].join('\n')
}
