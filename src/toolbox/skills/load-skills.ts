import { join, resolve } from 'node:path'
import { invalidOptions } from '../../contracts/parse.js'
import type { ToolSpec } from '../../tools/spec.js'
import { didYouMean } from '../../util/suggest.js'
import { expandHome } from '../workspace/path-text.js'
import { discoverSkills } from './discover.js'
import { parseSkillsOptions } from './options.js'
import type { SkillsOptions } from './options.js'
import { readSkill } from './read-skill.js'
import { skillReadTool } from './skill-read.js'
import { skillRunTool } from './skill-run.js'
import { SKILL_FILE } from './skill.js'
import type { Skill } from './skill.js'

/** The skills of some folders, ready for a harness. */
export interface LoadedSkills {
  /** All of them, those that the model is not told of too. */
  readonly skills: readonly Skill[]
  /** For the system prompt: what there is, in one line each. Empty when there is nothing to tell. */
  readonly summary: string
  /** `skill_read` and `skill_run`; none when there is nothing to tell. */
  readonly tools: readonly ToolSpec[]
  /** What was wrong with folders and skills; a skill that could not be used is left out. Each begins with a path. */
  readonly warnings: readonly string[]
}

/**
 * Loads skills in the Agent Skills format: their names and descriptions now, the rest when the model asks for it.
 * @param root What relative `dirs` are relative to.
 * @throws HarnessError `invalid_options`: for options, for two skills of one name, for a selected one that is not there.
 */
export async function loadSkills(given: SkillsOptions, root = process.cwd()): Promise<LoadedSkills> {
  const options = parseSkillsOptions(given)
  const { folders, warnings: general } = await discoverSkills(options.dirs.map((dir) => resolve(root, expandHome(dir))))
  const warnings = [...general]
  const found: Skill[] = []
  for (const folder of folders) {
    const read = await readSkill(folder)
    if (read.skill !== undefined) found.push(read.skill)
    warnings.push(...read.warnings.map((warning) => `${join(folder, SKILL_FILE)}: ${warning}`))
  }
  requireUnique(found)
  const skills = selectedOf(found, options.selected)
  const told = skills.filter(({ hidden }) => !hidden)
  const tools = told.length === 0 ? [] : [skillReadTool(told), skillRunTool(told, options)]
  return { skills, summary: summaryOf(told), tools, warnings }
}

function requireUnique(skills: readonly Skill[]): void {
  const byName = new Map<string, Skill>()
  for (const skill of skills) {
    const other = byName.get(skill.name)
    if (other !== undefined) {
      const files = [other, skill].map(({ folder }) => `\`${join(folder, SKILL_FILE)}\``).join(' and ')
      throw invalidOptions(`Two skills are named \`${skill.name}\`: ${files}.`)
    }
    byName.set(skill.name, skill)
  }
}

function selectedOf(skills: readonly Skill[], selected: readonly string[] | undefined): readonly Skill[] {
  if (selected === undefined) return skills
  const repeated = selected.find((name, index) => selected.indexOf(name) !== index)
  if (repeated !== undefined) {
    throw invalidOptions(`\`selected\` of \`skills\` names \`${repeated}\` twice.`)
  }
  return selected.map((name) => {
    const skill = skills.find((each) => each.name === name)
    if (skill !== undefined) return skill
    const known = skills.map((each) => each.name)
    throw invalidOptions(`There is no skill \`${name}\` to be selected.${didYouMean(name, known)}`)
  })
}

function summaryOf(skills: readonly Skill[]): string {
  if (skills.length === 0) return ''
  const heading = 'Skills: instructions for special tasks. Call `skill_read` with the name of one before you use it.'
  return [heading, ...skills.map(({ name, description }) => `- ${name} - ${description}`)].join('\n')
}
