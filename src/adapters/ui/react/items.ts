import type { AssistantEntry, ContentPart } from '#contracts/entry.js'
import type { ChatCall, ChatRun, OpenReply } from '#session/thread/reduce-chat.js'

interface ItemPlace {
  /** Unique in its conversation: the `key` of an element. */
  readonly key: string
  readonly runId: string
}

/** One thing in a conversation, in the order in which a page shows it. What has not changed keeps its identity, as a prop of a `memo`. */
export type ChatItem = ItemPlace &
  (
    | { readonly kind: 'user'; readonly content: readonly ContentPart[] }
    /** `text` and `reasoning` of a whole reply; its calls follow as items of their own. */
    | { readonly kind: 'assistant'; readonly text: string; readonly reasoning: string; readonly entry: AssistantEntry }
    | { readonly kind: 'call'; readonly call: ChatCall }
    /** The reply that is arriving, as far as it is there. */
    | { readonly kind: 'arriving'; readonly text: string; readonly reasoning: string; readonly open: OpenReply }
    /** How a run ended that has no answer. */
    | { readonly kind: 'ended'; readonly status: 'failed' | 'cancelled'; readonly message: string }
  )

/** The items of runs, by run: a run that has not changed has the same. */
const known = new WeakMap<ChatRun, readonly ChatItem[]>()

/**
 * Messages, calls and the reply that is arriving as one flat list. Replies without text, and notes of the harness, are left out.
 *
 * @example
 * chatItems(chat.runs).map((item) => <Item key={item.key} item={item} />)
 */
export function chatItems(runs: readonly ChatRun[]): readonly ChatItem[] {
  return runs.flatMap((run) => {
    let items = known.get(run)
    if (items === undefined) known.set(run, (items = itemsOfRun(run)))
    return items
  })
}

function itemsOfRun(run: ChatRun): readonly ChatItem[] {
  const { runId, prompt, entries, open, error, status } = run
  const calls = new Map(run.calls.map((call) => [call.callId, call]))
  const place = (name: string): ItemPlace => ({ key: `${runId}.${name}`, runId })
  const items: ChatItem[] = prompt.length === 0 ? [] : [{ ...place('prompt'), kind: 'user', content: prompt }]
  for (const entry of entries) {
    if (entry.role === 'user') {
      if (entry.notice !== true) items.push({ ...place(entry.id), kind: 'user', content: entry.content })
      continue
    }
    const [text, reasoning] = [joined(entry, 'text', ''), joined(entry, 'reasoning', '\n')]
    if (text !== '') items.push({ ...place(entry.id), kind: 'assistant', text, reasoning, entry })
    for (const part of entry.parts) {
      const call = part.type === 'tool_call' ? calls.get(part.callId) : undefined
      if (call !== undefined) items.push({ ...place(call.callId), kind: 'call', call })
    }
  }
  if (open !== null && (open.text !== '' || open.reasoning !== ''))
    items.push({ ...place('open'), kind: 'arriving', text: open.text, reasoning: open.reasoning, open })
  if (status === 'cancelled' || status === 'failed')
    items.push({ ...place('end'), kind: 'ended', status, message: error?.message ?? '' })
  return items
}

function joined({ parts }: AssistantEntry, type: 'text' | 'reasoning', separator: string): string {
  return parts.flatMap((part) => (part.type === type ? [part.text] : [])).join(separator)
}
