import { HarnessError } from '#contracts/errors.js'
import { NO_USAGE } from '#contracts/run-usage.js'
import { firstDifference } from '#util/first-difference.js'
import { isObject } from '#util/json.js'
import type { Answer } from '../state/answers.js'
import type { ConfigDigest } from '../state/config-digest.js'
import { REPLAYED_KINDS } from '../state/events.js'
import type { DurableEvent } from '../state/events.js'
import { endedError } from '../state/closing.js'
import { isByRules } from './run-failure.js'

/** Members that differ at another time and place, and values that a caller gave to the run. */
const INCIDENTAL: ReadonlySet<string> = new Set([
  'at',
  'version',
  'durationMs',
  'root',
  'state',
  'seq',
  'metadata',
  'history',
  'promptAddition',
  'traceparent',
])

/** Parts of the configuration that may differ from the recording. */
export type AllowedPart = 'instructions' | 'tools'

/** The differences from a recording that a replay accepts. */
export interface AllowedDifferences {
  readonly parts: readonly AllowedPart[]
  /** Called with each of them, in plain words. */
  readonly report: (difference: string) => void
}

/** The message of a run whose time was up. */
const TIME_IS_UP = /^The run reached its limit: time_ms=/

const NONE: AllowedDifferences = { parts: [], report: () => undefined }

/** The recording ends here, or continues in another process. */
export class RecordingCut extends Error {
  constructor() {
    super('The recording ends here.')
  }
}

/** The events of a run that was recorded, and how far it has been run again. */
export class Recording {
  readonly #events: readonly DurableEvent[]
  readonly #allowed: AllowedDifferences
  /** The recorded configuration of the last request. */
  #config: ConfigDigest | undefined
  #index = 0
  /** The first difference between the run and its recording. */
  mismatch: HarnessError | null = null

  constructor(events: readonly DurableEvent[], allowed: AllowedDifferences = NONE) {
    this.#events = events
    this.#allowed = allowed
  }

  /** The next event; undefined at the end. */
  get next(): DurableEvent | undefined {
    return this.#events[this.#index]
  }

  get last(): DurableEvent | null {
    return this.#events[this.#index - 1] ?? null
  }

  /** The error of a run that was aborted here, whatever its own rules would have decided next. */
  get abort(): HarnessError | undefined {
    const { next } = this
    if (next?.kind !== 'run_failed') return undefined
    return isByRules(next.code) && !TIME_IS_UP.test(next.message) ? undefined : recordedFailure(next)
  }

  /** The answers of people if the run was continued at the next event. */
  get answersAhead(): readonly Answer[] {
    const ahead = this.#events.slice(this.#index + 1).find(({ kind }) => REPLAYED_KINDS.has(kind))
    return ahead?.kind === 'approval_resumed' ? ahead.decisions : []
  }

  take(): DurableEvent {
    const event = this.next
    if (event === undefined) throw new RecordingCut()
    this.#index += 1
    return event
  }

  /** The next event if it came from others: it is replayed before the run emits its own. */
  takeGiven(): DurableEvent | undefined {
    return this.next === undefined || REPLAYED_KINDS.has(this.next.kind) ? undefined : this.take()
  }

