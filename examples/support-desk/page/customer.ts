import { followRun, reduceChat } from 'thinharness/ui/client'
import type { ChatRun, ChatSnapshot } from 'thinharness/ui/client'
import { ask, byId, h, shown } from './dom.js'

const PHASES = { idle: 'Ready', running: 'Answering', waiting: 'A colleague is looking at it' } as const

const text = byId('text') as HTMLTextAreaElement
let [threadId, isNew] = await latestThread()
void follow()

/** The conversation that was written last, else a new one. */
async function latestThread(): Promise<[threadId: string, isNew: boolean]> {
  const { threads } = await ask<{ threads: { threadId: string }[] }>('/api/threads?limit=1')
  const [latest] = threads
  return latest === undefined ? [crypto.randomUUID(), true] : [latest.threadId, false]
}

/** Shows the conversation and everything that happens to it; `followRun` comes back after a lost connection or a restart. */
async function follow(): Promise<void> {
  const followed = threadId
  // A conversation begins with its first message.
  while (isNew) await new Promise((resolve) => document.addEventListener('changed', resolve, { once: true }))
  if (followed !== threadId) return
  let snapshot: ChatSnapshot | undefined
  const left = new AbortController()
  document.addEventListener('changed', () => followed !== threadId && left.abort())
  for await (const event of followRun(`/api/threads/${followed}/events`, { signal: left.signal })) {
    snapshot = reduceChat(snapshot, event)
    draw(snapshot)
  }
}

function draw({ phase, runs }: ChatSnapshot): void {
  byId('status').textContent = PHASES[phase]
  byId('messages').replaceChildren(...runs.flatMap(messagesOf))
}

/** What a run says to the customer: no calls, no arguments, no reasoning. */
function messagesOf({ prompt, entries, open, error }: ChatRun): readonly HTMLElement[] {
  const said = entries.flatMap((entry) => {
    if (entry.role === 'assistant') return message('Support', textOf(entry.parts))
    return entry.notice === true ? [] : message('You', textOf(entry.content))
  })
  const failed = error === null ? [] : message('Support', 'Something went wrong. Please write again.')
  return [...message('You', textOf(prompt)), ...said, ...message('Support', open?.text ?? ''), ...failed]
}

function message(who: string, said: string): readonly HTMLElement[] {
  if (said === '') return []
  const style = who === 'You' ? 'message user' : 'message'
  return [h('li', { class: style }, h('p', { class: 'who' }, who), h('p', {}, said))]
}

function textOf(parts: readonly { readonly type: string; readonly text?: string }[]): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text ?? ''] : [])).join('')
}

async function send(): Promise<void> {
  const said = text.value.trim()
  if (said === '') return
  text.value = ''
  // With an id of its own, a message that is sent twice is one message.
  const body = { text: said, messageId: crypto.randomUUID() }
  const isSent = await shown(ask(`/api/threads/${threadId}/messages`, body))
  // What could not be sent is given back.
  if (!isSent) text.value ||= said
  isNew &&= !isSent
  document.dispatchEvent(new Event('changed'))
}

byId('composer').addEventListener('submit', (event) => {
  event.preventDefault()
  void send()
})
byId('new').addEventListener('click', () => {
  ;[threadId, isNew] = [crypto.randomUUID(), true]
  byId('messages').replaceChildren()
  document.dispatchEvent(new Event('changed'))
  void follow()
})
