import { brief, memberOf, numberAt, objectAt, objectsAt, textAt } from './event-fields.js'
import type { ReadEvent } from './event-fields.js'
import type { Mark } from './nodes.js'

/** What an event says, in one line. */
type Words = (event: ReadEvent) => string

/** The kinds of events that are shown as one line. */
const WORDS: Readonly<Record<string, Words | undefined>> = {
  run_started: (event) => BEGUN[textAt(event, 'begun')] ?? 'The run begins.',
  call_prepared: (event) =>
    event['cancelled'] === undefined
      ? event['arguments'] === undefined
        ? ''
        : 'A hook changed the arguments.'
      : `A hook cancelled the call: ${textAt(event, 'cancelled')}`,
  tool_call_interrupted: (event) => `Its process ended during the call. ${SETTLED[textAt(event, 'settledBy')] ?? ''}`,
  answer_received: answerWords,
  background_reported: (event) =>
    `${textAt(event, 'agent') || 'A run'} in the background reported${event['ok'] === true ? '' : ` a failure (${textAt(event, 'errorType')})`}: ${textAt(event, 'content')}`,
  run_failed: (event) => `${textAt(event, 'code')}: ${textAt(event, 'message')}`,
  run_left: () => 'The run was left; recover goes on with it.',
  warning: (event) => textAt(event, 'message'),
  transport_retry: (event) =>
    `Attempt ${numberAt(event, 'attempt') ?? '?'} failed: ${textAt(event, 'reason')} Next after ${numberAt(event, 'delayMs') ?? '?'} ms.`,
  deltas_withdrawn: (event) => `What attempt ${numberAt(event, 'attempt') ?? '?'} had written is withdrawn.`,
  request_waiting: (event) =>
    `The request waits: ${textAt(event, 'reason')} (about ${numberAt(event, 'ms') ?? '?'} ms).`,
  request_submitted: (event) => `${textAt(event, 'provider')} accepted the request as ${textAt(event, 'id')}.`,
  limit_warning: (event) => `Limit ${textAt(event, 'limitKind')}: ${numberAt(event, 'remaining') ?? '?'} left.`,
  model_retry: (event) => `Asked again (${textAt(event, 'retryKind')}): ${textAt(event, 'message')}`,
  view_changed: (event) =>
    `${textAt(event, 'policy')} shortened the view: ${objectsAt(event, 'changes').length} changes, ${tokens(event, 'tokensBefore')} to ${tokens(event, 'tokensAfter')} tokens.`,
  view_prepared: (event) =>
    `${textAt(event, 'policy')} prepared a text for ${textAt(event, 'from')} to ${textAt(event, 'to')}.`,
  aside: (event) =>
    `A model was asked beside the conversation (${textAt(event, 'purpose')})${textAt(event, 'choice') && `: ${textAt(event, 'choice')}`}.`,
  extension_recorded: (event) => `${textAt(event, 'extension')} recorded a value.`,
  hook_failed: (event) => `Hook ${textAt(event, 'hookEvent')} failed: ${textAt(event, 'message')}`,
  transcript_repaired: (event) =>
    `The conversation was repaired: ${textAt(event, 'problem')} (${textAt(event, 'callId')}).`,
  cache_bust: (event) => `The cache was lost: ${textAt(event, 'cause')} at ${textAt(event, 'path')}.`,
}

/** Kinds that are shown otherwise, or not at all. */
const OTHERS: ReadonlySet<string> = new Set([
  ...['run_queued', 'model_request_started', 'model_message', 'tool_call_started', 'tool_call_completed'],
  ...['approval_requested', 'approval_resumed', 'run_completed', 'text_delta', 'reasoning_delta', 'tool_input_delta'],
  ...['tool_progress', 'output_delta'],
])

const PROBLEMS: ReadonlySet<string> = new Set([
  ...['run_failed', 'hook_failed', 'cache_bust', 'transport_retry', 'model_retry', 'tool_call_interrupted', 'warning'],
  ...['transcript_repaired', 'limit_warning'],
])

/** The line of an event; null for one that says nothing by itself. An event of an unknown kind has one. */
export function markOf(event: ReadEvent, at: number): Mark | null {
  const { kind, seq } = event
  if (OTHERS.has(kind)) return null
  const text = WORDS[kind]?.(event) ?? `${brief(kind, 60)}: an event that this page does not know.`
  if (text === '') return null
  return { seq, at, kind, text: brief(text, 300), isProblem: PROBLEMS.has(kind) || isFailedReport(event) }
}

/** Whether this page knows what a kind of event means. */
export function isKnownKind(kind: string): boolean {
  return Object.hasOwn(WORDS, kind) || OTHERS.has(kind)
}

function isFailedReport(event: ReadEvent): boolean {
  return event.kind === 'background_reported' && event['ok'] !== true
}

function answerWords(event: ReadEvent): string {
  const answer = objectAt(event, 'answer')
  const by = textAt(answer, 'by')
  const who = by === '' ? 'Somebody' : by
  const reason = textAt(answer, 'reason') && `: ${textAt(answer, 'reason')}`
  if (answer['declined'] === true) return `${who} declined to answer${reason}.`
  if (answer['approved'] === false) return `${who} refused${reason}.`
  if (answer['approved'] === true)
    return `${who} approved${memberOf(answer, 'editedArguments') === undefined ? '' : ', with other arguments'}.`
  return `${who} answered: ${JSON.stringify(answer['answer'] ?? null)}`
}

function tokens(event: ReadEvent, name: string): string {
  return String(numberAt(event, name) ?? '?')
}

const BEGUN: Readonly<Record<string, string | undefined>> = {
  resumed: 'The run goes on with answers.',
  recovered: 'The run goes on after its process ended.',
  retried: 'The run is tried again.',
  forked: 'The run begins after a turn of another one.',
}

const SETTLED: Readonly<Record<string, string | undefined>> = {
  retry: 'It is run again.',
  report: 'The model is told that its outcome is unknown.',
  pause: 'A person is asked for its outcome.',
  reconcile: 'The tool is asked for its outcome.',
}
