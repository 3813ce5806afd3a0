import type { Chat, Sessions } from 'thinharness/session'

/** Answers an earlier message in other words, in a new conversation that has everything before it. */
export async function editMessage(
  sessions: Sessions,
  { threadId, entryId }: { readonly threadId: string; readonly entryId: string },
  text: string,
): Promise<Chat> {
  const entries = await sessions.messages(threadId)
  const before = entries[entries.findIndex(({ id }) => id === entryId) - 1]
  const chat = before === undefined ? await sessions.create() : await sessions.fork(threadId, { after: before.id })
  await chat.send(text)
  return chat
}
