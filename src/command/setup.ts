import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Harness as HarnessOf, HarnessOptions, LogStore, RunOptions } from '../index.js'
import { CommandError } from './exit-codes.js'
import { modelOf } from './default-model.js'

type AnyHarness = HarnessOf<unknown>

/** The options of commands that run something. */
export interface RunFlags {
  readonly runs: string
  readonly config?: string
  readonly model?: string
  readonly root?: string
  readonly tools?: string
  readonly yes?: boolean
  readonly maxRequests?: number
  readonly maxCost?: number
  readonly output?: string
}

/** A harness and what each of its runs is given. */
export interface Setup {
  readonly harness: AnyHarness
  readonly options: RunOptions
  /** The config file exports the harness itself: limits of the command are no limits of its conversations. */
  readonly isExported: boolean
}

const CONFIG_FILES = ['thinharness.config.ts', 'thinharness.config.js', 'thinharness.config.mjs']

/**
 * The harness of a command: of the module that `--config` names or that the folder has, else one for the folder, whose file tools
 * may read and ask before they change something (`--yes`: they do not ask).
 * `stored`: what the command that began the run stored with it.
 */
export async function openSetup(flags: RunFlags, log: LogStore, stored: Partial<RunFlags> = {}): Promise<Setup> {
  const config = await configOf(flags)
  const { tools = stored.tools, yes = stored.yes ?? false, root = stored.root, output = stored.output } = flags
  // A run that goes on keeps its limits.
  const { maxRequests = stored.maxRequests, maxCost = stored.maxCost } = flags
  const given = Object.entries({ tools, root, output, maxRequests, maxCost, yes })
  const command = Object.fromEntries(given.filter(([, value]) => value !== undefined))
  const limits = {
    ...(maxRequests !== undefined && { modelRequests: maxRequests }),
    ...(maxCost !== undefined && { costUsd: maxCost }),
  }
  const model = modelOf(flags.model, config === null)
  const options = {
    ...{ log, limits, metadata: { command } },
    ...(model !== undefined && { model }),
    ...(root !== undefined && { root: resolve(root) }),
  }
  const { Harness } = await import('../index.js')
  if (config instanceof Harness) {
    if (tools !== undefined || output !== undefined)
      throw new CommandError('`--tools` and `--output` belong to a harness of its own: the config file exports one.')
    return { harness: config as AnyHarness, options, isExported: true }
  }
  const own = config === null ? await folderOptions(yes, root) : (config as HarnessOptions<unknown>)
  const builtinTools = tools === undefined ? {} : { builtinTools: tools.split(',').map((name) => name.trim()) }
  const outputType = output === undefined ? {} : { outputType: schemaOf(output) }
  const place = root === undefined ? {} : { root: resolve(root) }
  const choice = { ...(model !== undefined && { model }), ...place }
  const all = { ...own, ...choice, ...builtinTools, ...outputType, limits: { ...own.limits, ...limits } }
  const harness = new Harness(all as HarnessOptions<unknown>)
  return { harness, options, isExported: false }
}

/** Reading is allowed; whatever else a tool does is asked about. */
async function folderOptions(yes: boolean, root = '.'): Promise<HarnessOptions<unknown>> {
  if (yes) return { root }
  const { policy } = await import('../extensions/policy/index.js')
  return { root, use: [policy([{ decision: 'allow', category: 'read' }], { default: 'ask' })] }
}

/**
 * The harnesses of a conversation by the names of its modes: the export `modes` of the config file, of which the first is the mode of
 * a new conversation. Without it, the one harness that the command has. Throws a `CommandError` for a flag that these harnesses would
 * not keep.
 */
export async function openModes(flags: RunFlags, setup: Setup): Promise<Readonly<Record<string, AnyHarness>>> {
  const path = configPath(flags)
  const { modes } = path === null ? {} : await importConfig(path)
  const given = [
    ['--model', flags.model],
    ['--max-cost', flags.maxCost],
    ['--max-requests', flags.maxRequests],
  ] as const
  const [lost] = given.find(([, value]) => value !== undefined) ?? []
  if (lost !== undefined && (setup.isExported || modes !== undefined))
    throw new CommandError(`\`${lost}\` has no effect on a harness that the config file exports: set it there.`)
  if (modes === undefined) return { default: setup.harness }
  const { Harness } = await import('../index.js')
  const isRight = typeof modes === 'object' && modes !== null && Object.keys(modes).length > 0
  if (isRight && Object.values(modes).every((mode) => mode instanceof Harness)) return modes as never
  throw new CommandError(`Expected the export \`modes\` of \`${path}\` to be an object of harnesses, by their names.`)
}

function configPath({ config }: RunFlags): string | null {
  const path = config ?? CONFIG_FILES.find((name) => existsSync(name))
  if (path === undefined) return null
  if (!existsSync(path)) throw new CommandError(`There is no config file \`${path}\`.`)
  return path
}

/** The default export of a module: a harness, or its options. */
async function configOf(flags: RunFlags): Promise<unknown> {
  const path = configPath(flags)
  if (path === null) return null
  const { default: exported } = await importConfig(path)
  if (typeof exported === 'object' && exported !== null) return exported
  throw new CommandError(
    `Expected the default export of \`${path}\` to be a harness or its options, got ${typeof exported}.`,
  )
}

interface ConfigModule {
  readonly default?: unknown
  readonly modes?: unknown
}

async function importConfig(path: string): Promise<ConfigModule> {
  const url = pathToFileURL(resolve(path)).href
  try {
    return (await import(url)) as ConfigModule
  } catch (error) {
    const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
    if (code !== 'ERR_UNKNOWN_FILE_EXTENSION') throw error
    const message = `\`${path}\` is TypeScript, which Node ${process.versions.node} does not run: use Node 22.18 or newer, or install \`tsx\` and run \`node --import tsx\`.`
    throw new CommandError(message)
  }
}

function schemaOf(path: string): unknown {
  if (!existsSync(path)) throw new CommandError(`There is no schema file \`${path}\`.`)
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    throw new CommandError(`\`${path}\` is not JSON: expected a JSON Schema.`)
  }
}

/** The settings that a command stored with a run. */
export function storedFlags(metadata: Readonly<Record<string, unknown>>): Partial<RunFlags> {
  const { command } = metadata
  return typeof command === 'object' && command !== null ? command : {}
}

/** A model that a reference names; one of a config file may be anything. */
export function isReference(name: string): boolean {
  return /^(anthropic|openai|openrouter|google):/.test(name)
}
