import { excerptOf } from '../process/capture.js'
import { environmentOf } from '../process/environment.js'
import type { Environment } from '../process/environment.js'
import { findProgram } from '../process/find-program.js'
import { processGroupsProblem } from '../process/process-group.js'
import type { ProcessEnd } from '../process/run-process.js'
import { refusedNote } from '../sandbox/options.js'
import { inSandbox, ownFolderIn, runWithin, SANDBOX_HOME, UNCONFINED } from '../sandbox/sandbox.js'
import type { OpenSandbox, Sandbox } from '../sandbox/sandbox.js'
import { FileFailure, invalidInput, isMissing, isSystemError } from '../workspace/file-failure.js'
import { shownPath } from '../workspace/path-text.js'
import { workspaceOf, withFile } from '../workspace/workspace.js'
import type { SkillsOptions } from './options.js'
import type { SkillCall } from './skill-tool.js'
import type { Skill } from './skill.js'
import { workspaceOfSkill } from './skill.js'
import type { ToolOutcome } from '#core/tools/tool-spec.js'
import type { JsonObject } from '#util/json.js'
import { lstat, mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, extname, dirname, join, relative, sep } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

/** Arguments of `skill_run`, checked against its schema. */
export interface SkillRunArguments {
  readonly skill_name: string
  readonly script: string
  readonly args?: readonly string[]
  readonly timeout?: number
  readonly max_chars?: number
}

/** The same for all scripts. */
export interface ScriptMeans {
  readonly options: SkillsOptions
  readonly sandbox: Sandbox
  /** Defaults of a call. */
  readonly maxChars: number
  readonly timeoutSeconds: number
}

/** Runs a script of a skill. */
export async function runScript(call: SkillCall<SkillRunArguments>, means: ScriptMeans): Promise<ToolOutcome> {
  requireRunnable(call.args.args ?? [])
  const copy = await checkedScript(call.skill, call.args.script)
  try {
    return await inSandbox(async () => {
      const sandbox = await sandboxFor(call, copy, means)
      if ('kind' in sandbox) return sandbox
      try {
        return await runCopy(call, copy, { ...means, open: sandbox })
      } finally {
        await sandbox.close()
      }
    })
  } finally {
    await copy.remove()
  }
}

/** The sandbox of one script; `form` is `none` if it runs without one. A failure if it must not. */
async function sandboxFor(
  { skill, context }: SkillCall<SkillRunArguments>,
  copy: ScriptCopy,
  { sandbox }: ScriptMeans,
): Promise<OpenSandbox | ToolOutcome> {
  const mode = sandbox.modeFor(context.sandbox ?? 'auto')
  if (mode === 'off') return UNCONFINED
  const { root } = workspaceOf(NO_OPTIONS, context.root)
  const ownFolder = await ownFolderIn(root)
  const opened = await sandbox.open({ root, ownFolder, given: [copy.folder], readPaths: [skill.folder] })
  if (mode === 'auto' || opened.form !== 'none') return opened
  const problem = opened.problem ?? 'it does not work here'
  return scriptFailure(
    'SandboxUnavailable',
    `The script was not executed: it requires a sandbox, which is not available: ${problem}.`,
    {},
  )
}

const NO_OPTIONS = {}

async function runCopy(
  { skill, args, context }: SkillCall<SkillRunArguments>,
  { path, isExecutable }: ScriptCopy,
  { options, maxChars, timeoutSeconds, open }: ScriptMeans & { readonly open: OpenSandbox },
): Promise<ToolOutcome> {
  const { script, args: scriptArgs = [], timeout = timeoutSeconds } = args
  const isConfined = open.form !== 'none'
  const environment = { ...environmentOf(options.env), ...(isConfined && homeVariable(options)) }
  const [program = path, ...first] = await runnerFor(path, options.runners, environment)
  if (program === path && !isExecutable) return startFailure('EACCES', [script, ...scriptArgs])
  const before = program === path ? [] : [...first, path]
  const timeoutMs = Math.min(timeout * 1_000, options.maxTimeoutMs ?? 600_000)
  const end = await runWithin(open, {
    ...open.wrap({ program, args: [...before, ...scriptArgs], cwd: skill.folder, environment }),
    timeoutMs,
    maxOutputBytes: options.maxOutputBytes ?? 10_485_760,
    merged: true,
    signal: context.signal,
    onLines: (stream, output) => context.progress({ kind: 'shell_output', stream, output }),
  })
  const cmd = program === path ? [script, ...scriptArgs] : [basename(program), ...first, script, ...scriptArgs]
  const outcome = scriptOutcome(end, {
    ...{ cmd, timeoutMs, cancelled: context.signal.aborted },
    maxChars: args.max_chars ?? maxChars,
  })
  return withSandbox(outcome, open)
}

function homeVariable({ env = {} }: SkillsOptions): Environment {
  const { HOME = SANDBOX_HOME, TMPDIR = '/tmp' } = env
  return { HOME, TMPDIR }
}

