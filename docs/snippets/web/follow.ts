import { followRun, reduceChat } from 'thinharness/ui/client'
import type { ChatSnapshot, FollowUrlOptions } from 'thinharness/ui/client'

/** Prints a conversation while it continues. */
export async function watch(address: string, options: FollowUrlOptions): Promise<ChatSnapshot | undefined> {
  let snapshot: ChatSnapshot | undefined
  for await (const event of followRun(`${address}/threads/t1/events`, options)) {
    snapshot = reduceChat(snapshot, event)
    console.log(snapshot.phase, snapshot.runs.at(-1)?.open?.text ?? '')
  }
  return snapshot
}
