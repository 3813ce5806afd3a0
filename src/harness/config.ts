import { resolve } from 'node:path'
import type { Model, ModelSettings, StructuredOutputMode } from '../contracts/model.js'
import type { ModelRef } from '../contracts/model-reference.js'
import {
  FLAG,
  OBJECT,
  TEXT,
  anything,
  checkModel,
  checkOptions,
  checkSettings,
  having,
  invalid,
  listOf,
  nameOf,
  oneOf,
  wholeNumber,
} from './option-checks.js'
import type { OptionRule } from './option-checks.js'
import type { FollowOptions } from '../run/log/log.js'
import { BUILTIN_TOOL_NAMES, DEFAULT_TOOL_NAMES } from './options.js'
import type {
  BuiltinToolName,
  DepsFactory,
  ForkOptions,
  HarnessOptions,
  ReplayOptions,
  ResumeOptions,
  RunOptions,
} from './options.js'
import { FINAL_RESULT } from '../output/format.js'
import type { OutputFormat } from '../output/format.js'
import { outputFormat } from '../output/schema.js'
import { outputSchemaOf } from '../output/several.js'
import type { Prices } from '../money/prices.js'
import { ownBudgets, ownPrices } from './budget-checks.js'
import type { Budgets } from './budget-checks.js'
import { contentOf } from '../contracts/entry.js'
import { SeamSet, checkedExtensions } from '../run/extension/seam-set.js'
import type { ForkPoint } from '../run/replay/fork.js'
import type { InputMessage } from '../run/stream/input.js'
import type { RunLog } from '../run/log/log.js'
import { parseProvenance } from '../run/provenance/options.js'
import type { ProvenanceOptions } from '../run/provenance/options.js'
import { memoryLog } from '../store/memory-log.js'
import type { RunRules } from '../run/machine/rules.js'
import type { SigningKey } from '../run/core/signature.js'
import type { SkillsOptions } from '../toolbox/skills/options.js'
import type { OutputType, OutputValidator } from '../tools/output-type.js'
import { parseSubagents } from '../tools/subagent-options.js'
import type { SubagentSpec } from '../tools/subagent-options.js'
import type { ToolSource } from '../tools/source.js'
import type { SpawnOptions, ToolSpec } from '../tools/spec.js'
import { isObject } from '../util/json.js'
import type { JsonObject } from '../util/json.js'
import { didYouMean } from '../util/suggest.js'

/** A harness's options, checked and with their defaults. */
export interface Config<Output> extends Budgets {
  readonly model: ModelRef | Model | null
  readonly root: string
  readonly provenance: ProvenanceOptions | null
  /** The workspace is named to the model. */
  readonly namesRoot: boolean
  readonly instructions: string
  readonly builtinTools: readonly BuiltinToolName[]
  readonly tools: readonly ToolSpec[]
  readonly mcpServers: readonly ToolSource[]
  readonly skills: SkillsOptions | null
  readonly subagents: readonly SubagentSpec[] | null
  /** Names of the tools that come with the package. */
  readonly packaged: readonly string[]
  readonly outputType: OutputType<Output> | null
  readonly outputMode: StructuredOutputMode | 'auto'
  readonly outputValidator: OutputValidator<unknown> | null
  readonly outputRetries: number
  readonly prices: Prices | null
  readonly toolRetries: number
  readonly sequential: boolean
  /** The options that are seams, and the extensions of `use`. */
  readonly seams: SeamSet
  readonly log: RunLog
  readonly deps: DepsFactory<unknown> | null
  /** A run without dependencies is refused. */
  readonly needsDeps: boolean
  readonly settings: ModelSettings
  readonly signingKey: SigningKey | null
}

const TOOLS = listOf(
  'tools, made by `defineTool`',
  (tool) => isObject(tool) && typeof tool['name'] === 'string' && typeof tool['call'] === 'function',
)
const LOG = having('append', "a log, such as `fileLog('./runs')`")
const FUNCTION: OptionRule = { expected: 'a function', fits: (value) => typeof value === 'function' }
const FUNCTIONS = listOf('functions', (each) => typeof each === 'function')
const EXTENSIONS = listOf('extensions', isObject)
const SIGNAL = having('addEventListener', 'an `AbortSignal`')

