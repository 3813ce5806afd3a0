import type { Model, ModelSettings, StructuredOutputMode } from '#core/model-session.js'
import type { ModelRef } from '#contracts/model-reference.js'
import { parseHarnessOptions } from './option-shapes.js'
import { BUILTIN_TOOL_NAMES, DEFAULT_TOOL_NAMES } from './options.js'
import type { BuiltinToolName, DepsFactory, HarnessOptions } from './options.js'
import { outputForm, outputSchemaOf } from '#run/output/output-form.js'
import type { Budget } from '#run/money/budget.js'
import type { Prices } from '#run/money/find-price.js'
import { budgetsOf } from './default-limits.js'
import { checkDeferred, checkToolNames } from './tool-names.js'
import type { Budgets } from './default-limits.js'
import { invalidOptions } from '#contracts/parse.js'
import type { ConfigPolicy } from '#core/state/config-digest.js'
import { RunExtensions, checkedExtensions, optionsAsExtensions } from '#core/extension/run-extensions.js'
import type { RunLog } from '#core/log/log.js'
import { flowRulesOf } from '#run/provenance/options.js'
import { provenance } from '#run/provenance/provenance.js'
import { memoryLog } from '#store/memory-log.js'
import type { SigningKey } from '#core/loop/signature.js'
import type { SkillsOptions } from '#toolbox/skills/options.js'
import type { OutputType, OutputValidator } from '#core/tools/output-type.js'
import { parseSubagents } from '#toolbox/agents/subagent-options.js'
import type { SubagentSpec } from '#toolbox/agents/subagent-options.js'
import type { SandboxMode, ToolSource, ToolSpec } from '#core/tools/tool-spec.js'
import { didYouMean } from '#util/suggest.js'
import { absolutePath, environment } from '#util/platform/node.js'

/** The parsed options of a harness, with their defaults. */
export interface Config<Output> extends Budgets {
  readonly model: ModelRef | Model | null
  readonly root: string
  readonly sandbox: SandboxMode
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
  /** Null: costs are not counted, unless a limit needs them. */
  readonly prices: Prices | null
  readonly budget: Budget | null
  readonly sequential: boolean
  /** The options that are members of extensions, and the extensions of `use`. */
  readonly extensions: RunExtensions
  readonly log: RunLog
  readonly deps: DepsFactory<unknown> | null
  /** A run without dependencies is refused. */
  readonly needsDeps: boolean
  readonly settings: ModelSettings
  readonly signingKey: SigningKey | null
  readonly configPolicy: ConfigPolicy
}

/** Of all harnesses without any: it never changes. */
export const NO_EXTENSIONS = new RunExtensions([])

/** Ended runs that a harness without a log of its own keeps for `recover`. */
const REMEMBERED_RUNS = 16

/** Where logs are kept for a host that names no log: in memory. */
export const defaultLog = memoryLog

const FILE_INSTRUCTIONS = `You are an agent that works on the files of one workspace.
Search before you read, and read before you edit. Use \`edit\` for targeted changes and \`write\` for whole files.
Start narrow. Make independent tool calls together in one reply, and independent edits in one \`edit\` call; where one
depends on another, make them one after the other, and repeat only what failed.
End with a short statement of what you changed or found, and how you checked it.`

/** Parses the options of a harness and fills in their defaults. Does no I/O. Throws `invalid_options`. */
export function resolveConfig<Output>(given: HarnessOptions<Output>, needsDeps = false): Config<Output> {
  const options = parseHarnessOptions(given)
  const builtinTools = options.builtinTools ?? (options.root === undefined ? [] : DEFAULT_TOOL_NAMES)
  checkBuiltinTools(builtinTools)
  const tools = options.tools ?? []
  const outputType = options.outputType ?? null
  const { outputMode = 'auto' } = options
  const subagents = options.subagents === undefined ? null : parseSubagents(options.subagents)
  const flowRules = flowRulesOf(options)
  const surrounding = [
    ...(flowRules === null ? [] : [provenance(flowRules)]),
    ...optionsAsExtensions(options),
    ...checkedExtensions(options.use ?? []),
  ]
  const extensions = surrounding.length === 0 ? NO_EXTENSIONS : new RunExtensions(surrounding)
  const packaged = [...builtinTools, ...(subagents === null ? [] : ['subagent'])]
  checkToolNames([...packaged, ...[...tools, ...extensions.tools].map((tool) => tool.name)], outputType)
  checkDeferred([...tools, ...extensions.tools])
  checkOutput(outputType, outputMode, options.model)
  return {
    model: options.model ?? environment('THINHARNESS_MODEL') ?? null,
    root: absolutePath(options.root ?? '.'),
    sandbox: options.sandbox ?? 'auto',
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
    // It receives the parsed answer.
    outputValidator: (options.outputValidator ?? null) as OutputValidator<unknown> | null,
    ...budgetsOf(options),
    prices: options.prices === false ? null : (options.prices ?? {}),
    budget: options.budget ?? null,
    sequential: options.toolExecution === 'sequential',
    extensions,
    log: options.log ?? defaultLog({ keepEnded: REMEMBERED_RUNS }),
    deps: options.deps ?? null,
    needsDeps,
    settings: options.settings ?? {},
    signingKey: options.signingKey ?? null,
    configPolicy: options.configPolicy ?? 'compatible',
  }
}

/** Throws `invalid_options` for an output type that is no schema for a model, or that the given model does not support. */
export function checkOutput(
  outputType: OutputType | null,
  mode: StructuredOutputMode | 'auto',
  model: ModelRef | Model | undefined,
): void {
  if (outputType === null) return
  if (typeof model === 'object') outputForm({ type: outputType, mode }, model.capabilities)
  else outputSchemaOf(outputType)
}

function checkBuiltinTools(names: readonly string[]): void {
  const unknown = names.find((name) => !(BUILTIN_TOOL_NAMES as readonly string[]).includes(name))
  if (unknown === undefined) return
  if (unknown === 'bash')
    throw invalidOptions('`bash` is no built-in tool: give `tools` the tool `bash()` of `thinharness/tools`.')
  const known = [...BUILTIN_TOOL_NAMES].sort().map((name) => `\`${name}\``)
  throw invalidOptions(
    `Unknown built-in tool \`${unknown}\`.${didYouMean(unknown, BUILTIN_TOOL_NAMES)} Available: ${known.join(', ')}.`,
  )
}
