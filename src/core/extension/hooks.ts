import { messageOf } from '#contracts/errors.js'
import type { HarnessError } from '#contracts/errors.js'
import { CONTENT_SOURCES } from '#contracts/entry.js'
import type { ContentPart, ContentSource } from '#contracts/entry.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import type { HarnessResult, StopReason } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import type { Envelope } from '../tools/boundary/envelope.js'
import type { ToolAnnotations } from '../tools/tool-spec.js'
import type { RunAbort } from '#util/abort.js'
import { isObject, readOnly } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { Mismatch } from '#util/mismatch.js'
import {
  boolean,
  either,
  functionOf,
  jsonObject,
  list,
  milliseconds,
  object,
  oneOf,
  optional,
  partial,
  string,
  where,
} from '#util/validate.js'
import { withTimeout } from '#util/timeout.js'
import type { LimitKind } from '../state/run-rules.js'
import { failedMember, OF_HARNESS } from './context.js'
import type { Decide } from '../model-session.js'
import type { Named } from './context.js'

/** Input of each hook, in addition to `event`, `runId`, `deps` and `metadata`. Read-only data. */
export interface HookContexts {
  run_start: {
    readonly prompt: string | readonly ContentPart[]
    readonly root: string
    readonly maxModelRequests: number | null
    readonly maxToolCalls: number | null
  }
  user_prompt_submit: { readonly prompt: string | readonly ContentPart[] }
  before_tool_call: {
    readonly callId: string
    readonly toolName: string
    /** Raw JSON text. */
    readonly arguments: string
    readonly toolIndex: number
    /** Null for a tool that does not exist. */
    readonly tool: { readonly name: string; readonly description: string; readonly annotations: ToolAnnotations } | null
  }
  after_tool_call: {
    readonly callId: string
    readonly toolName: string
    readonly arguments: string
    readonly toolIndex: number
    /** The envelope's JSON text, before any hook. */
    readonly originalOutput: string
    /** The same, after the hooks before this one. */
    readonly output: string
    readonly envelope: Envelope
    readonly durationMs: number
  }
  before_subagent_run: ChildAbout
  after_subagent_run: ChildAbout & {
    readonly result: HarnessResult<unknown> | null
    readonly error: HarnessError | null
    readonly usage: RunUsage
  }
  limit_reached: { readonly limitKind: LimitKind; readonly limitValue: number; readonly currentCount: number }
  run_end: {
    readonly result: HarnessResult<unknown> | null
    readonly error: HarnessError | null
    readonly stopReason: StopReason
    readonly usage: RunUsage
  }
}

/** A run that a call of this one starts. */
interface ChildAbout {
  /** Name of the agent; `default` for one without a name. */
  readonly agent: string
  readonly prompt: string | readonly ContentPart[]
  readonly childRunId: string
  /** The call that starts it. */
  readonly callId: string
  /** Names of its tools. */
  readonly tools: readonly string[]
}

/** Answers of each hook; every hook may also return nothing. */
export interface HookAnswers {
  run_start: unknown
  /** `context` is appended to the prompt; `cancel` ends the run, with the given reason. */
  user_prompt_submit: { readonly context?: string | readonly string[]; readonly cancel?: string | true } | undefined
  /** `cancel` answers the call instead of the tool; `args` replace the model's arguments and are validated like them. */
  before_tool_call: { readonly cancel?: string | true; readonly args?: JsonObject } | undefined
  /** The result for the model; `output` wins over `envelope`. `source`: of its content, in place of that which the tool declares. */
  after_tool_call:
    { readonly output?: string; readonly envelope?: Envelope; readonly source?: ContentSource } | undefined
  /** `cancel` prevents the run; for its call, the run has failed. */
  before_subagent_run: { readonly cancel?: string | true } | undefined
  after_subagent_run: unknown
  limit_reached: unknown
  run_end: unknown
}

export type HookEvent = keyof HookContexts

const HOOK_EVENTS = [
  'run_start',
  'user_prompt_submit',
  'before_tool_call',
  'after_tool_call',
  'before_subagent_run',
  'after_subagent_run',
  'limit_reached',
  'run_end',
] as const

export type HookContext<Event extends HookEvent> = HookContexts[Event] & {
  readonly event: Event
  readonly runId: string
  /** The dependencies of the run: those of its tools. */
  readonly deps: unknown
  /** The run's metadata, a copy for each firing. */
  readonly metadata: JsonObject
  readonly decide: Decide
}

