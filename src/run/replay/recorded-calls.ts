import { checkArguments } from '#core/tools/boundary/check-arguments.js'
import { parseEnvelope } from '#core/tools/boundary/envelope.js'
import type { ToolContext, ToolOutcome, ToolSpec } from '#core/tools/tool-spec.js'
import type { DurableEvent } from '#core/state/events.js'
import type { OwnExtension } from '#core/extension/own-extension.js'
import type { Extension } from '#core/extension/extension.js'
import { canonicalJson } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { plainJson } from '#util/plain-json.js'

type Completed = DurableEvent & { kind: 'tool_call_completed' }

/** A call that ran, with the arguments of its handler as JSON text. */
interface RecordedCall {
  readonly toolName: string
  readonly text: string
  readonly outcome: ToolOutcome
}

type Results = Map<string, ToolOutcome[]>

/** The results of the calls of a recorded run, for a fork of it: each is given once, those after the fork's point first. */
export class RecordedCalls {
  readonly #calls: Promise<readonly RecordedCall[]>
  /** By the name of the tool; in each by the arguments as the handler gets them. */
  readonly #results = new Map<string, Promise<Results>>()
  /** The arguments of calls before middleware changed them, by run and call. */
  readonly #asked = new Map<string, string>()
  readonly #unrecorded = new Set<string>()

  /** `point` is the number of the last event before the fork. */
  constructor(events: Promise<readonly DurableEvent[]>, point: Promise<number>) {
    this.#calls = Promise.all([events, point]).then(([all, seq]) => callsIn(all, seq))
    // Whoever needs the events hears that they cannot be read.
    this.#calls.catch(() => undefined)
  }

  /** The next result of such a call that has not been given; null if there is none, which is counted. */
  async take(spec: ToolSpec, args: JsonObject, { runId, callId }: ToolContext): Promise<ToolOutcome | null> {
    const results = this.#results.get(spec.name) ?? this.#resultsOf(spec)
    this.#results.set(spec.name, results)
    const key = keyOf(runId, callId)
    const found = (await results).get(this.#asked.get(key) ?? argumentsKey(args))?.shift()
    if (found === undefined) this.#unrecorded.add(key)
    return found ?? null
  }

  /** Outside all others: it sees the arguments as they are in the log. */
  get outermost(): Extension {
    return {
      name: 'recorded arguments',
      wrapToolCall: ({ runId, callId, args }, next) => {
        this.#asked.set(keyOf(runId, callId), argumentsKey(args))
        return next()
      },
    }
  }

  /** Says of each call if the recording did not have it. */
  get innermost(): OwnExtension {
    return {
      name: 'recorded effects',
      annotateCall: ({ runId }, { callId }) => ({ unrecorded: this.#unrecorded.has(keyOf(runId, callId)) }),
    }
  }

  async #resultsOf(spec: ToolSpec): Promise<Results> {
    const results: Results = new Map()
    for (const { toolName, text, outcome } of await this.#calls) {
      const checked = toolName === spec.name ? await checkArguments(spec, text) : null
      if (checked?.ok !== true) continue
      const key = argumentsKey(checked.value)
      results.set(key, [...(results.get(key) ?? []), outcome])
    }
    return results
  }
}

function keyOf(runId: string, callId: string): string {
  return `${runId}/${callId}`
}

function argumentsKey(args: JsonObject): string {
  return canonicalJson(plainJson(args))
}

/** The calls that ran, in the order of their starts, those after the event `point` first. */
function callsIn(events: readonly DurableEvent[], point: number): readonly RecordedCall[] {
  const texts = new Map<string, string>()
  const ends = new Map<string, Completed>()
  for (const event of events) {
    if (event.kind === 'call_prepared' && event.arguments !== undefined) texts.set(event.callId, event.arguments)
    if (event.kind === 'tool_call_completed') ends.set(event.callId, event)
  }
  const before: RecordedCall[] = []
  const after: RecordedCall[] = []
  for (const event of events) {
    const end = event.kind === 'tool_call_started' ? ends.get(event.callId) : undefined
    if (event.kind !== 'tool_call_started' || end === undefined || !hasRun(event, end)) continue
    // It was started again after a pause or a crash: one call, one result.
    ends.delete(event.callId)
    const { toolName, callId } = event
    const { edited_arguments: edited } = parseEnvelope(end.output).metadata
    const text = edited === undefined ? (texts.get(callId) ?? event.arguments) : JSON.stringify(edited)
    const call = { toolName, text, outcome: outcomeIn(end) }
    if (end.seq > point) after.push(call)
    else before.push(call)
  }
  return [...after, ...before]
}

/** What a hook, a policy or a person has stopped has no result of its tool. */
function hasRun(
  { decision }: DurableEvent & { kind: 'tool_call_started' },
  { cancelled, errorType }: Completed,
): boolean {
  return decision?.decision !== 'deny' && !cancelled && errorType !== 'ApprovalRejected'
}

function outcomeIn({ output, parts, value, retryKind, errorType, source }: Completed): ToolOutcome {
  const { ok, content, metadata } = parseEnvelope(output)
  const kept = source === undefined ? metadata : { ...metadata, content_source: plainJson(source) }
  const shared = { content, metadata: kept, ...(parts !== undefined && { parts }) }
  if (ok) return { kind: 'succeeded', ...shared, ...(value !== undefined && { value }) }
  return { kind: 'failed', errorType: errorType ?? 'ToolError', retry: retryKind !== null, ...shared }
}
