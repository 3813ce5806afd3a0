import { objectSchema } from '#util/json.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { UNCONFINED } from '../process/environment.js'
import { sandboxSettings, networkText } from '../sandbox/options.js'
import type { SandboxSettings } from '../sandbox/options.js'
import type { SkillsOptions } from './options.js'
import type { ScriptMeans, SkillRunArguments } from './run-script.js'
import { skillTool } from './skill-tool.js'
import type { Skill } from './skill.js'

const MAX_CHARS = 40_000
const TIMEOUT_SECONDS = 60

/**
 * `skill_run`: a script of a skill. Sequential, and in a sandbox if this machine has one: the skill is read-only there, the
 * workspace writable. A script has no input, and the environment of `env`; when it ends, all processes that it started are ended
 * too.
 */
export function skillRunTool(skills: readonly Skill[], options: SkillsOptions): ToolSpec {
  const settings = sandboxSettings(options, 'skills')
  let means: ScriptMeans | null = null
  return skillTool<SkillRunArguments>(skills, {
    name: 'skill_run',
    description: `Run a script of a skill, in the folder of the skill. ${confinementText(settings)}`,
    sandbox: settings.sandbox ?? 'harness',
    parameters: PARAMETERS,
    annotations: { readOnly: false, destructive: true, idempotent: false, openWorld: true },
    reach: { ...UNCONFINED, secrets: Object.keys(options.env ?? {}) },
    sequential: true,
    pathField: 'script',
    // Loaded by the first script.
    async run(call) {
      const [{ runScript }, { Sandbox }] = await Promise.all([
        import('./run-script.js'),
        import('../sandbox/sandbox.js'),
      ])
      means ??= { options, sandbox: new Sandbox(settings), maxChars: MAX_CHARS, timeoutSeconds: TIMEOUT_SECONDS }
      return runScript(call, means)
    },
  })
}

const PARAMETERS = objectSchema(['skill_name', 'script'], {
  skill_name: { type: 'string', minLength: 1, description: 'Name of the skill.' },
  script: { type: 'string', minLength: 1, description: 'File in the skill, such as `scripts/check.py`.' },
  args: { type: 'array', items: { type: 'string' }, description: 'Arguments of the script. Default none.' },
  timeout: { type: 'integer', minimum: 1, description: `Time limit in seconds. Default ${TIMEOUT_SECONDS}.` },
  max_chars: { type: 'integer', minimum: 1, description: `Most characters of its output. Default ${MAX_CHARS}.` },
})

function confinementText({ sandbox, network }: SandboxSettings): string {
  if (sandbox === 'off') return 'It runs without a sandbox.'
  const when = sandbox === 'required' ? 'It' : 'If a sandbox is available, it'
  return `${when} can write to the workspace and \`/tmp\` only, and ${networkText(network)}.`
}
