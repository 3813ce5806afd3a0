import { basename, extname } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { ToolOutcome } from '../../tools/outcome.js'
import type { ToolSpec } from '../../tools/spec.js'
import type { JsonObject } from '../../util/json.js'
import { environmentOf, UNCONFINED } from '../process/environment.js'
import type { Environment } from '../process/environment.js'
import { excerptOf } from '../process/excerpt.js'
import { findProgram } from '../process/find-program.js'
import { processGroupsProblem } from '../process/process-group.js'
import { runProcess } from '../process/run-process.js'
import type { ProcessEnd } from '../process/run-process.js'
import { FileFailure, invalidInput, isMissing } from '../workspace/failure.js'
import { shownPath } from '../workspace/path-text.js'
import { withFile } from '../workspace/workspace.js'
import type { SkillsOptions } from './options.js'
import { skillTool } from './skill-tool.js'
import type { SkillCall } from './skill-tool.js'
import { workspaceOfSkill } from './skill.js'
import type { Skill } from './skill.js'

interface SkillRunArguments {
  readonly skill_name: string
  readonly script: string
  readonly args?: readonly string[]
  readonly timeout?: number
  readonly max_chars?: number
}

const MAX_CHARS = 40_000
const TIMEOUT_SECONDS = 60

/**
 * `skill_run`: a script of a skill. Sequential, not in a sandbox: a script has the rights of the user of this process. It has
 * no input, and the environment of `env`; when it ends, all processes that it started are ended too.
 */
export function skillRunTool(skills: readonly Skill[], options: SkillsOptions): ToolSpec {
  return skillTool<SkillRunArguments>(skills, {
    name: 'skill_run',
    description: 'Run a script of a skill, in the folder of the skill and without a sandbox.',
    parameters: PARAMETERS,
    annotations: { readOnly: false, destructive: true, idempotent: false, openWorld: true },
    reach: { ...UNCONFINED, secrets: Object.keys(options.env ?? {}) },
    sequential: true,
    pathField: 'script',
    run: (call) => runScript(call, options),
  })
}

const PARAMETERS = {
  type: 'object',
  properties: {
    skill_name: { type: 'string', minLength: 1, description: 'Name of the skill.' },
    script: { type: 'string', minLength: 1, description: 'File in the skill, such as `scripts/check.py`.' },
    args: { type: 'array', items: { type: 'string' }, description: 'Arguments of the script. Default none.' },
    timeout: { type: 'integer', minimum: 1, description: `Time limit in seconds. Default ${TIMEOUT_SECONDS}.` },
    max_chars: { type: 'integer', minimum: 1, description: `Most characters of its output. Default ${MAX_CHARS}.` },
  },
  required: ['skill_name', 'script'],
  additionalProperties: false,
} as const

async function runScript(call: SkillCall<SkillRunArguments>, options: SkillsOptions): Promise<ToolOutcome> {
  const { skill, args, context } = call
  const { script, args: scriptArgs = [], timeout = TIMEOUT_SECONDS } = args
  requireRunnable(scriptArgs)
  const path = await scriptAt(skill, script)
  const environment = environmentOf(options.env)
  const [program = path, ...first] = await runnerFor(path, options.runners, environment)
  const before = program === path ? [] : [...first, path]
  const timeoutMs = Math.min(timeout * 1_000, options.maxTimeoutMs ?? 600_000)
  const end = await runProcess({
    program,
    args: [...before, ...scriptArgs],
    cwd: skill.folder,
    environment,
    timeoutMs,
    maxOutputBytes: options.maxOutputBytes ?? 10_485_760,
    merged: true,
    signal: context.signal,
    onLines: (stream, output) => context.progress({ kind: 'shell_output', stream, output }),
  })
  const cmd = program === path ? [script, ...scriptArgs] : [basename(program), ...first, script, ...scriptArgs]
  return outcomeOf(end, { cmd, maxChars: args.max_chars ?? MAX_CHARS, timeoutMs, cancelled: context.signal.aborted })
}

function requireRunnable(scriptArgs: readonly string[]): void {
  const problem = processGroupsProblem()
  if (problem !== undefined) throw new FileFailure('RunnerMissing', `Scripts cannot be run on this system: ${problem}.`)
  if (!scriptArgs.some((arg) => arg.includes('\0'))) return
  throw invalidInput('An argument contains a NUL character, which no program accepts.')
}

