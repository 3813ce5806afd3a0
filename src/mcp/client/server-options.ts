import { HarnessError } from '../../contracts/errors.js'
import type { SamplingReply, SamplingRequest, SourceCall } from '../../tools/source.js'
import type { ToolAnnotations, ToolReach } from '../../tools/spec.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import { unknownKey } from '../../util/unknown-key.js'
import type { ChangedToolRule } from './pins.js'

/** What can be said of every server, however it is reached. All optional. */
export interface McpServerOptions {
  /** Named in errors and in the metadata of results. Default: command and arguments, or the address without its query. */
  readonly id?: string
  /** Put before the name of each tool, with a `_`. Default: none. */
  readonly toolPrefix?: string
  /** Only these tools, by the server's own names. Default: all. */
  readonly includeTools?: readonly string[]
  readonly excludeTools?: readonly string[]
  /** A run fails when the server does. Default false: its tools are left out, and a warning is told. */
  readonly required?: boolean
  readonly timeouts?: {
    /** To a usable connection, in ms. Default 30,000. */
    readonly connectMs?: number
    /** From a call to its result, in ms; each progress that the server tells starts it anew. Default 300,000. */
    readonly callMs?: number
  }
  /** Whether a person must agree to a call. Default false. */
  readonly requiresApproval?: boolean | ((call: McpToolCall) => boolean | Promise<boolean>)
  /** A result that the server calls an error counts against the tool's retry budget. Default false. */
  readonly retryErrors?: boolean
  /** What a model is offered. `resources` and `prompts` add tools that list and read them. Default `['tools']`. */
  readonly offer?: readonly McpOffer[]
  /** The server's own words to a model join the system prompt. Default false. */
  readonly useInstructions?: boolean
  /** Absolute paths that the server is told of. Default: the harness's workspace. */
  readonly roots?: readonly string[]
  /**
   * Answers a server that asks for a model's reply: `true` is the harness's model, within the run's budget; `ask` the same
   * once a person has agreed, as a pending item of the run; a function decides for itself (null refuses), see `sampleWith`.
   * Default: the server may not ask. With `true` and `ask` a run calls the server's tools one at a time, so that it is
   * known which call asks.
   */
  readonly sampling?: true | 'ask' | ((request: SamplingRequest, call: SourceCall) => Promise<SamplingReply | null>)
  /** The server may ask a person. Default true. */
  readonly elicitation?: boolean
  /** Digests of the definitions that are trusted, by the server's tool names, from `digests()`. Default: the first list. */
  readonly pins?: Readonly<Record<string, string>>
  /** What is done with a definition that is not pinned. Default `report`. */
  readonly changedTools?: ChangedToolRule
}

export type McpOffer = (typeof OFFERS)[number]

/** A call that a model wants to make. */
export interface McpToolCall {
  /** The server's own name of the tool. */
  readonly toolName: string
  readonly args: JsonObject
  /** What the server says of the tool. Not to be trusted more than the server is. */
  readonly annotations: ToolAnnotations
}

/** Options of every server, checked and with their defaults. */
export interface ServerSettings {
  readonly id: string
  readonly toolPrefix: string
  readonly includeTools: readonly string[] | null
  readonly excludeTools: readonly string[]
  readonly required: boolean
  readonly connectMs: number
  readonly callMs: number
  readonly requiresApproval: NonNullable<McpServerOptions['requiresApproval']>
  readonly retryErrors: boolean
  readonly offer: readonly McpOffer[]
  readonly useInstructions: boolean
  readonly roots: readonly string[] | null
  readonly sampling: McpServerOptions['sampling'] | null
  readonly elicitation: boolean
  readonly pins: Readonly<Record<string, string>> | null
  readonly changedTools: ChangedToolRule
  /** What the server can touch, as far as it is known here. */
  readonly reach: ToolReach
}

const OFFERS = ['tools', 'resources', 'prompts'] as const

const KNOWN = [
  'id',
  'toolPrefix',
  'includeTools',
  'excludeTools',
  'required',
  'timeouts',
  'requiresApproval',
  'retryErrors',
  'offer',
  'useInstructions',
  'roots',
  'sampling',
  'elicitation',
  'pins',
  'changedTools',
] as const satisfies readonly (keyof McpServerOptions)[]

