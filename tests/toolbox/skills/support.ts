import { loadSkills } from '#toolbox/skills/load-skills.js'
import type { LoadedSkills } from '#toolbox/skills/load-skills.js'
import type { SkillsOptions } from '#toolbox/skills/options.js'
import type { Envelope } from '#core/tools/boundary/envelope.js'
import type { ToolContext } from '#core/tools/tool-spec.js'
import type { JsonObject } from '#util/json.js'
import { call, folderWith } from '../support.js'

export const HEADING =
  'Skills: instructions for special tasks. Call `skill_read` with the name of a skill before you use it.'

export function skillText(name: string, description = `What ${name} does.`, body = `# ${name}\n`): string {
  return `---\nname: ${name}\ndescription: ${description}\n---\n\n${body}`
}

/** Skills of a fresh folder that has these files; without a sandbox, so that every machine runs their scripts the same. */
export async function skillsWith(
  files: Readonly<Record<string, string>>,
  options: Partial<SkillsOptions> = {},
): Promise<LoadedSkills & { readonly dir: string }> {
  const dir = await folderWith(files)
  return { ...(await loadSkills({ dirs: [dir], sandbox: 'off', ...options })), dir }
}

/** Calls one of the two tools as a model would. */
export async function callSkill(
  { tools }: LoadedSkills,
  name: 'skill_read' | 'skill_run',
  args: JsonObject,
  context: Partial<ToolContext> = {},
): Promise<Envelope> {
  const spec = tools.find((tool) => tool.name === name)
  if (spec === undefined) throw new Error(`There is no \`${name}\`.`)
  return call(spec, args, context)
}
