import { HarnessError } from '#contracts/errors.js'
import type { ToolSpec } from '../tools/tool-spec.js'
import { isObject } from '#util/json.js'
import type { JsonInput, JsonObject, JsonValue } from '#util/json.js'
import { unknownKey } from '#util/suggest.js'
import type { Hook } from './hooks.js'
import type { WrapModelCall, WrapToolCall } from './wraps.js'
import type { DurablePayloads, StreamEvent } from '../state/events.js'
import type { Labels } from '../state/labels.js'
import type { NoticeSource } from './context.js'
import type { AskInput } from '#contracts/input.js'
import type { Policy } from './policy-decision.js'
import type { OutputFilter } from '#contracts/reply-filter.js'
import type { Tracing } from './run-tracer.js'
import type { ViewPolicy } from './view-policy.js'

/**
 * A feature as a value, for `use` of a harness or of a call. All members but `name` are optional. Policies, hooks that can
 * cancel or change something, redaction and wraps fail closed; views, notices, tracing and other hooks fail open.
 */
export interface Extension<in Deps = unknown> {
  /** Unique among the extensions of a run. */
  readonly name: string
  /** Offered to the model after the harness's own; child runs do not get them. */
  readonly tools?: readonly ToolSpec<Deps>[] | undefined
  readonly hooks?: readonly Hook[] | undefined
  readonly wrapModelCall?: WrapModelCall | undefined
  readonly wrapToolCall?: WrapToolCall | undefined
  /** Child runs have it too. */
  readonly policy?: Policy<Deps> | undefined
  readonly notices?: NoticeSource<Deps> | undefined
  /** Child runs have it too. */
  readonly view?: ViewPolicy<Deps> | undefined
  /**
   * Changes or refuses what somebody says, before it is stored: prompts, steering, and the texts of answers. Rejected or failed, a
   * prompt begins no run; steering and answers are left out, and their sender is told. Sessions ask it before a message is stored.
   * What models and tools say to child runs is not asked about.
   */
  readonly input?: AskInput | undefined
  /**
   * Removes secrets from an event for readers of a stream and for traces; the log and the model get the event itself. Must
   * return an event, not change the one given. The deltas of a reply come when it is complete. Child runs have it too.
   */
  readonly redact?: ((event: StreamEvent) => StreamEvent) | undefined
  /**
   * A filter between the model and every reader, for one reply: `text` gives what readers may see so far, `end` the rest of that
   * part. For text, reasoning and the arguments of calls, and for every other text that comes from a model or a tool; results and
   * what is served from a log pass it too. The log, the model and `resumeState` get the original. It blocks a reply by throwing a
   * `HarnessError` of code `guard_blocked`; a `ModelRetry` has the model asked again. Child runs have it too.
   */
  readonly output?: (() => OutputFilter) | undefined
  readonly tracing?: Tracing | undefined
  /**
   * State of one run. Called before a run begins or continues, and awaited; the members that it returns replace those of the
   * extension. If it fails, the run does not begin.
   */
  readonly forRun?: ((run: ExtensionRun<Deps>) => RunMembers<Deps> | Promise<RunMembers<Deps>>) | undefined
  /** Called once, by `close()` of the harness whose `use` it is in. */
  readonly close?: (() => Promise<void>) | undefined
}

/** The members that an extension can have for one run. */
export interface RunMembers<in Deps = unknown> extends Partial<
  Omit<Extension<Deps>, 'name' | 'forRun' | 'close' | 'tracing'>
> {
  /**
   * In place of the harness's own instructions; of several extensions the outermost one's. For the run itself, never for its
   * children.
   */
  readonly instructions?: string | undefined
  /**
   * Added to the labels of a run that begins: the caller's win, then those of the outermost extension. A run that goes on keeps
   * those it began with. For the run itself, never for its children.
   */
  readonly labels?: Labels | undefined
}