/** @throws PathValidationError if it is outside the skill; FileFailure `NotFound`, or if it is not a file. */
async function scriptAt({ folder }: Skill, script: string): Promise<string> {
  const workspace = workspaceOfSkill(folder)
  try {
    return await withFile(workspace, { policy: workspace.readPolicy, path: script }, async ({ path }) => path)
  } catch (error) {
    if (isMissing(error)) throw new FileFailure('NotFound', `script not found: ${shownPath(script)}`)
    throw error
  }
}

interface Run {
  /** As called, with paths in the skill. */
  readonly cmd: readonly string[]
  readonly maxChars: number
  readonly timeoutMs: number
  readonly cancelled: boolean
}

function outcomeOf(end: ProcessEnd, { cmd, maxChars, timeoutMs, cancelled }: Run): ToolOutcome {
  if (end.kind === 'unstarted') return startFailure(end.code, cmd)
  const excerpt = excerptOf(stripVTControlCharacters(end.stdout.text()), maxChars)
  const cut = excerpt.truncated ? { truncated: true } : {}
  const output = excerpt.text === '' ? '' : `\n${excerpt.text}`
  if (cancelled) {
    return failure('Cancelled', `The script was cancelled and killed.${output}`, { cmd, ...cut })
  }
  if (end.stopped !== null) {
    const seconds = timeoutMs / 1_000
    return failure('Timeout', `skill script timed out after ${seconds}s${output}`, { timeout: seconds, cmd, ...cut })
  }
  const code = end.exitCode === null ? `none (ended by ${end.signal ?? 'a signal'})` : end.exitCode
  const content = `exit_code: ${code}${output}`
  const metadata = { returncode: end.exitCode, cmd, duration_ms: end.durationMs, ...cut }
  return end.exitCode === 0 ? { kind: 'succeeded', content, metadata } : failure('NonZeroExit', content, metadata)
}

function startFailure(code: string, cmd: readonly string[]): ToolOutcome {
  const hint = code === 'EACCES' ? ': it is not executable, and there is no runner for its extension' : ''
  return failure('ScriptNotStarted', `The script could not be started (${code})${hint}.`, { cmd })
}

function failure(errorType: string, content: string, metadata: JsonObject): ToolOutcome {
  return { kind: 'failed', errorType, content, retry: false, metadata }
}

/** A program and its first arguments; empty for a script that is executed directly. */
export type Runner = readonly string[]

const PYTHON = [['uv', 'run'], ['python3'], ['python']]
const javascript = (): readonly Runner[] => [['node'], [process.execPath]]
const typescript = (): readonly Runner[] => [...(knowsTypeScript() ? [[process.execPath]] : []), ['tsx'], ['bun']]

/** From Node 22.18. */
function knowsTypeScript(): boolean {
  return Boolean(Reflect.get(process.features, 'typescript'))
}

/** The first available runner is determined for each call. */
const RUNNERS: ReadonlyMap<string, () => readonly Runner[]> = new Map([
  ['.py', () => PYTHON],
  ['.sh', () => [['bash'], ['sh']]],
  ['.bash', () => [['bash']]],
  ['.js', javascript],
  ['.mjs', javascript],
  ['.cjs', javascript],
  ['.ts', typescript],
  ['.mts', typescript],
  ['.cts', typescript],
  ['.go', () => [['go', 'run']]],
])

/**
 * The runner of a script, its program as an absolute path.
 * @throws FileFailure `RunnerMissing`, which names the possible programs.
 */
export async function runnerFor(
  script: string,
  own: SkillsOptions['runners'],
  environment: Environment,
): Promise<Runner> {
  const extension = extname(script).toLowerCase()
  const candidates = own?.[extension] === undefined ? (RUNNERS.get(extension)?.() ?? []) : [own[extension]]
  for (const [name = '', ...first] of candidates) {
    const program = await findProgram(name, environment['PATH'] ?? '')
    if (program !== undefined) return [program, ...first]
  }
  if (candidates.length === 0) return []
  const names = candidates.map(([name]) => `\`${String(name)}\``).join(' or ')
  throw new FileFailure('RunnerMissing', `\`${extension}\` scripts cannot be run on this machine: install ${names}.`)
}