const OPTIONS: Readonly<Record<keyof HarnessOptions, OptionRule>> = {
  ...anything('model', 'outputType', 'outputMode', 'outputRetries', 'limits', 'toolRetries', 'toolExecution'),
  ...anything('settings', 'signingKey', 'onLimit', 'stall'),
  prices: OBJECT,
  outputValidator: FUNCTION,
  deps: FUNCTION,
  root: TEXT,
  instructions: TEXT,
  builtinTools: listOf('names', (name) => typeof name === 'string'),
  tools: TOOLS,
  mcpServers: listOf(
    'servers, made by `mcpStdio` and the like',
    (source) => isObject(source) && typeof source['tools'] === 'function',
  ),
  // The rest is checked where they are loaded.
  skills: {
    expected: 'an object with `dirs`, a list of folders',
    fits: (value) => isObject(value) && Array.isArray(value['dirs']),
  },
  provenance: OBJECT,
  ...anything('subagents'),
  hooks: listOf('hooks', () => true),
  use: EXTENSIONS,
  wrapModelCall: FUNCTIONS,
  wrapToolCall: FUNCTIONS,
  log: LOG,
  tracing: listOf('tracings', isObject),
}

const SHARED_RUN_OPTIONS = {
  ...anything('metadata', 'model', 'limits', 'onLimit', 'stall', 'deps'),
  use: EXTENSIONS,
  signal: SIGNAL,
  deltas: FLAG,
  includeSubagents: FLAG,
  instructions: TEXT,
  tools: TOOLS,
  log: LOG,
  input: having('send', 'an input port, made by `inputPort()`'),
}
const RUN_OPTIONS: Readonly<Record<keyof RunOptions, OptionRule>> = {
  ...SHARED_RUN_OPTIONS,
  ...anything('history', 'runId'),
}
const RESUME_OPTIONS: Readonly<Record<keyof ResumeOptions, OptionRule>> = {
  ...SHARED_RUN_OPTIONS,
  ...anything('configPolicy'),
}

const FORK_OPTIONS: Readonly<Record<keyof ForkOptions, OptionRule>> = {
  ...SHARED_RUN_OPTIONS,
  ...anything('runId', 'effects'),
  mocks: OBJECT,
}

const BACKGROUND: OptionRule = {
  expected: 'a boolean or an object with `within()`',
  fits: (value) => FLAG.fits(value) || having('within', '').fits(value),
}

const SPAWN_OPTIONS: Readonly<Record<keyof SpawnOptions, OptionRule>> = {
  ...anything('prompt', 'key', 'agentName', 'model', 'tools', 'outputType', 'outputMode', 'outputRetries'),
  ...anything('toolRetries', 'limits', 'onLimit', 'stall', 'settings', 'metadata'),
  outputValidator: FUNCTION,
  withoutTools: listOf('names', (name) => typeof name === 'string'),
  fork: FLAG,
  background: BACKGROUND,
  instructions: TEXT,
  signal: SIGNAL,
}

/** Ended runs that a harness without a log of its own remembers, so that `recover` can tell how they ended. */
const REMEMBERED_RUNS = 16

const FILE_INSTRUCTIONS = `You are an agent that works on the files of one workspace.
Search before you read, and read before you edit. Use \`edit\` for targeted changes and \`write\` for whole files.
Start narrow. Make independent tool calls together in one reply, and independent edits in one \`edit\` call; where one
depends on another, make them one after the other, and repeat only what failed.
End with a short statement of what you changed or found, and how you checked it.`

