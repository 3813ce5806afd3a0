import type { Model, ModelSettings } from '#core/model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import { parseModelRef } from '#contracts/model-reference.js'
import { invalidOptions, parse, runId } from '#contracts/parse.js'
import type { ForkPoint } from '#run/replay/fork.js'
import type { InputMessage } from '#core/stream/input.js'
import { contentOf } from '#contracts/entry.js'
import type { ContentPart } from '#contracts/entry.js'
import { withPlainData } from '#util/base64.js'
import type { Extension } from '#core/extension/extension.js'
import type { SigningKey } from '#core/loop/signature.js'
import type { SkillsOptions } from '#toolbox/skills/options.js'
import { CHILD_HISTORY } from '#toolbox/agents/subagent-options.js'
import type { BackgroundLine, SpawnOptions, ToolSource, ToolSpec } from '#core/tools/tool-spec.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { mismatch, shownValue } from '#util/mismatch.js'
import {
  abortSignal,
  anything,
  boolean,
  filledString,
  either,
  functionAtOnce,
  functionOf,
  having,
  integer,
  jsonObject,
  leaf,
  list,
  object,
  oneOf,
  optional,
  partial,
  record,
  secret,
  string,
  dollars,
} from '#util/validate.js'
import { LONGEST_TIMER_MS } from '#util/timeout.js'
import type { PartialFields, Shape, Fields } from '#util/validate.js'
import { budget } from '#run/money/budget.js'
import type { MapOptions } from './map-rows.js'
import type { FollowOptions } from '#core/log/log.js'
import type {
  BuiltinToolName,
  CloseOptions,
  ForkOptions,
  QueueOptions,
  HarnessOptions,
  ReplayOptions,
  ResumeOptions,
  RunOptions,
} from './options.js'
import { FLOW_FIELDS } from '#run/provenance/options.js'
import { BUDGETS, OPTIONAL_BUDGETS } from '#contracts/limits.js'
import { byteLength } from '#util/bytes.js'
import type { Price, Rates } from '#run/money/token-cost.js'
import type { Prices } from '#run/money/find-price.js'

const model = leaf<ModelRef | Model>(
  'a reference such as `openai:gpt-5.5`, or an object with `openSession()`',
  (given) => typeof given === 'string' || (isObject(given) && typeof given['openSession'] === 'function'),
  (given) =>
    isObject(given) && 'specificationVersion' in given
      ? 'This is a model of the AI SDK: use `fromAiSdk(model)` of `thinharness/providers`.'
      : '',
)

const toolList = list(
  leaf<ToolSpec>(
    'a tool, made by `defineTool`',
    (given) => isObject(given) && typeof given['name'] === 'string' && typeof given['call'] === 'function',
  ),
)

/** Other libraries take an object with names as keys. */
const tools: Shape<readonly ToolSpec[]> = {
  expected: 'a list of tools',
  read: (given) => {
    if (Array.isArray(given)) return toolList.read(given)
    const hint = isObject(given) ? ' Give a list, in which each tool, made by `defineTool`, has its `name`.' : ''
    return mismatch('a list of tools', given, hint)
  },
}

const servers = list(having<ToolSource>('a server, made by `mcpStdio` and the like', 'tools'), 'a list of servers')
const names = list(string, 'a list of names')
const log = having<NonNullable<RunOptions['log']>>("a log, such as `fileLog('./runs')`", 'append')

const settings = partial<ModelSettings>({
  maxOutputTokens: integer(1),
  // Models differ in these; their adapters check them.
  temperature: anything(),
  reasoningEffort: anything(),
  toolChoice: anything(),
  providerOptions: record(jsonObject),
})

/** A copy as plain JSON. */
const metadata: Shape<object> = {
  expected: 'an object of plain JSON',
  read: (given) => {
    const copy = jsonCopy(given)
    return isObject(copy) ? copy : mismatch('an object of plain JSON', given)
  },
}

