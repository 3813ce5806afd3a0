import { HarnessError, messageOf } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import { withTimeout } from '../../util/timeout.js'
import { invalidOptions, parse } from '../../contracts/parse.js'
import { functionOf, list, milliseconds, object, oneOf, optional, string, where } from '../../util/shape.js'
import type { RunAbort } from '../../util/abort.js'
import { checkedAnswer } from './hook-answer.js'
import type { HookAnswers, HookContexts, HookEvent } from './hook-events.js'
import type { Wraps } from './wraps.js'

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
interface Asking {
  readonly abort: RunAbort
  /** Reports a hook that failed. */
  readonly hookFailed: (hookEvent: HookEvent, message: string) => Promise<void>
}

/** How long hooks may still take once their run was aborted, in ms; at the end of a run there may be something to write. */
const GRACE_MS = 250
const LAST_GRACE_MS = 2_000

const NO_WRAPS = { model: [], tool: [] }

/** The hooks of a harness, by event, and its middleware; asking costs nothing if there are none. */
export class HookSet {
  readonly #byEvent = new Map<HookEvent, Hook[]>()
  readonly #ofAgents = new Map<string, HookSet>()
  readonly wraps: Wraps

  constructor(hooks: readonly Hook[], wraps: Wraps = NO_WRAPS) {
    this.wraps = wraps
    for (const hook of hooks.map(parseHook)) {
      this.#byEvent.set(hook.event, [...(this.#byEvent.get(hook.event) ?? []), hook])
    }
  }

  /** Those that fire for the runs of an agent; null is the run at the top. */
  of(agentName: string | null): HookSet {
    if (this.#byEvent.size === 0) return this
    const key = agentName ?? ''
    let set = this.#ofAgents.get(key)
    if (set === undefined) {
      const hooks = [...this.#byEvent.values()]
        .flat()
        .filter(({ event, agents }) => isOfChildren(event) || firesFor(agents, agentName))
      this.#ofAgents.set(key, (set = new HookSet(hooks, this.wraps)))
    }
    return set
  }

  /** At which some hook is asked. */
  get events(): readonly HookEvent[] {
    return [...this.#byEvent.keys()]
  }

  /** True if some hook is asked about calls of the tool. */
  hasFor(event: 'before_tool_call' | 'after_tool_call', toolName: string): boolean {
    return this.#byEvent.get(event)?.some(({ tools }) => tools === undefined || tools.includes(toolName)) === true
  }

  has(event: HookEvent): boolean {
    return this.#byEvent.has(event)
  }

  /**
   * Asks the hooks of `event` in order, each with the context that `fold` made of the answers before; stops when
   * `fold` returns null. A hook that throws, takes too long or gives an answer of a wrong shape is reported. Then one that
   * fails open is skipped, and for one that fails closed this rejects with `hook_failed`. A hook that does not end when the
   * run is aborted is left alone.
   */
  async ask<Event extends HookEvent>(
    context: HookContext<Event>,
    run: Asking,
    fold: (context: HookContext<Event>, answer: NonNullable<HookAnswers[Event]>) => HookContext<Event> | null,
  ): Promise<void> {
    let current = context
    for (const hook of (this.#byEvent.get(context.event) ?? []) as readonly unknown[] as readonly HookOf<Event>[]) {
      if (hook.tools !== undefined && !('toolName' in current && hook.tools.includes(current.toolName))) continue
      if ('agent' in current && hook.agents !== undefined && !firesFor(hook.agents, current.agent)) continue
      const answer = await this.#askOne(hook, current, run)
      if (answer === undefined) continue
      const next = fold(current, answer)
      if (next === null) return
      current = next
    }
  }

  async #askOne<Event extends HookEvent>(
    hook: HookOf<Event>,
    context: HookContext<Event>,
    run: Asking,
  ): Promise<NonNullable<HookAnswers[Event]> | undefined> {
    try {
      const fresh = { ...context, metadata: structuredClone(context.metadata) }
      return checkedAnswer(context.event, await patiently(hook, fresh, run.abort))
    } catch (cause) {
      await run.hookFailed(context.event, messageOf(cause))
      if (cause instanceof LeftBehind || !failsClosed(hook)) return undefined
      throw new HarnessError('hook_failed', `A \`${context.event}\` hook failed: ${messageOf(cause)}`, { cause })
    }
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
