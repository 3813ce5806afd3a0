import { resolve } from 'node:path'
import type { Limits } from './limits.js'
import type { Model, ModelSettings, StructuredOutputMode } from './model/contracts.js'
import { parseModelRef } from './model/reference.js'
import type { ModelRef } from './model/reference.js'
import {
  FLAG,
  OBJECT,
  TEXT,
  anything,
  checkOptions,
  having,
  invalid,
  listOf,
  nameOf,
  oneOf,
  wholeNumber,
} from './option-checks.js'
import type { OptionRule } from './option-checks.js'
import { FINAL_RESULT } from './output/format.js'
import type { OutputFormat } from './output/format.js'
import { outputFormat } from './output/schema.js'
import type { ResumeState } from './report.js'
import type { ConfigPolicy } from './run/config-check.js'
import { HookSet } from './run/hooks.js'
import type { Hook } from './run/hooks.js'
import { contentOf } from './run/input.js'
import type { InputMessage, InputPort } from './run/input.js'
import type { RunLog } from './run/log.js'
import { memoryLog } from './run/memory-log.js'
import type { RunLimits, RunRules } from './run/rules.js'
import type { SigningKey } from './run/signature.js'
import { directSteps } from './run/steps.js'
import type { StepRunner } from './run/steps.js'
import type { Tracing } from './run/tracing.js'
import { jsonSchemaOf } from './tools/schema.js'
import type { Schema } from './tools/schema.js'
import type { SpawnOptions, ToolSpec } from './tools/spec.js'
import { isObject } from './util/json.js'
import type { JsonObject } from './util/json.js'
import { didYouMean } from './util/suggest.js'

/** Tools that a harness can be given by name. */
export type BuiltinToolName = (typeof BUILTIN_TOOL_NAMES)[number]

export const DEFAULT_TOOL_NAMES = ['read', 'write', 'edit', 'search', 'list', 'glob'] as const
const BUILTIN_TOOL_NAMES = [...DEFAULT_TOOL_NAMES, 'jsonl_search'] as const

/** All optional. What is wrong in here is thrown by the constructor, as `invalid_options`. */
export interface HarnessOptions<Output = string> {
  /** Default: `$THINHARNESS_MODEL`. A run without either fails with `missing_model`. */
  readonly model?: ModelRef | Model
  /** Workspace of the file tools. Default: the current folder. Created when a file tool first needs it. */
  readonly root?: string
  /** The system prompt. Default: a short one for work on files when there are built-in tools, else none. */
  readonly instructions?: string
  /** Built-in tools by name, loaded when first used. Default: `read`, `write`, `edit`, `search`, `list`, `glob`. */
  readonly builtinTools?: readonly BuiltinToolName[]
  /** Tools of your own, behind the built-in ones. */
  readonly tools?: readonly ToolSpec[]
  /** Schema of the final answer: `result.output` is what it parses. Default: the answer is text. */
  readonly outputType?: Schema<Output>
  /** How the answer is asked for. Default `auto`: what the model does best. */
  readonly outputMode?: StructuredOutputMode | 'auto'
  /** Corrective requests after an answer that does not fit. Default 1. */
  readonly outputRetries?: number
  readonly limits?: Limits
  /** Retryable failures in a row that the model may cause with one tool. Default 1. */
  readonly toolRetries?: number
  /** `sequential`: every batch runs one call at a time. Default `auto`. */
  readonly toolExecution?: 'auto' | 'sequential'
  readonly hooks?: readonly Hook[]
  /** A hook that fails ends the run. Default: it is counted, told and passed over. */
  readonly strictHooks?: boolean
  /** Where durable events go. Default: memory, for as long as a run lasts. */
  readonly log?: RunLog
  /** Who traces the runs, children included: `openTelemetry` and `localTraces` of `thinharness/tracing`. Default: nobody. */
  readonly tracing?: readonly Tracing[]
  /** Where effects are performed. Default: here. */
  readonly steps?: StepRunner
  readonly settings?: ModelSettings
  /**
   * Signs stored states (HMAC-SHA256) and refuses those that are not: for states that go through other hands. At least 16
   * bytes. Default: none.
   */
  readonly signingKey?: SigningKey
}

/** Options of one run; each stands in place of the harness's own. */
export interface RunOptions {
  /** Goes on from an earlier run's conversation, with a new prompt. `null`: a fresh conversation. */
  readonly resumeFrom?: ResumeState | null
  /** Default: `run_` and 32 hex digits. */
  readonly runId?: string
  /** Data of the host, told to tools, hooks and the log; never to the model. */
  readonly metadata?: JsonObject
  /** Cancels the run. */
  readonly signal?: AbortSignal
  /** Text, reasoning and argument deltas are in the stream; the model is asked for a stream. Default false. */
  readonly deltas?: boolean
  readonly model?: ModelRef | Model
  readonly instructions?: string
  /** Added to the harness's tools, for this run. */
  readonly tools?: readonly ToolSpec[]
  /** Merged over the harness's limits. */
  readonly limits?: Limits
  readonly log?: RunLog
  /** Steering messages, taken at turn boundaries. */
  readonly input?: InputPort
}

