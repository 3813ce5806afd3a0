import type { SamplingReply, SamplingRequest, SourceCall } from '#core/tools/tool-source.js'
import type { ToolAnnotations, ToolReach } from '#core/tools/tool-spec.js'
import type { JsonObject } from '#util/json.js'
import {
  boolean,
  either,
  filledString,
  functionOf,
  list,
  milliseconds,
  oneOf,
  optional,
  partial,
  record,
  string,
} from '#util/validate.js'
import type { Complete, Fields, Given } from '#util/validate.js'
import type { ChangedToolRule } from './pins.js'

/** Options of every server, whatever its transport. All optional. */
export interface McpServerOptions {
  /** Named in errors and in the metadata of results. Default: the package, the file of code or the program, or the address without its query. */
  readonly id?: string | undefined
  /** Prefix of each tool's name, followed by a `_`. Default: none. */
  readonly toolPrefix?: string | undefined
  /** Only these tools, by the server's own names. Default: all. */
  readonly includeTools?: readonly string[] | undefined
  readonly excludeTools?: readonly string[] | undefined
  /** A run fails if the server does. Default false: its tools are left out, and a warning is emitted. */
  readonly required?: boolean | undefined
  readonly timeouts?: Timeouts | undefined
  /** A person must approve each call, or those for which the function returns true. Default false. */
  readonly requiresApproval?: boolean | ((call: McpToolCall) => boolean | Promise<boolean>) | undefined
  /** A result that the server marks as an error counts against the tool's retry budget. Default false. */
  readonly retryErrors?: boolean | undefined
  /** The features that a model is offered. `resources` and `prompts` add tools that list and read them. Default `['tools']`. */
  readonly offer?: readonly McpOffer[] | undefined
  /** The server's instructions join the system prompt. Default false. */
  readonly useInstructions?: boolean | undefined
  /** Absolute paths that the server is given as its roots. Default: the harness's workspace. */
  readonly roots?: readonly string[] | undefined
  /**
   * Answers a server that asks for a model's reply: `true` is the harness's model, within the run's budget; `ask` the same
   * once a person has agreed, as a pending item of the run; a function decides for itself (null refuses), see `sampleWith`.
   * Default: the server may not ask. With `true` and `ask` a run calls the server's tools one at a time, so that it is
   * known which call asks.
   */
  readonly sampling?:
    true | 'ask' | ((request: SamplingRequest, call: SourceCall) => Promise<SamplingReply | null>) | undefined
  /** The server may ask a person. Default true. */
  readonly elicitation?: boolean | undefined
  /** Digests of the trusted definitions, by the server's tool names, from `digests()`. Default: those of the first list. */
  readonly pins?: Readonly<Record<string, string>> | undefined
  /** How a definition that is not pinned is handled. Default `report`. */
  readonly changedTools?: ChangedToolRule | undefined
}

interface Timeouts {
  /** To a usable connection, in ms. Default 30,000. */
  readonly connectMs?: number | undefined
  /** From a call to its result, in ms; each progress notification of the server restarts it. Default 300,000. */
  readonly callMs?: number | undefined
}

export type McpOffer = (typeof OFFERS)[number]

/** A call that a model wants to make. */
export interface McpToolCall {
  /** The server's own name of the tool. */
  readonly toolName: string
  readonly args: JsonObject
  /** The server's own description of the tool: no more trustworthy than the server. */
  readonly annotations: ToolAnnotations
}

/** Options of every server, parsed, with their defaults. */
export interface ServerSettings
  extends
    Complete<Omit<McpServerOptions, 'timeouts' | 'includeTools' | 'roots' | 'sampling' | 'pins'>>,
    Complete<Timeouts> {
  readonly includeTools: readonly string[] | null
  readonly roots: readonly string[] | null
  readonly sampling: NonNullable<McpServerOptions['sampling']> | null
  readonly pins: Readonly<Record<string, string>> | null
  /** Everything that the server can touch, as far as known. */
  readonly reach: ToolReach
}

const DEFAULTS: Omit<ServerSettings, 'id' | 'reach'> = {
  toolPrefix: '',
  includeTools: null,
  excludeTools: [],
  required: false,
  connectMs: 30_000,
  callMs: 300_000,
  requiresApproval: false,
  retryErrors: false,
  offer: ['tools'],
  useInstructions: false,
  roots: null,
  sampling: null,
  elicitation: true,
  pins: null,
  changedTools: 'report',
}

const OFFERS = ['tools', 'resources', 'prompts'] as const

const names = list(string, 'a list of names')

/** The options of every server. */
export const SERVER_OPTIONS: Fields<McpServerOptions> = {
  id: optional(filledString),
  toolPrefix: optional(string),
  includeTools: optional(names),
  excludeTools: optional(names),
  required: optional(boolean),
  timeouts: optional(partial({ connectMs: milliseconds, callMs: milliseconds })),
  requiresApproval: optional(either(boolean, functionOf<Exclude<ServerSettings['requiresApproval'], boolean>>())),
  retryErrors: optional(boolean),
  offer: optional(list(oneOf(...OFFERS))),
  useInstructions: optional(boolean),
  roots: optional(list(string, 'a list of paths')),
  sampling: optional(
    either(oneOf(true, 'ask'), functionOf<Exclude<NonNullable<ServerSettings['sampling']>, true | 'ask'>>()),
  ),
  elicitation: optional(boolean),
  pins: optional(record(string)),
  changedTools: optional(oneOf('report', 'refuse')),
}

/** Parsed options with their defaults. */
export function serverSettings(
  { timeouts, ...options }: Given<McpServerOptions>,
  { defaultId, reach }: { readonly defaultId: string; readonly reach: ToolReach },
): ServerSettings {
  return { ...DEFAULTS, id: defaultId, ...(timeouts as Given<Timeouts> | undefined), ...options, reach }
}
