import type { JsonObject, JsonValue } from '#util/json.js'
import { isObject, parseJson } from '#util/json.js'
import type { Book } from '../reading/book.js'
import { memberOf, objectAt, objectsAt, textAt, timeAt } from '../reading/event-fields.js'
import type { ReadEvent } from '../reading/event-fields.js'
import type { CallNode, RunNode } from '../reading/nodes.js'

/** Everything that a log says of one call. Argument texts are JSON text. */
export interface CallDetail {
  readonly call: CallNode
  /** As the model wrote them. */
  readonly rawArguments: string
  /** As the harness repaired them; null: they were whole. */
  readonly repairedArguments: string | null
  /** As a hook changed them; null: none did. */
  readonly hookArguments: string | null
  /** As a person changed them; null: nobody did. */
  readonly editedArguments: string | null
  /** Those with which it ran: the last of the above. */
  readonly usedArguments: string
  /** Its result as the model reads it; null until it has ended. */
  readonly envelope: { readonly ok: boolean; readonly content: string; readonly metadata: JsonObject } | null
  /** The value that the tool returned, if the text is not the value. */
  readonly value: JsonValue | undefined
  /** Images and files of the result: content parts. */
  readonly parts: readonly JsonObject[]
  /** Where the content comes from: a `ContentSource`. */
  readonly source: JsonObject | null
  /** What the policies decided: a `CallDecision`. */
  readonly decision: JsonObject | null
  /** What people were asked, with their answers, in order. */
  readonly asked: readonly AskedOfCall[]
  /** Each time that it began. */
  readonly begun: readonly number[]
  /** How often a crash interrupted it, and how that was settled. */
  readonly interrupted: readonly { readonly at: number; readonly settledBy: string; readonly seq: number }[]
  /** Told to the tool: the same for every attempt. */
  readonly idempotencyKey: string
  /** Usage of the runs that it started; null: none. */
  readonly childUsage: JsonObject | null
  /** Why it counts against the budget of retries. */
  readonly retryKind: string | null
  /** It brought nothing new. */
  readonly isStale: boolean
  /** Only in a fork with recorded effects. */
  readonly isUnrecorded: boolean | null
}

export interface AskedOfCall {
  readonly seq: number
  readonly at: number
  /** `approval`, `question`, `unknown_outcome`. */
  readonly kind: string
  /** The id that an answer names. */
  readonly callId: string
  /** The item as the log has it: a `PendingItem`. */
  readonly item: JsonObject
  readonly answers: readonly {
    readonly seq: number
    readonly at: number
    readonly by: string | null
    /** `approved`, `refused`, `answered`, `declined`. */
    readonly verdict: string
    readonly reason: string | null
    /** The answer as the log has it. */
    readonly answer: JsonObject
  }[]
}

/**
 * The details of a call; null if the run has no such call. Parses the events of this call alone.
 *
 * @example
 * callDetail(book, { runId: 'run_1', callId: 'call_2' })?.envelope?.content
 */
export function callDetail(
  book: Book,
  { runId, callId }: { readonly runId: string; readonly callId: string },
): CallDetail | null {
  const run = book.run(runId)
  const call = run?.calls.get(callId)
  if (run === null || call === undefined) return null
  const events = eventsOfCall(book, run, call)
  const own = events.filter((event) => event['callId'] === callId)
  const [request, ended] = [requestOf(events, callId), own.findLast(({ kind }) => kind === 'tool_call_completed')]
  const starts = own.filter(({ kind }) => kind === 'tool_call_started')
  const items = askedItems(events)
  const started = starts.at(-1)
  const texts = argumentTexts({
    request,
    started,
    prepared: own.findLast(({ kind }) => kind === 'call_prepared'),
    items,
  })
  const decision = started?.['decision'] ?? items.map(({ item }) => item['decision']).find(isObject)
  const source = objectAt(ended, 'source')
  return {
    call,
    ...texts,
    envelope: ended === undefined ? null : envelopeIn(textAt(ended, 'output')),
    value: memberOf(ended, 'value') as JsonValue | undefined,
    parts: objectsAt(ended, 'parts'),
    source: 'kind' in source ? source : null,
    decision: isObject(decision) ? decision : null,
    asked: items,
    begun: starts.map((event) => timeAt(event)),
    interrupted: own.flatMap((event) =>
      event.kind === 'tool_call_interrupted'
        ? [{ at: timeAt(event), settledBy: textAt(event, 'settledBy'), seq: event.seq }]
        : [],
    ),
    idempotencyKey: `${runId}:${callId}`,
    childUsage: isObject(memberOf(ended, 'childUsage')) ? objectAt(ended, 'childUsage') : null,
    retryKind: textAt(ended, 'retryKind') || null,
    isStale: memberOf(ended, 'stale') === true,
    isUnrecorded: typeof memberOf(ended, 'unrecorded') === 'boolean' ? memberOf(ended, 'unrecorded') === true : null,
  }
}