/** Options of a run that goes on where it was left. */
export interface ResumeOptions extends Omit<RunOptions, 'resumeFrom' | 'runId'> {
  /**
   * What the run may be configured with now: exactly what it had (`same`); anything, as long as the tools whose calls are
   * still to be run are what they were (`compatible`, the default); anything at all (`any`).
   */
  readonly configPolicy?: ConfigPolicy
}

/** A harness's options, checked and with their defaults. */
export interface Config<Output> {
  readonly model: ModelRef | Model | null
  readonly root: string
  /** The workspace is named to the model. */
  readonly namesRoot: boolean
  readonly instructions: string
  readonly builtinTools: readonly BuiltinToolName[]
  readonly tools: readonly ToolSpec[]
  readonly outputType: Schema<Output> | null
  readonly outputMode: StructuredOutputMode | 'auto'
  readonly outputRetries: number
  readonly limits: RunLimits
  readonly toolRetries: number
  readonly sequential: boolean
  readonly hooks: HookSet
  readonly log: RunLog
  readonly steps: StepRunner
  readonly tracing: readonly Tracing[]
  readonly settings: ModelSettings
  readonly signingKey: SigningKey | null
}

const TOOLS = listOf(
  'tools, made by `defineTool`',
  (tool) => isObject(tool) && typeof tool['name'] === 'string' && typeof tool['call'] === 'function',
)
const LOG = having('append', "a log, such as `fileLog('./runs')`")
const SIGNAL = having('addEventListener', 'an `AbortSignal`')

const OPTIONS: Readonly<Record<keyof HarnessOptions, OptionRule>> = {
  ...anything('model', 'outputType', 'outputMode', 'outputRetries', 'limits', 'toolRetries', 'toolExecution'),
  ...anything('settings', 'signingKey'),
  root: TEXT,
  instructions: TEXT,
  builtinTools: listOf('names', (name) => typeof name === 'string'),
  tools: TOOLS,
  hooks: listOf('hooks', isObject),
  strictHooks: FLAG,
  log: LOG,
  steps: having('step', 'a step runner, an object with `step()`'),
  tracing: listOf('tracings', isObject),
}

const SHARED_RUN_OPTIONS = {
  ...anything('metadata', 'model', 'limits'),
  signal: SIGNAL,
  deltas: FLAG,
  instructions: TEXT,
  tools: TOOLS,
  log: LOG,
  input: having('send', 'an input port, made by `inputPort()`'),
}
const RUN_OPTIONS: Readonly<Record<keyof RunOptions, OptionRule>> = {
  ...SHARED_RUN_OPTIONS,
  ...anything('resumeFrom', 'runId'),
}
const RESUME_OPTIONS: Readonly<Record<keyof ResumeOptions, OptionRule>> = {
  ...SHARED_RUN_OPTIONS,
  ...anything('configPolicy'),
}

const SPAWN_OPTIONS: Readonly<Record<keyof SpawnOptions, OptionRule>> = {
  ...anything('prompt', 'key', 'agentName', 'model', 'tools', 'outputType', 'outputMode', 'outputRetries'),
  ...anything('toolRetries', 'limits', 'settings', 'metadata'),
  instructions: TEXT,
  signal: SIGNAL,
}

const LIMITS: Readonly<Record<keyof Limits, OptionRule>> = anything(
  'modelRequests',
  'toolCalls',
  'inputTokens',
  'outputTokens',
  'timeMs',
)

