import { chatItems, useChatThread } from 'thinharness/ui/react'
import type { ChatItem } from 'thinharness/ui/react'

export function Chat({ threadId }: { readonly threadId: string }) {
  const { runs, pending, answering, phase, error, send, stop, approve, reject } = useChatThread({ threadId })
  return (
    <main>
      {chatItems(runs).map((item) => (
        <p key={item.key}>{lineOf(item)}</p>
      ))}
      {pending.map(({ callId, toolName, arguments: json }) => (
        <fieldset key={callId} disabled={answering.includes(callId)}>
          <legend>
            May {toolName} run? {json}
          </legend>
          <button onClick={() => void approve(callId)}>Approve</button>
          <button onClick={() => void reject(callId, 'Not today.')}>Reject</button>
        </fieldset>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form action={(form) => void send(form.get('text') as string)}>
        <textarea name="text" aria-label="Message" required />
        <button>Send</button>
      </form>
      {phase !== 'idle' && <button onClick={() => void stop()}>Stop</button>}
    </main>
  )
}

function lineOf(item: ChatItem): string {
  if (item.kind === 'user') return item.content.map((part) => (part.type === 'text' ? part.text : part.type)).join('')
  if (item.kind === 'call') return `${item.call.toolName}: ${item.call.status}`
  return item.kind === 'ended' ? item.message : item.text
}
