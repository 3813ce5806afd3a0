import { memo } from 'react'
import type { ReactNode } from 'react'
import { chatItems } from 'thinharness/ui/react'
import type { ChatItem, ChatThread } from 'thinharness/ui/react'

type Call = Extract<ChatItem, { readonly kind: 'call' }>['call']

/** What was said: messages, calls as they run, and the reply that is arriving. */
export function Messages({
  runs,
  sending,
  resend,
  discard,
}: Pick<ChatThread, 'runs' | 'sending' | 'resend' | 'discard'>): ReactNode {
  return (
    <ol id="messages" aria-label="Messages">
      {chatItems(runs).map((item) => (
        <Item key={item.key} item={item} />
      ))}
      {sending.map(({ messageId, content, status }) => (
        <li key={messageId} className="message user">
          <p className="who">{status === 'failed' ? 'Not sent' : 'Sending …'}</p>
          <p className="text">{textOf(content)}</p>
          <p hidden={status !== 'failed'}>
            <button type="button" onClick={() => void resend(messageId)}>
              Send again
            </button>{' '}
            <button type="button" onClick={() => discard(messageId)}>
              Discard
            </button>
          </p>
        </li>
      ))}
    </ol>
  )
}

/** Renders again only when its own part of the conversation has changed. */
const Item = memo(({ item }: { readonly item: ChatItem }): ReactNode => {
  if (item.kind === 'user') return <Message who="user" text={textOf(item.content)} />
  if (item.kind === 'call') return <CallView {...item.call} />
  if (item.kind !== 'ended') return <Message who="assistant" text={item.text} reasoning={item.reasoning} />
  return (
    <li className="message bad">{item.status === 'cancelled' ? 'Stopped.' : `This went wrong: ${item.message}`}</li>
  )
})

interface MessageProps {
  readonly who: 'user' | 'assistant'
  readonly text: string
  readonly reasoning?: string
}

function Message({ who, text, reasoning = '' }: MessageProps): ReactNode {
  return (
    <li className={`message ${who}`}>
      <p className="who">{who === 'user' ? 'You' : 'Assistant'}</p>
      {reasoning !== '' && <p className="reasoning">{reasoning}</p>}
      <p className="text">{text}</p>
    </li>
  )
}

const STATES: Readonly<Record<Call['status'], string>> = {
  requested: 'requested',
  waiting: 'waits for you',
  running: 'running',
  completed: 'done',
  failed: 'failed',
}

function CallView({ toolName, status, arguments: text, output, progress }: Call): ReactNode {
  const step = status === 'running' && isText(progress) ? `: ${progress.text}` : ''
  return (
    <li className="message">
      <details>
        <summary>{`${toolName} — ${STATES[status]}${step}`}</summary>
        <pre>{pretty(text)}</pre>
        {output !== undefined && <pre className={status === 'failed' ? 'bad' : undefined}>{contentOf(output)}</pre>}
      </details>
    </li>
  )
}

function isText(value: unknown): value is { readonly text: string } {
  return typeof value === 'object' && value !== null && 'text' in value && typeof value.text === 'string'
}

function textOf(parts: readonly { readonly type: string; readonly text?: string }[]): string {
  return parts.flatMap(({ type, text = '' }) => (type === 'text' ? [text] : [])).join('')
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