/** Checks the options of a harness and fills in their defaults. Does no I/O. */
export function resolveConfig<Output>(options: HarnessOptions<Output>): Config<Output> {
  checkOptions(options, OPTIONS, 'option of `Harness`')
  checkModel(options.model)
  checkSettings(options.settings ?? {})
  const builtinTools = options.builtinTools ?? DEFAULT_TOOL_NAMES
  checkBuiltinTools(builtinTools)
  const tools = options.tools ?? []
  const outputType = options.outputType ?? null
  const outputMode = oneOf('outputMode', options.outputMode ?? 'auto', ['auto', 'native', 'tool', 'prompted', 'text'])
  const subagents = options.subagents === undefined ? null : parseSubagents(options.subagents)
  const { hooks = [], wrapModelCall = [], wrapToolCall = [], tracing = [], use = [] } = options
  const seams = new SeamSet([{ hooks, wrapModelCall, wrapToolCall, tracing }, ...checkedExtensions(use)])
  const packaged = [...builtinTools, ...(subagents === null ? [] : ['subagent'])]
  checkToolNames([...packaged, ...[...tools, ...seams.seams.tools].map((tool) => tool.name)], outputType)
  checkOutput(outputType, outputMode, options.model)
  return {
    model: options.model ?? process.env['THINHARNESS_MODEL'] ?? null,
    root: resolve(options.root ?? '.'),
    provenance: options.provenance === undefined ? null : parseProvenance(options.provenance),
    namesRoot: options.root !== undefined || builtinTools.length > 0,
    instructions: options.instructions ?? (builtinTools.length > 0 ? FILE_INSTRUCTIONS : ''),
    builtinTools,
    tools,
    mcpServers: options.mcpServers ?? [],
    skills: options.skills ?? null,
    subagents,
    packaged,
    outputType,
    outputMode,
    // What it is given is what the output type has parsed.
    outputValidator: (options.outputValidator ?? null) as OutputValidator<unknown> | null,
    outputRetries: wholeNumber('outputRetries', options.outputRetries ?? 1),
    ...ownBudgets(options),
    prices: options.prices === undefined ? null : ownPrices(options.prices),
    toolRetries: wholeNumber('toolRetries', options.toolRetries ?? 1),
    sequential: oneOf('toolExecution', options.toolExecution ?? 'auto', ['auto', 'sequential']) === 'sequential',
    seams,
    log: options.log ?? memoryLog({ keepEnded: REMEMBERED_RUNS }),
    deps: options.deps ?? null,
    needsDeps: false,
    settings: options.settings ?? {},
    signingKey: signingKeyOf(options.signingKey),
  }
}

/** Short keys can be guessed by who carries a signed state. */
function signingKeyOf(key: SigningKey | undefined): SigningKey | null {
  if (key === undefined) return null
  const isKey = typeof key === 'string' || key instanceof Uint8Array
  if (isKey && Buffer.byteLength(key) >= 16) return key
  throw invalid('Expected `signingKey` to be a text or bytes, at least 16 bytes long.')
}

/** Checks the options of a run; `undefined` members count as absent. */
export function checkRunOptions(options: RunOptions): void {
  checkOptions(options, RUN_OPTIONS, 'option of a run')
  checkModel(options.model)
  ownBudgets(options)
  if (options.runId !== undefined) checkRunId(options.runId)
}

/** Checks the options of a run that goes on. */
export function checkResumeOptions(options: ResumeOptions): void {
  checkOptions(options, RESUME_OPTIONS, 'option of a run that goes on')
  checkModel(options.model)
  ownBudgets(options)
  oneOf('configPolicy', options.configPolicy ?? 'compatible', ['same', 'compatible', 'any'])
}

/** Checks what a run is followed with. */
export function checkFollowOptions(options: FollowOptions): void {
  checkOptions(options, { ...anything('after'), signal: SIGNAL }, 'option of `follow`')
  wholeNumber('after', options.after ?? 0)
}

/** Checks what a recorded run is run again with. */
export function checkReplayOptions(options: ReplayOptions): void {
  checkOptions(options, { tools: TOOLS, instructions: TEXT, use: EXTENSIONS }, 'option of `replay`')
}

/** Checks where and how a run goes on from a recorded one. */
export function checkForkOptions(point: ForkPoint, options: ForkOptions): void {
  checkOptions(point, anything('afterTurn', 'prompt'), 'member of a fork point')
  wholeNumber('afterTurn', point.afterTurn)
  checkOptions(options, FORK_OPTIONS, 'option of a fork')
  oneOf('effects', options.effects ?? 'live', ['live', 'dry'])
  checkModel(options.model)
  ownBudgets(options)
  if (options.runId !== undefined) checkRunId(options.runId)
}

/** Checks what a tool starts a run with. */
export function checkSpawnOptions(options: SpawnOptions<unknown>): void {
  checkOptions(options, SPAWN_OPTIONS, 'option of `spawn`')
  checkModel(options.model)
  ownBudgets(options)
  checkSettings(options.settings ?? {})
  wholeNumber('outputRetries', options.outputRetries ?? 0)
  wholeNumber('toolRetries', options.toolRetries ?? 0)
  if (options.fork === true) checkForkedChild(options)
}