/** The events of a call, in their order: the reply that asks for it, and all that follow. */
function eventsOfCall(book: Book, run: RunNode, call: CallNode): readonly (JsonObject & ReadEvent)[] {
  const seqs = new Set([
    run.turns[call.turn - 1]?.replySeq ?? 0,
    ...call.waits.map(({ seq }) => seq),
    ...call.marks.map(({ seq }) => seq),
    ...call.starts,
    call.endSeq ?? 0,
  ])
  return [...seqs]
    .filter((seq) => seq > 0)
    .sort((one, other) => one - other)
    .flatMap((seq) => book.event({ runId: run.runId, seq }) ?? [])
}

/** The arguments in the reply, which the harness may have repaired. */
function requestOf(events: readonly ReadEvent[], callId: string): JsonObject | undefined {
  const reply = events.find(({ kind }) => kind === 'model_message')
  const resolved = objectsAt(reply, 'resolvedCalls').find((call) => call['callId'] === callId)
  return resolved ?? objectsAt(objectAt(reply, 'entry'), 'parts').find((part) => part['callId'] === callId)
}

function argumentTexts({
  request,
  started,
  prepared,
  items,
}: {
  readonly request: JsonObject | undefined
  readonly started: ReadEvent | undefined
  readonly prepared: ReadEvent | undefined
  readonly items: readonly AskedOfCall[]
}): Pick<CallDetail, 'rawArguments' | 'repairedArguments' | 'hookArguments' | 'editedArguments' | 'usedArguments'> {
  const written = textAt(request, 'arguments')
  const raw = textAt(started, 'arguments') || written
  const hook = textAt(prepared, 'arguments') || null
  const edited = items
    .flatMap(({ answers }) => answers.map(({ answer }) => memberOf(answer, 'editedArguments')))
    .findLast(isObject)
  const editedArguments = edited === undefined ? null : JSON.stringify(edited)
  const repairedArguments = written !== '' && written !== raw ? written : null
  return {
    ...{ rawArguments: raw, repairedArguments, hookArguments: hook, editedArguments },
    usedArguments: editedArguments ?? hook ?? repairedArguments ?? raw,
  }
}

function askedItems(events: readonly (JsonObject & ReadEvent)[]): readonly AskedOfCall[] {
  const asked: (AskedOfCall & { answers: AskedOfCall['answers'][number][] })[] = []
  for (const event of events) {
    if (event.kind === 'approval_requested')
      for (const item of objectsAt(event, 'items'))
        asked.push({
          ...{ seq: event.seq, at: timeAt(event), kind: textAt(item, 'kind'), callId: textAt(item, 'callId') },
          ...{ item, answers: [] },
        })
    if (event.kind !== 'answer_received') continue
    const answer = objectAt(event, 'answer')
    const item = asked.findLast(({ callId }) => callId === textAt(answer, 'callId'))
    item?.answers.push({
      ...{ seq: event.seq, at: timeAt(event), by: textAt(answer, 'by') || null, verdict: verdictIn(answer) },
      ...{ reason: textAt(answer, 'reason') || null, answer },
    })
  }
  return asked
}

function verdictIn(answer: JsonObject): string {
  if (answer['declined'] === true) return 'declined'
  if (typeof answer['approved'] === 'boolean') return answer['approved'] ? 'approved' : 'refused'
  return 'answered'
}

/** As the model reads it: a text that is no envelope is its content. */
function envelopeIn(output: string): CallDetail['envelope'] {
  const parsed = parseJson(output)
  const whole = parsed.ok && isObject(parsed.value) && typeof parsed.value['content'] === 'string'
  if (!whole) return { ok: false, content: output, metadata: {} }
  return {
    ok: memberOf(parsed.value, 'ok') === true,
    content: textAt(parsed.value, 'content'),
    metadata: objectAt(parsed.value, 'metadata'),
  }
}