/** Short keys can be guessed. */
const signingKey = secret(
  leaf<SigningKey>(
    'a string or bytes, at least 16 bytes long',
    (key) => (typeof key === 'string' || key instanceof Uint8Array) && byteLength(key) >= 16,
  ),
)

const use = list(anything<Extension<never>>(), 'a list of extensions')
const configPolicy = oneOf('same', 'compatible', 'any')
const outputMode = oneOf('auto', 'native', 'tool', 'prompted', 'text')

const RATES: Fields<Rates> = {
  inputPerMillion: dollars,
  outputPerMillion: dollars,
  cacheReadPerMillion: optional(dollars),
  cacheWritePerMillion: optional(dollars),
  longCacheWritePerMillion: optional(dollars),
  reasoningPerMillion: optional(dollars),
}

const price = object<Price>({
  ...RATES,
  batch: optional(object(RATES)),
  hostedPerCall: optional(record(dollars)),
  tiers: optional(list(object({ ...RATES, aboveInputTokens: integer(0) }))),
})

const prices = either(oneOf(false), partial<Prices>({ models: record(price), unknown: price }))

const HARNESS = partial<HarnessOptions<unknown>>({
  ...BUDGETS,
  use,
  deps: functionOf(),
  model,
  settings,
  signingKey,
  configPolicy,
  prices,
  budget,
  tools,
  log,
  outputMode,
  // The schema is read together with the mode.
  outputType: anything(),
  outputValidator: functionOf(),
  outputRetries: integer(0),
  toolRetries: integer(0),
  toolExecution: oneOf('auto', 'sequential'),
  root: string,
  sandbox: oneOf('auto', 'required', 'off'),
  instructions: string,
  builtinTools: list(
    leaf<BuiltinToolName>('a name', (name) => typeof name === 'string'),
    'a list of names',
  ),
  mcpServers: servers,
  // The rest is checked when they are loaded.
  skills: leaf<SkillsOptions>(
    'an object with `dirs`, a list of folders',
    (given) => isObject(given) && Array.isArray(given['dirs']),
  ),
  ...FLOW_FIELDS,
  subagents: anything(),
  hooks: list(anything(), 'a list of hooks'),
  wrapModelCall: list(functionOf(), 'a list of functions'),
  wrapToolCall: list(functionOf(), 'a list of functions'),
  tracing: list(having('a tracing'), 'a list of tracings'),
})

/** A copy of the options. Throws `invalid_options`. */
export function parseHarnessOptions<Output>(given: HarnessOptions<Output>): HarnessOptions<Output> {
  const options = parse(HARNESS, given, '`Harness`')
  checkReference(options)
  // Its output type gives the validator its type.
  return options as HarnessOptions<Output>
}

type SharedOptions = Omit<RunOptions, 'history' | 'runId' | 'ifExists' | 'labels'>

const SHARED: PartialFields<SharedOptions> = {
  ...BUDGETS,
  use,
  budget,
  deps: anything(),
  metadata,
  model,
  tools,
  log,
  signal: abortSignal,
  deltas: boolean,
  includeSubagents: boolean,
  instructions: string,
  root: string,
  mcpServers: servers,
  input: having('an input port, made by `inputPort()`', 'send'),
}

const ifExists = oneOf('fail', 'continue', 'retry')
const RUN = partial<RunOptions>({ ...SHARED, history: anything(), runId, ifExists, labels: record(string) })
const QUEUE = partial<QueueOptions>({
  runId,
  metadata,
  labels: record(string),
  log,
  agent: filledString,
  by: filledString,
})
const RESUME = partial<ResumeOptions>({ ...SHARED, configPolicy })

const FORK = partial<ForkOptions>({
  ...SHARED,
  runId,
  labels: record(string),
  effects: oneOf('live', 'dry', 'recorded'),
  mocks: record(functionOf()),
})

