import type { AssistantPart, ContentPart } from '#contracts/entry.js'
import { shownContent, shownEnvelope } from '../shown-content.js'
import { DIAGNOSTICS } from '../projection.js'
import type { AnyRunEvent, ProjectionOptions } from '../projection.js'
import { errorSentence } from '../error-sentence.js'

/** An event as readers outside the server get it: plain JSON. */
export type ShownEvent = Readonly<Record<string, unknown>> & {
  readonly kind: string
  readonly runId: string
  readonly seq: number
}

/** Members of events that do not leave the server: paths of the host, forms of providers, rules. */
const PRIVATE: ReadonlySet<string> = new Set([
  ...['root', 'rules', 'traceparent', 'config', 'state', 'history', 'view', 'result', 'instructions', 'children'],
  // Of a stream alone: they repeat the entry.
  ...['text', 'toolCalls'].map((name) => `model_message.${name}`),
])

type Options = Pick<ProjectionOptions, 'diagnostics' | 'errorText' | 'maxInlineBytes' | 'contentUrl' | 'reasoning'>

/** Shows events as options say, each once: for all readers whose options are the same object. */
export function shownOnce(options: Options): (event: AnyRunEvent) => ShownEvent | null {
  const known = byOptions.get(options) ?? new WeakMap<AnyRunEvent, ShownEvent | null>()
  byOptions.set(options, known)
  return (event) => {
    let shown = known.get(event)
    if (shown === undefined) known.set(event, (shown = shownEvent(event, options)))
    return shown
  }
}

const byOptions = new WeakMap<Options, WeakMap<AnyRunEvent, ShownEvent | null>>()

/** The event without what is private to the server; null for one that readers do not get. */
export function shownEvent(event: AnyRunEvent, options: Options): ShownEvent | null {
  if (DIAGNOSTICS.has(event.kind) && options.diagnostics !== true) return null
  if (event.kind === 'reasoning_delta' && options.reasoning === false) return null
  const { kind, runId, seq } = event
  const members = Object.entries(event).filter(([name]) => !PRIVATE.has(name) && !PRIVATE.has(`${kind}.${name}`))
  const shown: Record<string, unknown> = Object.fromEntries(members)
  if (event.kind === 'model_message') {
    const { native: _native, ...entry } = event.entry
    // A problem with the reply is in the words of the provider, or for the model.
    shown['resolution'] = { kind: event.resolution.kind }
    shown['entry'] = { ...entry, parts: event.entry.parts.flatMap((part) => shownPart(part, options)) }
  }
  if (event.kind === 'view_changed') shown['changes'] = event.changes.map(({ native: _native, ...change }) => change)
  const errorText = options.errorText ?? errorSentence
  if (event.kind === 'run_failed') shown['message'] = errorText(event)
  // Its content has the message of the error.
  if (event.kind === 'background_reported' && !event.ok)
    shown['content'] = errorText({ code: event.errorType ?? 'error', message: event.content })
  if (event.kind === 'run_started' && typeof event.prompt === 'object' && event.prompt !== null)
    shown['prompt'] = event.prompt.map((part, index) => sendableContent(part, { event, index }, options))
  if (event.kind === 'model_request_started')
    shown['entries'] = event.entries.map((entry) =>
      typeof entry.content === 'string'
        ? entry
        : { ...entry, content: entry.content.map((part, index) => sendableContent(part, { event, index }, options)) },
    )
  if (event.kind === 'tool_call_completed') shown['output'] = shownEnvelope(event.output)
  if (event.kind === 'tool_call_completed' && event.parts !== undefined)
    shown['parts'] = event.parts.map((part, index) => sendableContent(part, { event, index }, options))
  return { ...shown, kind, runId, seq }
}

function shownPart(part: AssistantPart, { reasoning }: Options): readonly unknown[] {
  if (part.type === 'opaque' || (part.type === 'reasoning' && reasoning === false)) return []
  const { native: _native, ...shown } = part
  return [shown]
}

/** Small content as it is; large content as its type, size and link. */
function sendableContent(
  part: ContentPart,
  { event: { runId, seq }, index }: { readonly event: AnyRunEvent; readonly index: number },
  options: Options,
): unknown {
  const shown = shownContent(part, { runId, seq, index }, options)
  if (shown === null || shown.url?.startsWith('data:') === true || !('data' in part)) return part
  return { type: part.type, ...shown }
}