/** The form in the metadata, and refused hosts for the model. */
function withSandbox(outcome: ToolOutcome, { form, problem, refusedHosts }: OpenSandbox): ToolOutcome {
  if (outcome.kind !== 'succeeded' && outcome.kind !== 'failed') return outcome
  const note = refusedNote(refusedHosts)
  return {
    ...outcome,
    content: note === '' ? outcome.content : `${outcome.content}\n${note}`,
    metadata: {
      ...outcome.metadata,
      sandbox: form,
      ...(problem !== undefined && { sandbox_problem: problem }),
      ...(refusedHosts.length > 0 && { refused_hosts: refusedHosts }),
    },
  }
}

function requireRunnable(scriptArgs: readonly string[]): void {
  const problem = processGroupsProblem()
  if (problem !== undefined) throw new FileFailure('RunnerMissing', `Scripts cannot be run on this system: ${problem}.`)
  if (!scriptArgs.some((arg) => arg.includes('\0'))) return
  throw invalidInput('An argument contains a NUL character, which no program accepts.')
}

/** @throws PathValidationError if it is outside the skill; FileFailure `NotFound`, or if it is not a file. */
async function checkedScript({ folder }: Skill, script: string): Promise<ScriptCopy> {
  try {
    return await copyOfScript(folder, script)
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

function scriptOutcome(end: ProcessEnd, { cmd, maxChars, timeoutMs, cancelled }: Run): ToolOutcome {
  if (end.kind === 'unstarted') return startFailure(end.code, cmd)
  const excerpt = excerptOf(stripVTControlCharacters(end.stdout.text()), maxChars)
  const cut = excerpt.truncated ? { truncated: true } : {}
  const output = excerpt.text === '' ? '' : `\n${excerpt.text}`
  if (cancelled) {
    return scriptFailure('Cancelled', `The script was cancelled and killed.${output}`, { cmd, ...cut })
  }
  if (end.stopped !== null) {
    const seconds = timeoutMs / 1_000
    return scriptFailure('Timeout', `skill script timed out after ${seconds}s${output}`, {
      timeout: seconds,
      cmd,
      ...cut,
    })
  }
  const code = end.exitCode === null ? `none (ended by ${end.signal ?? 'a signal'})` : end.exitCode
  const content = `exit_code: ${code}${output}`
  const metadata = { returncode: end.exitCode, cmd, duration_ms: end.durationMs, ...cut }
  return end.exitCode === 0 ? { kind: 'succeeded', content, metadata } : scriptFailure('NonZeroExit', content, metadata)
}

function startFailure(code: string, cmd: readonly string[]): ToolOutcome {
  const hint = code === 'EACCES' ? ': it is not executable, and there is no runner for its extension' : ''
  return scriptFailure('ScriptNotStarted', `The script could not be started (${code})${hint}.`, { cmd })
}

function scriptFailure(errorType: string, content: string, metadata: JsonObject): ToolOutcome {
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

/** A script that was checked, in a private folder: nothing else can replace it before it runs. */
export interface ScriptCopy {
  /** The copy. */
  readonly path: string
  /** The private folder. */
  readonly folder: string
  readonly isExecutable: boolean
  remove(): Promise<void>
}

/** Names that programs look for in the folders above a script. */
const LOOKED_FOR = [
  ...['node_modules', 'package.json', 'tsconfig.json', 'jsconfig.json', 'deno.json', 'bunfig.toml'],
  ...['pyproject.toml', 'uv.lock', '.python-version', '.venv', 'go.mod', 'go.sum', 'go.work', 'vendor'],
]

/**
 * Copies a script with the bytes that were checked. Around the copy, links lead to the other files of the skill, and to the
 * files that programs look for above it, so that relative paths and imports work as before.
 * @param script A path in the skill, as the model gave it.
 * @throws PathValidationError if it is outside the skill; FileFailure if it is not a file; an error of the system if it is missing.
 */
export async function copyOfScript(skillFolder: string, script: string): Promise<ScriptCopy> {
  const workspace = workspaceOfSkill(skillFolder)
  const checked = await withFile(workspace, { policy: workspace.readPolicy, path: script }, async (file) => ({
    path: file.path,
    bytes: await file.handle.readFile(),
    mode: Number(file.stats.mode) & 0o777,
  }))
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'thinharness-script-'))
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true })
  try {
    const path = join(folder, checked.path)
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await linkAround(folder, checked.path, skillFolder)
    await writeFile(path, checked.bytes, { mode: checked.mode | 0o400, flag: 'wx' })
    return { path, folder, isExecutable: (checked.mode & 0o111) !== 0, remove: removeFolder }
  } catch (error) {
    await removeFolder()
    throw error
  }
}

async function linkAround(copies: string, script: string, skillFolder: string): Promise<void> {
  let below = script
  for (let folder = dirname(script); ; folder = dirname(folder)) {
    const isInSkill = folder === skillFolder || relative(skillFolder, folder).split(sep)[0] !== '..'
    const names = isInSkill ? await readdir(folder) : LOOKED_FOR
    for (const name of names) {
      const target = join(folder, name)
      if (name !== basename(below) && (isInSkill || (await pathExists(target))))
        await symlink(target, join(copies, target))
    }
    if (folder === dirname(folder)) return
    below = folder
  }
}

async function pathExists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (isSystemError(error)) return false
    throw error
  }
}
