import type { AgUiMessage } from '../ag-ui/message.js'
import { toAgUiMessages } from '../ag-ui/ag-ui-projection.js'
import type { UiMessage } from '../ai-sdk/message-fold.js'
import { toUIMessages } from '../ai-sdk/ui-projection.js'
import { shownEvent } from '../native/shown-event.js'
import type { ShownEvent } from '../native/shown-event.js'
import type { StoredRun } from '../hub/runs-before-fork.js'
import { isStretchEnd } from '../projection.js'
import type { AnyRunEvent } from '../projection.js'
import { badRequest, requestDialect, jsonResponse } from './http.js'
import type { HandlerOptions } from './options.js'
import type { Thread } from './thread.js'

/** Makes the messages of a protocol out of the runs of a conversation. */
type MessageForm = (runs: readonly StoredRun[], options: HandlerOptions, page: MessagePage) => unknown

interface MessagePage {
  readonly threadId: string
  readonly url: URL
}

const FORMS: Readonly<Record<string, MessageForm>> = {
  ui: (runs, options, { threadId, url }) => {
    const shown = { ...options.aiSdk, ...options, threadId, dialect: requestDialect(url, options) }
    return runs.flatMap(({ events, messageIds }) =>
      toUIMessages(events, { ...shown, messageIds: () => messageIds }).filter((message) => hasBegun(message, events)),
    )
  },
  agui: (runs, options, { threadId }) => {
    const ids = new Map(runs.map(({ runId, messageIds }) => [runId, messageIds]))
    const shown = { ...options.agUi, ...options, threadId, messageIds: (runId: string) => ids.get(runId) ?? [] }
    return runs.reduce<readonly AgUiMessage[]>(
      (history, { events }) => toAgUiMessages(events, { ...shown, history }),
      [],
    )
  },
  native: (runs, options) =>
    runs.flatMap(({ runId, events }) =>
      events
        .filter((event) => event.runId === runId)
        .map((event) => shownEvent(event, options))
        .filter((event): event is ShownEvent => event !== null),
    ),
}

/** False for the message of a run that has said nothing yet: the page gets it with the stream. */
function hasBegun({ parts }: UiMessage, events: readonly AnyRunEvent[]): boolean {
  return parts.some(({ type }) => type !== 'step-start') || events.some(isStretchEnd)
}

/** The conversation so far, as `?format=` asks for it. `x-cursor`: the place of the latest run. */
export async function messagesResponse(thread: Thread, url: URL, options: HandlerOptions): Promise<Response> {
  const name = url.searchParams.get('format') ?? 'native'
  const form = Object.hasOwn(FORMS, name) ? FORMS[name] : undefined
  if (form === undefined)
    throw badRequest(`Expected \`format\` to be one of ${Object.keys(FORMS).join(', ')}, got "${name.slice(0, 80)}".`)
  const runs = [...(await thread.continued())]
  for (const { runId } of thread.runs) runs.push(await storedRun(thread, runId))
  const last = thread.latest === null ? undefined : runs.at(-1)
  const cursor = String(last?.events.findLast(({ runId }) => runId === last.runId)?.seq ?? 0)
  return jsonResponse(200, form(runs, options, { threadId: thread.threadId, url }), { 'x-cursor': cursor })
}

export async function storedRun(thread: Thread, runId: string): Promise<StoredRun> {
  const events: AnyRunEvent[] = []
  for await (const event of thread.stored(runId)) events.push(event)
  return { runId, messageIds: thread.messageIds(runId), events }
}