const OF_THE_PARENT = [
  'model',
  'instructions',
  'tools',
  'withoutTools',
  'settings',
  'outputType',
  'outputMode',
  'outputValidator',
] as const

function checkForkedChild(options: SpawnOptions<unknown>): void {
  const given = OF_THE_PARENT.find((name) => options[name] !== undefined)
  if (given !== undefined) throw invalid(`With \`fork\` a child has its parent's \`${given}\`: leave it out.`)
}

export function checkRunId(runId: unknown): void {
  if (typeof runId !== 'string' || !/^[\w.:-]{1,128}$/.test(runId)) {
    throw invalid(
      `Expected \`runId\` to be 1 to 128 letters, digits, \`_\`, \`-\`, \`.\` or \`:\`, got \`${String(runId)}\`.`,
    )
  }
}

/** The run's own copy of a prompt: what the caller does with the parts afterwards does not change the conversation. */
export function ownPrompt(prompt: InputMessage): InputMessage {
  if (typeof prompt === 'string') return prompt
  if (hasParts(prompt)) return contentOf(prompt)
  throw invalid(
    `Expected the prompt to be a string or a list of content parts, got ${nameOf(prompt)}.${messagesHint(prompt)}`,
  )
}

/** Message arrays of other libraries look like a prompt to those who know them. */
function messagesHint(prompt: unknown): string {
  const isMessages = Array.isArray(prompt) && prompt.some((part) => isObject(part) && 'role' in part)
  return isMessages ? ' Pass an earlier conversation as `history`.' : ''
}

function hasParts(prompt: unknown): boolean {
  return Array.isArray(prompt) && prompt.length > 0 && prompt.every((part) => isObject(part) && !('role' in part))
}

/** The run's own copy of its metadata, as plain JSON. */
export function ownMetadata(metadata: JsonObject = {}): JsonObject {
  const text = jsonText(metadata)
  const copy: unknown = text === undefined ? undefined : JSON.parse(text)
  if (isObject(copy)) return copy as JsonObject
  throw invalid(`Expected \`metadata\` to be an object of plain JSON, got ${nameOf(metadata)}.`)
}

/** What decides the course of a run that has these tools. */
export function rulesOf(
  { outputRetries, toolRetries }: Pick<Config<unknown>, 'outputRetries' | 'toolRetries'>,
  { limits, onLimit, stall }: Budgets,
  tools: readonly ToolSpec[],
  output: OutputFormat | null,
): RunRules {
  const retryBudgets = tools.flatMap(({ name, maxRetries }) =>
    maxRetries === undefined ? [] : [[name, maxRetries] as const],
  )
  return {
    limits,
    outputRetries,
    toolRetries,
    toolRetryBudgets: Object.fromEntries(retryBudgets),
    answersByTool: output?.mode === 'tool',
    ...(onLimit === 'answer' && { onLimit }),
    ...(stall !== null && { stall }),
  }
}

/** Refuses a name that is there twice, and the name by which a structured answer is given, where there is one. */
export function checkToolNames(names: readonly string[], outputType: OutputType | null): void {
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw invalid(`Two tools have the name \`${twice}\`; each needs a name of its own.`)
  if (outputType === null || !names.includes(FINAL_RESULT)) return
  throw invalid(
    `With an \`outputType\` no tool can be called \`${FINAL_RESULT}\`: the model gives its answer by that name.`,
  )
}

/** Refuses an output type that is no schema for a model, or that the given model cannot be asked for. */
export function checkOutput(
  outputType: OutputType | null,
  mode: StructuredOutputMode | 'auto',
  model: ModelRef | Model | undefined,
): void {
  if (outputType === null) return
  if (typeof model === 'object') outputFormat({ type: outputType, mode }, model.capabilities)
  else outputSchemaOf(outputType)
}

function checkBuiltinTools(names: readonly string[]): void {
  const unknown = names.find((name) => !(BUILTIN_TOOL_NAMES as readonly string[]).includes(name))
  if (unknown === undefined) return
  const known = [...BUILTIN_TOOL_NAMES].sort().map((name) => `\`${name}\``)
  throw invalid(
    `Unknown built-in tool \`${unknown}\`.${didYouMean(unknown, BUILTIN_TOOL_NAMES)} Available: ${known.join(', ')}.`,
  )
}

function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
