import type { Sessions } from 'thinharness/session'

/** Continues what the last process left. */
export async function continueAll(sessions: Sessions): Promise<void> {
  for await (const { threadId } of sessions.list({ phase: 'interrupted' })) {
    const chat = await sessions.open(threadId)
    try {
      if (await chat.recover()) await chat.queue.release()
    } catch (error) {
      console.error(threadId, error)
    }
  }
}