type HookOf<Event extends HookEvent> = {
  readonly event: Event
  readonly handler: (context: HookContext<Event>) => HookAnswers[Event] | Promise<HookAnswers[Event]>
  /** Names of the tools to fire for; for the tool events only. Default: all. */
  readonly tools?: readonly string[]
  /**
   * Names of the agents whose runs to fire for, `*` for all. Default: the run itself, not those that its tools start. For
   * the subagent events: of the agents that are started, by whatever run. Default: all.
   */
  readonly agents?: readonly string[]
  /**
   * Longest time the handler may take, in ms; then it has failed. Default: none. Once the run has been aborted it waits
   * for a handler no longer than 250 ms, and 2 s for one of `run_end`.
   */
  readonly timeoutMs?: number
  /**
   * The effect of a failure of the handler: it is reported and skipped (`open`), or nothing happens that the hook could have
   * prevented (`closed`): the call is not made, the result is not shown, the child or the run does not begin; for an event
   * that only observes, the run fails with `hook_failed`. Default: `closed` for `user_prompt_submit`, `before_tool_call`,
   * `after_tool_call` and `before_subagent_run`, `open` for the others.
   */
  readonly failMode?: 'open' | 'closed'
}

/** Hooks that can cancel or change something. */
const GUARDS: ReadonlySet<HookEvent> = new Set([
  'user_prompt_submit',
  'before_tool_call',
  'after_tool_call',
  'before_subagent_run',
])

/** Asked at a fixed point of a run. Hooks of one event are asked in order, each awaited. */
export type Hook = { [Event in HookEvent]: HookOf<Event> }[HookEvent]

/** The run that asks. */
interface AskingRun {
  readonly abort: RunAbort
  /** Null for the run at the top. */
  readonly agentName: string | null
  /** Reports a hook that failed. */
  readonly hookFailed: (hookEvent: HookEvent, message: string, extension?: string) => Promise<void>
}

/** The context for the next hook, after the answer of one; null: no other hook is asked. */
export type FoldAnswer<Event extends HookEvent> = (
  context: HookContext<Event>,
  answer: NonNullable<HookAnswers[Event]>,
) => HookContext<Event> | null

/** How long hooks may still take once their run was aborted, in ms; at the end of a run there may be something to write. */
const GRACE_MS = 250
const LAST_GRACE_MS = 2_000

/** The hooks of extensions, by event; asking costs nothing if there are none. */
export class HookSet {
  readonly #byEvent = new Map<HookEvent, Hook[]>()
  readonly #extensions = new Map<unknown, string>()

  constructor(hooks: readonly Named<Hook>[]) {
    for (const { extension, member } of hooks) {
      const hook = parseHook(member)
      if (!extension.startsWith(OF_HARNESS)) this.#extensions.set(hook, extension)
      this.#byEvent.set(hook.event, [...(this.#byEvent.get(hook.event) ?? []), hook])
    }
  }

