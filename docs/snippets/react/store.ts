import { chatItems, createChatThreadStore } from 'thinharness/ui/store'

/** Prints what is said in a conversation, and says something. */
export async function talk(api: string, fetch: typeof globalThis.fetch): Promise<string> {
  const chat = createChatThreadStore({ threadId: 't1', api, fetch })
  const ended = new Promise<string>((resolve) => {
    const unsubscribe = chat.subscribe(() => {
      const { runs, phase } = chat.getSnapshot()
      const last = chatItems(runs).at(-1)
      if (phase !== 'idle' || last?.kind !== 'assistant') return
      unsubscribe()
      resolve(last.text)
    })
  })
  const sent = await chat.send('Where is my order?')
  if (!sent.ok) throw sent.error
  return ended
}