/** A run, for the state that an extension keeps of it. */
export interface ExtensionRun<out Deps = unknown> {
  readonly runId: string
  /** Name of the subagent; null for the run at the top. */
  readonly agentName: string | null
  readonly metadata: JsonObject
  /** The caller's, for a run that begins; else all with which it began. */
  readonly labels: Labels
  /** Why it begins: with a prompt (`fresh`), or going on. */
  readonly begun: DurablePayloads['run_started']['begun']
  readonly deps: Deps
  /** Values that this extension has recorded in this run so far, in order; after a crash or a pause too. */
  readonly recorded: readonly JsonValue[]
  /**
   * Stores a value in the log of the run, as the event `extension_recorded`. Resolves when it is stored. To be called from
   * the members that `forRun` returns, not before the run has begun.
   */
  readonly record: (value: JsonInput) => Promise<void>
}

type Kind = 'function' | 'list' | 'object' | 'string' | 'record of strings'

/** The members of an extension, and what each has to be. */
const MEMBERS = {
  name: 'string',
  tools: 'list',
  hooks: 'list',
  wrapModelCall: 'function',
  wrapToolCall: 'function',
  policy: 'function',
  notices: 'function',
  view: 'function',
  redact: 'function',
  output: 'function',
  input: 'function',
  tracing: 'object',
  forRun: 'function',
  close: 'function',
  instructions: 'string',
  labels: 'record of strings',
} as const satisfies Readonly<Record<keyof Extension | keyof RunMembers, Kind>>

const ONLY_OF_RUN: readonly string[] = ['instructions', 'labels'] satisfies readonly (keyof RunMembers)[]
const NAMES = Object.keys(MEMBERS)
const OF_EXTENSION = NAMES.filter((name) => !ONLY_OF_RUN.includes(name))
const OF_RUN = NAMES.filter((name) => !['name', 'forRun', 'close', 'tracing'].includes(name))

/**
 * Checks an extension and gives it back, typed.
 * @throws HarnessError `invalid_options` for an unknown member, with the nearest known name, and for one of another type.
 */
export function defineExtension<Deps = unknown>(extension: Extension<Deps>): Extension<Deps> {
  checkExtension(extension)
  return extension
}

/** Refuses a value that is no extension. */
export function checkExtension(extension: unknown): asserts extension is Extension {
  if (!isObject(extension)) {
    const got = extension === null ? 'null' : typeof extension
    throw invalidExtension(`Expected an extension to be an object with a \`name\`, got ${got}.`)
  }
  checkMembers(extension, OF_EXTENSION, 'member of an extension')
  const { name } = extension
  if (typeof name !== 'string' || name === '') throw invalidExtension('Expected `name` of an extension to be a string.')
}

/** Refuses what `forRun` cannot return. */
export function checkRunMembers(name: string, members: unknown): asserts members is RunMembers {
  const what = `member of what \`forRun\` of extension \`${name}\` returns`
  if (!isObject(members)) throw invalidExtension(`Expected \`forRun\` of extension \`${name}\` to return an object.`)
  checkMembers(members, OF_RUN, what)
}

function checkMembers(given: Readonly<Record<string, unknown>>, known: readonly string[], what: string): void {
  const unknown = unknownKey(given, known, what)
  if (unknown !== undefined) throw invalidExtension(unknown)
  for (const member of known) {
    const value = given[member]
    const kind = MEMBERS[member as keyof typeof MEMBERS]
    if (value === undefined || FITS[kind](value)) continue
    throw invalidExtension(`Expected \`${member}\` of an extension to be a ${kind}, got ${typeof value}.`)
  }
}

const FITS: Readonly<Record<Kind, (value: unknown) => boolean>> = {
  function: (value) => typeof value === 'function',
  list: Array.isArray,
  object: isObject,
  string: (value) => typeof value === 'string',
  'record of strings': (value) => isObject(value) && Object.values(value).every((each) => typeof each === 'string'),
}

function invalidExtension(message: string): HarnessError {
  return new HarnessError('invalid_options', message)
}