const FORK_POINT = object<ForkPoint>({ afterTurn: integer(0), prompt: optional(anything()) })
const REPLAY = partial<ReplayOptions>({
  ...{ tools, mcpServers: servers, instructions: string, root: string, use },
  allow: list(oneOf('instructions', 'tools')),
  onDifference: functionAtOnce('onDifference'),
})
const CLOSE = partial<CloseOptions>({
  runs: oneOf('leave', 'cancel', 'finish'),
  timeoutMs: integer(0, LONGEST_TIMER_MS),
})
const CANCEL = partial<Pick<RunOptions, 'log'>>({ log })
const MAP = partial<MapOptions>({
  concurrency: integer(1),
  budget,
  signal: abortSignal,
  onProgress: functionAtOnce('onProgress'),
  ifExists,
})
const FOLLOW = partial<FollowOptions>({ after: integer(0), signal: abortSignal })

/** Options with their metadata as plain JSON. */
export type Parsed<Options> = Omit<Options, 'metadata'> & { readonly metadata?: JsonObject }

/** A copy of the options of a run. Throws `invalid_options`. */
export function parseRunOptions(given: RunOptions): Parsed<RunOptions> {
  const options = checkReference(parse(RUN, given, 'a run')) as Parsed<RunOptions>
  const { ifExists = 'fail' } = options
  if (ifExists === 'fail' || options.runId !== undefined) return options
  throw invalidOptions(`\`ifExists: '${ifExists}'\` needs the \`runId\` of the run that may exist.`)
}

/** The same for a run that is to wait. */
export function parseQueueOptions(given: QueueOptions): Parsed<QueueOptions> {
  return parse(QUEUE, given, '`queue`') as Parsed<QueueOptions>
}

/** The same for a run that continues. */
export function parseResumeOptions(given: ResumeOptions): Parsed<ResumeOptions> {
  return checkReference(parse(RESUME, given, 'a run that continues')) as Parsed<ResumeOptions>
}

export function parseForkOptions(given: ForkOptions): Parsed<ForkOptions> {
  return checkReference(parse(FORK, given, 'a fork')) as Parsed<ForkOptions>
}

export function parseForkPoint(given: ForkPoint): ForkPoint {
  return parse(FORK_POINT, given, 'a fork point')
}

export function parseReplayOptions(given: ReplayOptions): ReplayOptions {
  return parse(REPLAY, given, '`replay`')
}

/** A tool that is added to a harness. Throws `invalid_options` for anything else. */
export function checkTool(given: unknown): void {
  parse(toolList, [given], '`addTool`')
}

export function parseCloseOptions(given: CloseOptions): CloseOptions {
  return parse(CLOSE, given, '`close`')
}

export function parseCancelOptions(given: Pick<RunOptions, 'log'>): Pick<RunOptions, 'log'> {
  return parse(CANCEL, given, '`cancel`')
}

/** Checks the arguments of `map`. Throws `invalid_options`. */
export function parseMapOptions(rows: unknown, toRun: unknown, given: MapOptions): MapOptions {
  if (typeof rows !== 'object' || rows === null || !(Symbol.iterator in rows || Symbol.asyncIterator in rows))
    throw invalidOptions(`Expected the rows of \`map\` to be a list or another iterable, got ${shownValue(rows)}.`)
  if (typeof toRun !== 'function')
    throw invalidOptions(`Expected a function that gives the run of a row, got ${shownValue(toRun)}.`)
  return parse(MAP, given, '`map`')
}

export function parseFollowOptions(given: FollowOptions): FollowOptions {
  return parse(FOLLOW, given, '`follow`')
}

const OF_THE_PARENT = {
  model: optional(model),
  instructions: optional(string),
  tools: optional(either(oneOf('inherit'), tools)),
  withoutTools: optional(names),
  mcpServers: optional(servers),
  settings: optional(settings),
  outputType: optional(anything<NonNullable<SpawnOptions<unknown>['outputType']>>()),
  outputMode: optional(outputMode),
  outputValidator: optional(functionOf<NonNullable<SpawnOptions<unknown>['outputValidator']>>()),
}