  /**
   * The recorded event in place of `emitted`. Throws the error of the run if it ended here, a `RecordingCut` if
   * another process continued it, and `replay_mismatch`, which names the first difference, if the events differ.
   */
  matching(emitted: DurableEvent): DurableEvent {
    const { next } = this
    const begins = emitted.kind === 'run_started'
    if (next === undefined || (next.kind === 'run_started' && !begins)) throw new RecordingCut()
    if (next.kind === 'run_failed' && emitted.kind !== 'run_failed') throw recordedFailure(next)
    const difference = firstDifference(comparable(this.#withAllowed(emitted, next)), comparable(next))
    if (difference !== undefined) throw this.differs(next, emitted, difference)
    return this.take()
  }

  /** The emitted event with the recorded values of the parts that may differ. */
  #withAllowed(emitted: DurableEvent, recorded: DurableEvent): DurableEvent {
    const { parts, report } = this.#allowed
    if (parts.length === 0 || !isRequest(emitted) || !isRequest(recorded)) return emitted
    this.#config = recorded.config ?? this.#config
    let { config } = emitted
    // A configuration is recorded when it changes.
    if (config === undefined || this.#config === undefined) return emitted
    for (const part of parts) {
      if (firstDifference(config[part], this.#config[part]) === undefined) continue
      if (recorded.config !== undefined)
        report(`Event ${recorded.seq}: the ${part} of the request are not those that were recorded.`)
      config = { ...config, [part]: this.#config[part] }
    }
    const isKnown = recorded.config === undefined && firstDifference(config, this.#config) === undefined
    const { config: _, ...rest } = emitted
    return isKnown ? rest : { ...rest, config }
  }

  /** The refusal of a run that does something else than was recorded. */
  differs(recorded: DurableEvent, emitted: { readonly kind: string }, path: string): HarnessError {
    const where = `event ${recorded.seq}`
    const what =
      recorded.kind === emitted.kind
        ? `\`${recorded.kind}\` differs at \`${path.slice(1)}\`: recorded ${shown(recorded, path)}, now ${shown(emitted, path)}`
        : `\`${recorded.kind}\` was recorded, and now comes \`${emitted.kind}\``
    this.mismatch ??= new HarnessError(
      'replay_mismatch',
      `The run is not what was recorded. First difference, ${where}: ${what}.`,
    )
    return this.mismatch
  }
}

function isRequest(event: DurableEvent): event is DurableEvent & { kind: 'model_request_started' } {
  return event.kind === 'model_request_started'
}

/** The error that ended a recorded run. */
export function recordedFailure(event: DurableEvent & { kind: 'run_failed' }): HarnessError {
  const { code, message, ...asked } = endedError(event)
  return new HarnessError(code, message, asked)
}

/** Members that this version knows. What a later one has added is kept, and not compared. */
const MEMBERS: ReadonlySet<string> = new Set(
  `kind runId seq at durable parentRunId parentToolCallId agentName version begun prompt root provider model maxModelRequests
  maxToolCalls metadata traceparent rules history view state requestKind entries promptAddition notices config closing hostNotices
  limitKind remaining content finalizedOutputMode entry resolution nativeFinishReason responseId responseModel cost retryKind
  message callId items children holds decisions answer stopReason usage pending code errorType status retryable`.split(
    /\s+/,
  ),
)

/** An event as JSON, without what another time and place, or another version, makes different. */
function comparable(event: DurableEvent): unknown {
  const usage = 'usage' in event ? event.usage : null
  const text = JSON.stringify(event, function (this: unknown, key, value: unknown) {
    const isUnknown = (this === event && !MEMBERS.has(key)) || (this === usage && !(key in NO_USAGE))
    return INCIDENTAL.has(key) || isUnknown ? undefined : value
  })
  const json = JSON.parse(text) as Record<string, unknown>
  if (event.kind !== 'model_request_started') return json
  // Messages of people come from the recording; those of the harness must be the same.
  const said = event.hostNotices === undefined ? event.entries : event.entries.slice(0, -1)
  const ours = said.filter((entry) => entry.role === 'tool' || entry.notice === true)
  return { ...json, hostNotices: undefined, entries: ours.map(({ at: _, id: __, ...entry }) => entry) }
}

function shown(event: unknown, path: string): string {
  let value: unknown = JSON.parse(JSON.stringify(event))
  for (const [, key, index] of path.matchAll(/\.([^.[]+)|\[(\d+)\]/g)) {
    if (Array.isArray(value)) value = value[Number(index)]
    else value = isObject(value) && key !== undefined ? value[key] : undefined
  }
  return value === undefined ? 'nothing' : `\`${JSON.stringify(value).slice(0, 120)}\``
}
