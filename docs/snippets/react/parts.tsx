import { useChatThreadStore, useStore } from 'thinharness/ui/react'
import type { ChatThreadStore } from 'thinharness/ui/react'

export function Page({ threadId }: { readonly threadId: string }) {
  const chat = useChatThreadStore({ threadId })
  return (
    <>
      <Title chat={chat} />
      <Tasks chat={chat} />
    </>
  )
}

function Title({ chat }: { readonly chat: ChatThreadStore }) {
  const { title, connection } = useStore(chat, ({ title, connection }) => ({ title, connection }))
  return <h1>{connection === 'reconnecting' ? `${title} (offline)` : title}</h1>
}

function Tasks({ chat }: { readonly chat: ChatThreadStore }) {
  const tasks = useStore(chat, (state) => state.tasks)
  return (
    <ul>
      {tasks.map(({ id, content, status }) => (
        <li key={id}>{`${content}: ${status}`}</li>
      ))}
    </ul>
  )
}