  /** The events at which some hook is asked, by whatever run. */
  get events(): readonly HookEvent[] {
    return [...this.#byEvent.keys()]
  }

  /** True if some hook of the event is asked by the runs of an agent, null: by the run at the top; about calls of that tool. */
  has(event: HookEvent, agentName: string | null, toolName?: string): boolean {
    const hooks = this.#byEvent.get(event)
    if (hooks === undefined) return false
    return hooks.some(
      (hook) =>
        (isOfChildren(event) || firesFor(hook.agents, agentName)) &&
        (toolName === undefined || hook.tools === undefined || hook.tools.includes(toolName)),
    )
  }

  /**
   * Asks the hooks of `event` in order, each with the context that `fold` made of the answers before; stops when
   * `fold` returns null. A hook that throws, takes too long or gives an answer of a wrong shape is reported. Then one that
   * fails open is skipped, and for one that fails closed this rejects with `hook_failed`. A hook that does not end when the
   * run is aborted is left alone.
   */
  async ask<Event extends HookEvent>(
    context: HookContext<Event>,
    run: AskingRun,
    fold: FoldAnswer<Event>,
  ): Promise<void> {
    let current = context
    for (const hook of (this.#byEvent.get(context.event) ?? []) as readonly unknown[] as readonly HookOf<Event>[]) {
      if (hook.tools !== undefined && !('toolName' in current && hook.tools.includes(current.toolName))) continue
      if (!isAskedAbout(hook, current, run.agentName)) continue
      const answer = await askOne(hook, current, run, this.#extensions.get(hook))
      if (answer === undefined) continue
      const next = fold(current, answer)
      if (next === null) return
      current = next
    }
  }
}

/** Hooks about child runs are asked by whatever run starts a child of their agents, others by the runs of their agents. */
function isAskedAbout({ agents }: Pick<Hook, 'agents'>, context: object, agentName: string | null): boolean {
  if ('agent' in context) return agents === undefined || firesFor(agents, context.agent as string)
  return firesFor(agents, agentName)
}

async function askOne<Event extends HookEvent>(
  hook: HookOf<Event>,
  context: HookContext<Event>,
  run: AskingRun,
  extension: string | undefined,
): Promise<NonNullable<HookAnswers[Event]> | undefined> {
  try {
    const fresh = { ...readOnly({ ...context }), deps: context.deps, metadata: structuredClone(context.metadata) }
    return checkedAnswer(context.event, await patiently(hook, fresh, run.abort))
  } catch (cause) {
    await run.hookFailed(context.event, messageOf(cause), extension)
    if (cause instanceof LeftBehind || !failsClosed(hook)) return undefined
    throw failedMember(`A \`${context.event}\` hook`, cause)
  }
}

function failsClosed({ event, failMode }: Pick<Hook, 'event' | 'failMode'>): boolean {
  return failMode === undefined ? GUARDS.has(event) : failMode === 'closed'
}

/** Thrown in place of the answer of a hook that had not ended when its run was aborted. */
class LeftBehind extends Error {}

/** The answer of a hook, within the time that it and its run allow. */
function patiently<Event extends HookEvent>(
  { handler, timeoutMs }: HookOf<Event>,
  context: HookContext<Event>,
  abort: RunAbort,
): Promise<unknown> {
  const answered = Promise.resolve(handler(context))
  const inTime = timeoutMs === undefined ? answered : withTimeout(answered, timeoutMs)
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    const graceMs = context.event === 'run_end' ? LAST_GRACE_MS : GRACE_MS
    const stopListening = abort.onAbort(() => {
      timer = setTimeout(() => reject(new LeftBehind('It had not ended when the run was aborted.')), graceMs)
    })
    const finish = (): void => {
      clearTimeout(timer)
      stopListening()
    }
    void inTime.finally(finish).then(resolve, reject)
  })
}

type AnyHook = Omit<HookOf<HookEvent>, 'handler'> & { readonly handler: Hook['handler'] }

const names = where(list(string), 'a list with at least one name', (given) => given.length > 0)

const HOOK = object<AnyHook>({
  event: oneOf(...HOOK_EVENTS),
  handler: functionOf(),
  tools: optional(names),
  agents: optional(names),
  timeoutMs: optional(milliseconds),
  failMode: optional(oneOf('open', 'closed')),
})

function parseHook(hook: unknown): Hook {
  const event = isObject(hook) ? hook['event'] : undefined
  const name = isHookEvent(event) ? `a \`${event}\` hook` : 'a hook'
  const { tools, ...rest } = parse(HOOK, hook, name)
  if (tools !== undefined && event !== 'before_tool_call' && event !== 'after_tool_call') {
    throw invalidOptions(`\`tools\` filters tool events only; ${name} cannot have it.`)
  }
  // The handler of an event has the type of that event.
  return { ...rest, ...(tools !== undefined && { tools }) } as Hook
}

function isHookEvent(event: unknown): event is HookEvent {
  return (HOOK_EVENTS as readonly unknown[]).includes(event)
}

/** Asked by the run that starts another. */
function isOfChildren(event: HookEvent): boolean {
  return event === 'before_subagent_run' || event === 'after_subagent_run'
}

function firesFor(agents: readonly string[] | undefined, agentName: string | null): boolean {
  if (agents === undefined) return agentName === null
  return agents.includes('*') || (agentName !== null && agents.includes(agentName))
}

/**
 * The answer of a hook of `event`, if the event has a use for one. Throws a plain error for an answer that the event cannot
 * use: a misspelt policy is reported, not mistaken for one without an opinion.
 */
export function checkedAnswer(event: HookEvent, answer: unknown): object | undefined {
  const shape = isAsked(event) ? ANSWERS[event] : undefined
  if (shape === undefined || answer === undefined || answer === null) return undefined
  const read = shape.read(answer)
  if (read instanceof Mismatch) throw new TypeError(read.message(`the answer of a \`${event}\` hook`))
  return read
}

type AskedEvent = 'user_prompt_submit' | 'before_tool_call' | 'after_tool_call' | 'before_subagent_run'
type AnswerTo<Event extends AskedEvent> = NonNullable<HookAnswers[Event]>

const cancel = either(string, oneOf(true))
const plainJson = where(jsonObject, 'an object of plain JSON', isJson)

const OWN_SOURCE = { kind: oneOf(...CONTENT_SOURCES), name: optional(string), tool: optional(string) }
/** The source of a content, as JSON. */
export const CONTENT_SOURCE = object<ContentSource>({ ...OWN_SOURCE, sources: optional(list(object(OWN_SOURCE))) })

const ANSWERS = {
  user_prompt_submit: partial<AnswerTo<'user_prompt_submit'>>({
    context: either(string, list(string, 'a list of strings')),
    cancel,
  }),
  before_tool_call: partial<AnswerTo<'before_tool_call'>>({ cancel, args: plainJson }),
  after_tool_call: partial<AnswerTo<'after_tool_call'>>({
    output: string,
    envelope: object<Envelope>({ ok: boolean, content: string, metadata: plainJson }),
    source: CONTENT_SOURCE,
  }),
  before_subagent_run: partial<AnswerTo<'before_subagent_run'>>({ cancel }),
}

function isAsked(event: HookEvent): event is AskedEvent {
  return Object.hasOwn(ANSWERS, event)
}

function isJson(value: unknown): boolean {
  try {
    JSON.stringify(value)
    return isObject(value)
  } catch {
    return false
  }
}