const SPAWN = object<SpawnOptions<unknown>>({
  ...OF_THE_PARENT,
  prompt: anything(),
  key: optional(string),
  as: optional(oneOf('self')),
  agentName: optional(string),
  history: optional(CHILD_HISTORY),
  background: optional(either(boolean, having<BackgroundLine>('an object with `within()`', 'within'))),
  outputRetries: optional(integer(0)),
  toolRetries: optional(integer(0)),
  ...OPTIONAL_BUDGETS,
  metadata: optional(metadata),
  signal: optional(abortSignal),
})

/** A copy of the options with which a tool starts a run. Throws `invalid_options`. */
export function parseSpawnOptions(given: SpawnOptions<unknown>): Parsed<SpawnOptions<unknown>> {
  const options = checkReference(parse(SPAWN, given, '`spawn`')) as Parsed<SpawnOptions<unknown>>
  if (options.as === 'self') checkProgram(options)
  const names = Object.keys(OF_THE_PARENT) as (keyof typeof OF_THE_PARENT)[]
  const changed = options.history === 'fork' ? names.find((name) => options[name] !== undefined) : undefined
  if (changed === undefined) return options
  throw invalidOptions(`With \`fork\` a child has its parent's \`${changed}\`: leave it out.`)
}

/** A program is the run that starts it: what else would make it another one is refused. */
function checkProgram({ model: program, history = 'none', background = false, limits }: SpawnOptions<unknown>): void {
  const isComputed = typeof program === 'object' && program.computed === true
  if (!isComputed) throw invalidOptions("Expected a program (`as: 'self'`) to have a `model` that is `computed`.")
  if (history !== 'none' || background !== false)
    throw invalidOptions("A program (`as: 'self'`) has no `history`, and its call waits for it: no `background`.")
  if (limits?.toolCalls !== undefined || limits?.modelRequests !== undefined)
    throw invalidOptions("A program (`as: 'self'`) has the `limits` of its run on calls and requests: leave them out.")
}

/** Throws `invalid_options` for an invalid id of a run. */
export function checkRunId(given: string): void {
  parse(object<{ readonly runId: string }>({ runId }), { runId: given }, 'a run')
}

/** A copy of a prompt: later changes by the caller do not change the conversation. Throws `invalid_options`. */
export function parsePrompt(prompt: InputMessage): InputMessage {
  if (typeof prompt === 'string' || hasParts(prompt)) {
    if (contentOf(prompt).some((part) => part.type !== 'text' || /\S/.test(part.text)))
      return typeof prompt === 'string' ? prompt : contentOf(prompt).map(plainPart)
    throw invalidOptions('Expected the prompt to say something, got white space only.')
  }
  throw invalidOptions(
    `Expected the prompt to be a string or a list of content parts, got ${shownValue(prompt)}.${messagesHint(prompt)}`,
  )
}

function plainPart(part: ContentPart, index: number): ContentPart {
  const plain = withPlainData(part)
  if (plain === null) throw invalidOptions(`Expected \`data\` of part ${index} of the prompt to be base64.`)
  return plain
}

/** Message arrays of other libraries resemble a prompt. */
function messagesHint(prompt: unknown): string {
  const isMessages = Array.isArray(prompt) && prompt.some((part) => isObject(part) && 'role' in part)
  return isMessages ? ' Pass an earlier conversation as `history`: `fromMessages(messages)` makes one.' : ''
}

function hasParts(prompt: unknown): boolean {
  return Array.isArray(prompt) && prompt.length > 0 && prompt.every((part) => isObject(part) && !('role' in part))
}

/** Throws `invalid_options` for an unknown provider. */
function checkReference<T extends { readonly model?: ModelRef | Model | undefined }>(options: T): T {
  if (typeof options.model === 'string') parseModelRef(options.model)
  return options
}

function jsonCopy(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value))
  } catch {
    return undefined
  }
}
