import type { Chat, Threads } from 'thinharness/session'

/** Answers an earlier message in other words, in a new conversation that has everything before it. */
export async function editMessage(
  sessions: Threads,
  { threadId, entryId }: { readonly threadId: string; readonly entryId: string },
  text: string,
): Promise<Chat> {
  const entries = await sessions.messages(threadId)
  const index = entries.findIndex(({ id }) => id === entryId)
  if (index < 0) throw new Error('There is no such message.')
  const before = entries[index - 1]
  const chat = before === undefined ? await sessions.create() : await sessions.fork(threadId, { after: before.id })
  await chat.send(text)
  return chat
}
