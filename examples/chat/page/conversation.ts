import type { ChatCall, ChatRun, ChatSnapshot } from 'thinharness/ui/client'
import { h, KeyedList } from './dom.js'

/** One thing that is shown in the conversation. `value` is the same object for as long as nothing of it changes. */
interface Shown {
  readonly key: string
  readonly value: unknown
  readonly render: () => HTMLElement
}

/** Shows what was said: messages, calls as they run, and the reply that is arriving. */
export class ConversationView {
  readonly #list: KeyedList<Shown>
  #shown = new Map<string, Shown>()

  constructor(parent: HTMLElement) {
    this.#list = new KeyedList<Shown>(
      parent,
      ({ key }) => key,
      ({ render }) => render(),
    )
  }

  show(snapshot: ChatSnapshot): void {
    const items = snapshot.runs.flatMap(ofRun).map((item): Shown => {
      const before = this.#shown.get(item.key)
      return before !== undefined && before.value === item.value ? before : item
    })
    this.#shown = new Map(items.map((item) => [item.key, item]))
    this.#list.show(items)
  }
}

function ofRun(run: ChatRun): readonly Shown[] {
  const { runId, prompt, entries, open, error, status } = run
  const calls = new Map(run.calls.map((call) => [call.callId, call]))
  const asked = { key: `${runId}.prompt`, value: prompt, render: () => message('user', textOf(prompt)) }
  const said = entries.flatMap((entry): Shown[] => {
    const key = `${runId}.${entry.id}`
    if (entry.role === 'user')
      return entry.notice === true ? [] : [{ key, value: entry, render: () => message('user', textOf(entry.content)) }]
    const reply = {
      key,
      value: entry,
      render: () => message('assistant', textOf(entry.parts), reasoningOf(entry.parts)),
    }
    const called = entry.parts.flatMap((part): Shown[] => {
      const call = part.type === 'tool_call' ? calls.get(part.callId) : undefined
      return call === undefined ? [] : [{ key: `${runId}.${call.callId}`, value: call, render: () => callView(call) }]
    })
    return textOf(entry.parts) === '' ? called : [reply, ...called]
  })
  const arriving =
    open === null || (open.text === '' && open.reasoning === '')
      ? []
      : [{ key: `${runId}.open`, value: open, render: () => message('assistant', open.text, open.reasoning) }]
  const ended = status === 'cancelled' ? 'Stopped.' : error === null ? '' : `This went wrong: ${error.message}`
  const problem = { key: `${runId}.end`, value: ended, render: () => h('li', { class: 'message bad' }, ended) }
  return [asked, ...said, ...arriving, ...(ended === '' ? [] : [problem])]
}

function message(role: 'user' | 'assistant', text: string, reasoning = ''): HTMLElement {
  return h(
    'li',
    { class: `message ${role}` },
    h('p', { class: 'who' }, role === 'user' ? 'You' : 'Assistant'),
    reasoning === '' ? null : h('p', { class: 'reasoning' }, reasoning),
    h('p', { class: 'text' }, text),
  )
}

const STATES: Readonly<Record<ChatCall['status'], string>> = {
  requested: 'requested',
  waiting: 'waits for you',
  running: 'running',
  completed: 'done',
  failed: 'failed',
}

function callView({ toolName, status, arguments: text, output, progress }: ChatCall): HTMLElement {
  const step = status === 'running' && isText(progress) ? `: ${progress.text}` : ''
  return h(
    'li',
    { class: 'message' },
    h(
      'details',
      {},
      h('summary', {}, `${toolName} — ${STATES[status]}${step}`),
      h('pre', {}, pretty(text)),
      output === undefined ? null : h('pre', status === 'failed' ? { class: 'bad' } : {}, contentOf(output)),
    ),
  )
}

function isText(value: unknown): value is { readonly text: string } {
  return typeof value === 'object' && value !== null && 'text' in value && typeof value.text === 'string'
}

function textOf(parts: readonly { readonly type: string; readonly text?: string }[]): string {
  return parts.flatMap(({ type, text = '' }) => (type === 'text' ? [text] : [])).join('')
}

function reasoningOf(parts: readonly { readonly type: string; readonly text?: string }[]): string {
  return parts.flatMap(({ type, text = '' }) => (type === 'reasoning' ? [text] : [])).join('\n')
}

export function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2)
  } catch {
    return json
  }
}

function contentOf(envelope: string): string {
  try {
    return (JSON.parse(envelope) as { readonly content: string }).content
  } catch {
    return envelope
  }
}