const SETTINGS: Readonly<Record<keyof ModelSettings, OptionRule>> = {
  ...anything('maxOutputTokens', 'temperature', 'reasoningEffort', 'toolChoice'),
  providerOptions: OBJECT,
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
  checkToolNames([...builtinTools, ...tools.map((tool) => tool.name)], outputType)
  checkOutput(outputType, outputMode, options.model)
  return {
    model: options.model ?? process.env['THINHARNESS_MODEL'] ?? null,
    root: resolve(options.root ?? '.'),
    namesRoot: options.root !== undefined || builtinTools.length > 0,
    instructions: options.instructions ?? (builtinTools.length > 0 ? FILE_INSTRUCTIONS : ''),
    builtinTools,
    tools,
    outputType,
    outputMode,
    outputRetries: wholeNumber('outputRetries', options.outputRetries ?? 1),
    limits: resolveLimits(options.limits ?? {}, DEFAULT_LIMITS),
    toolRetries: wholeNumber('toolRetries', options.toolRetries ?? 1),
    sequential: oneOf('toolExecution', options.toolExecution ?? 'auto', ['auto', 'sequential']) === 'sequential',
    hooks: new HookSet(options.hooks ?? [], options.strictHooks ?? false),
    log: options.log ?? memoryLog({ keepEnded: REMEMBERED_RUNS }),
    steps: options.steps ?? directSteps,
    tracing: options.tracing ?? [],
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
  checkLimits(options.limits ?? {})
  if (options.runId !== undefined) checkRunId(options.runId)
}

/** Checks the options of a run that goes on. */
export function checkResumeOptions(options: ResumeOptions): void {
  checkOptions(options, RESUME_OPTIONS, 'option of a run that goes on')
  checkModel(options.model)
  checkLimits(options.limits ?? {})
  oneOf('configPolicy', options.configPolicy ?? 'compatible', ['same', 'compatible', 'any'])
}

/** Checks what a tool starts a run with. */
export function checkSpawnOptions(options: SpawnOptions<unknown>): void {
  checkOptions(options, SPAWN_OPTIONS, 'option of `spawn`')
  checkModel(options.model)
  checkLimits(options.limits ?? {})
  checkSettings(options.settings ?? {})
  wholeNumber('outputRetries', options.outputRetries ?? 0)
  wholeNumber('toolRetries', options.toolRetries ?? 0)
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
  throw invalid(`Expected the prompt to be a text or a list of content parts, got ${nameOf(prompt)}.`)
}

function hasParts(prompt: unknown): boolean {
  return Array.isArray(prompt) && prompt.length > 0 && prompt.every(isObject)
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
  config: Config<unknown>,
  { limits }: RunOptions,
  tools: readonly ToolSpec[],
  output: OutputFormat | null,
): RunRules {
  const budgets = tools.flatMap(({ name, maxRetries }) =>
    maxRetries === undefined ? [] : [[name, maxRetries] as const],
  )
  return {
    limits: resolveLimits(limits ?? {}, config.limits),
    outputRetries: config.outputRetries,
    toolRetries: config.toolRetries,
    toolRetryBudgets: Object.fromEntries(budgets),
    answersByTool: output?.mode === 'tool',
  }
}

/** Refuses a name that is there twice, and the name by which a structured answer is given, where there is one. */
export function checkToolNames(names: readonly string[], outputType: Schema | null): void {
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw invalid(`Two tools have the name \`${twice}\`; each needs a name of its own.`)
  if (outputType === null || !names.includes(FINAL_RESULT)) return
  throw invalid(
    `With an \`outputType\` no tool can be called \`${FINAL_RESULT}\`: the model gives its answer by that name.`,
  )
}

/** Refuses an output type that is no schema for a model, or that the given model cannot be asked for. */
function checkOutput(
  outputType: Schema | null,
  mode: StructuredOutputMode | 'auto',
  model: ModelRef | Model | undefined,
): void {
  if (outputType === null) return
  if (typeof model === 'object') outputFormat(outputType, mode, model.capabilities)
  else jsonSchemaOf(outputType, '`outputType`')
}

const DEFAULT_LIMITS: RunLimits = {
  modelRequests: 64,
  toolCalls: null,
  inputTokens: null,
  outputTokens: null,
  timeMs: null,
}

/** Longest wait that a timer of the platform knows, in ms: 24.8 days. */
const LONGEST_TIMER_MS = 2_147_483_647

function checkLimits(given: Limits): void {
  checkOptions(given, LIMITS, 'limit')
  for (const [name, value] of Object.entries(given)) {
    if (value !== null && value !== undefined) wholeNumber(`limits.${name}`, value as unknown)
  }
  if ((given.timeMs ?? 0) <= LONGEST_TIMER_MS) return
  throw invalid(`Expected \`limits.timeMs\` to be at most ${LONGEST_TIMER_MS}, got \`${String(given.timeMs)}\`.`)
}

function resolveLimits(given: Limits, defaults: RunLimits): RunLimits {
  checkLimits(given)
  const stated = Object.entries(given).filter(([, value]) => value !== undefined)
  return { ...defaults, ...(Object.fromEntries(stated) as Partial<RunLimits>) }
}

function checkModel(model: ModelRef | Model | undefined): void {
  if (model === undefined) return
  if (typeof model === 'string') parseModelRef(model)
  else if (typeof (model as { openSession?: unknown }).openSession !== 'function') {
    throw invalid('Expected `model` to be a reference such as `openai:gpt-5.5`, or an object with `openSession()`.')
  }
}

function checkSettings(settings: ModelSettings): void {
  checkOptions(settings, SETTINGS, 'setting')
  const { maxOutputTokens } = settings
  if (maxOutputTokens !== undefined) wholeNumber('settings.maxOutputTokens', maxOutputTokens, 1)
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
