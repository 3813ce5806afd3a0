import type { ToolContext, ToolOutcome, ToolSpec } from '#core/tools/tool-spec.js'
import { cutText } from '#util/characters.js'
import { FileFailure, failedOutcome } from '../workspace/file-failure.js'
import { shownPath } from '../workspace/path-text.js'
import type { Skill } from './skill.js'

export interface SkillCall<Arguments> {
  readonly skill: Skill
  /** Checked against the tool's schema by the tool boundary. */
  readonly args: Arguments
  readonly context: ToolContext
}

export interface SkillToolSpec<Arguments> extends Omit<ToolSpec, 'call'> {
  /** The argument that holds a path in the skill. */
  readonly pathField: string
  readonly run: (call: SkillCall<Arguments>) => Promise<ToolOutcome>
}

/** A tool for the skill that its argument `skill_name` names; file failures become failed results. */
export function skillTool<Arguments>(
  skills: readonly Skill[],
  { run, pathField, ...spec }: SkillToolSpec<Arguments>,
): ToolSpec {
  return {
    ...spec,
    pathFields: [pathField],
    async call(args, context) {
      const { skill_name: name, [pathField]: path } = args
      context.signal.throwIfAborted()
      try {
        return await run({ skill: skillNamed(skills, name), args: args as Arguments, context })
      } catch (error) {
        context.signal.throwIfAborted()
        return failedOutcome(error, shownPath(typeof path === 'string' ? path : 'SKILL.md'))
      }
    },
  }
}

const MAX_NAMES_CHARS = 4_000

function skillNamed(skills: readonly Skill[], name: unknown): Skill {
  const skill = skills.find((each) => each.name === name)
  if (skill !== undefined) return skill
  const known = cutText(skills.map((each) => each.name).join(', '), MAX_NAMES_CHARS)
  throw new FileFailure('NotFound', `unknown skill: ${shownPath(String(name))}; available: ${known}`)
}