/** Checks the options of a server. `own` are those that its transport adds; `factory` names it in errors. */
export function resolveServerOptions(
  options: McpServerOptions,
  {
    factory,
    own,
    defaultId,
    reach = {},
  }: {
    readonly factory: string
    readonly own: readonly string[]
    readonly defaultId: string
    readonly reach?: ToolReach
  },
): ServerSettings {
  const problem = unknownKey(options, [...KNOWN, ...own], `option of \`${factory}\``)
  if (problem !== undefined) throw invalid(problem)
  const { timeouts = {}, offer = ['tools'] } = options
  const unknownTimeout = unknownKey(timeouts, ['connectMs', 'callMs'], `timeout of \`${factory}\``)
  if (unknownTimeout !== undefined) throw invalid(unknownTimeout)
  return {
    id: nonEmpty('id', options.id ?? defaultId),
    toolPrefix: options.toolPrefix ?? '',
    includeTools: options.includeTools === undefined ? null : names('includeTools', options.includeTools),
    excludeTools: names('excludeTools', options.excludeTools ?? []),
    required: options.required ?? false,
    connectMs: duration('connectMs', timeouts.connectMs ?? 30_000),
    callMs: duration('callMs', timeouts.callMs ?? 300_000),
    requiresApproval: options.requiresApproval ?? false,
    retryErrors: options.retryErrors ?? false,
    offer: offer.map((each) => oneOf('offer', each, OFFERS)),
    useInstructions: options.useInstructions ?? false,
    roots: options.roots === undefined ? null : names('roots', options.roots),
    sampling: samplingOf(options.sampling),
    elicitation: options.elicitation ?? true,
    pins: options.pins ?? null,
    reach,
    changedTools: oneOf('changedTools', options.changedTools ?? 'report', ['report', 'refuse']),
  }
}

function samplingOf(sampling: unknown): ServerSettings['sampling'] {
  if (sampling === undefined) return null
  if (sampling === true || sampling === 'ask') return sampling
  if (typeof sampling === 'function') return sampling as ServerSettings['sampling']
  throw invalid('Expected `sampling` of an MCP server to be `true`, `ask` or a function.')
}

/** A text with something in it. */
export function nonEmpty(name: string, value: unknown): string {
  if (typeof value === 'string' && value.trim() !== '') return value
  throw invalid(`Expected \`${name}\` of an MCP server to be a text, got ${shown(value)}.`)
}

/** A list of texts. */
export function names(name: string, value: unknown): readonly string[] {
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value
  throw invalid(`Expected \`${name}\` of an MCP server to be a list of texts, got ${shown(value)}.`)
}

/** Texts by name. A value that is not there is refused: a server without its key fails later and less plainly. */
export function texts(name: string, value: unknown): Readonly<Record<string, string>> {
  if (!isObject(value)) throw invalid(`Expected \`${name}\` of an MCP server to be an object, got ${shown(value)}.`)
  for (const [key, each] of Object.entries(value)) {
    if (typeof each === 'string') continue
    throw invalid(`Expected \`${name}.${key}\` of an MCP server to be a text, got ${shown(each)}.`)
  }
  return value as Readonly<Record<string, string>>
}

/** An `invalid_options` error. */
export function invalid(message: string): HarnessError {
  return new HarnessError('invalid_options', message)
}

/** Longest wait that a timer of the platform knows, in ms. */
const LONGEST_TIMER_MS = 2_147_483_647

function duration(name: string, value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= LONGEST_TIMER_MS) return value
  throw invalid(
    `Expected \`timeouts.${name}\` of an MCP server to be a whole number of ms from 1 to ${LONGEST_TIMER_MS}, got ${shown(value)}.`,
  )
}

function oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((each) => each === value)
  if (found !== undefined) return found
  const list = allowed.map((each) => `\`${each}\``).join(', ')
  throw invalid(`Expected \`${name}\` of an MCP server to be one of ${list}, got ${shown(value)}.`)
}

/** Never the value of a text: it may be a key. */
function shown(value: unknown): string {
  if (typeof value === 'string') return value.trim() === '' ? 'an empty text' : `a text of ${value.length} characters`
  if (value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean') {
    return `\`${String(value)}\``
  }
  return Array.isArray(value) ? 'a list' : `a value of type ${typeof value}`
}
