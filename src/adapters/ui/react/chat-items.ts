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

/** Items by what they show: the same object has the same item. */
const known = new WeakMap<object, ChatItem>()

function itemOf(shown: object, create: () => ChatItem): ChatItem {
  const before = known.get(shown)
  if (before !== undefined) return before
  const item = create()
  known.set(shown, item)
  return item
}

/**
 * Messages, calls and the reply that is arriving as one flat list. Replies without text, and notes of the harness, are left out.
 *
 * @example
 * chatItems(chat.runs).map((item) => <Item key={item.key} item={item} />)
 */
export function chatItems(runs: readonly ChatRun[]): readonly ChatItem[] {
  return runs.flatMap(itemsOfRun)
}

function itemsOfRun(run: ChatRun): readonly ChatItem[] {
  const { runId, prompt, entries, open, error, status } = run
  const calls = new Map(run.calls.map((call) => [call.callId, call]))
  const place = (name: string): ItemPlace => ({ key: `${runId}.${name}`, runId })
  const said = (name: string, content: readonly ContentPart[]): ChatItem =>
    itemOf(content, () => ({ ...place(name), kind: 'user', content }))
  const items: ChatItem[] = prompt.length === 0 ? [] : [said('prompt', prompt)]
  for (const entry of entries) {
    if (entry.role === 'user') {
      if (entry.notice !== true) items.push(said(entry.id, entry.content))
      continue
    }
    const [text, reasoning] = [joined(entry, 'text', ''), joined(entry, 'reasoning', '\n')]
    if (text !== '')
      items.push(itemOf(entry, () => ({ ...place(entry.id), kind: 'assistant', text, reasoning, entry })))
    for (const part of entry.parts) {
      const call = part.type === 'tool_call' ? calls.get(part.callId) : undefined
      if (call !== undefined) items.push(itemOf(call, () => ({ ...place(call.callId), kind: 'call', call })))
    }
  }
  if (open !== null && (open.text !== '' || open.reasoning !== ''))
    items.push(
      itemOf(open, () => ({ ...place('open'), kind: 'arriving', text: open.text, reasoning: open.reasoning, open })),
    )
  if (error !== null && (status === 'cancelled' || status === 'failed'))
    items.push(itemOf(error, () => ({ ...place('end'), kind: 'ended', status, message: error.message })))
  return items
}

function joined({ parts }: AssistantEntry, type: 'text' | 'reasoning', separator: string): string {
  return parts.flatMap((part) => (part.type === type ? [part.text] : [])).join(separator)
}
