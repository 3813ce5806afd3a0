import { createHandlers } from 'thinharness/ui'
import { loadChatThread } from 'thinharness/ui/store'
import type { LoadedChat } from 'thinharness/ui/store'
import { sessions } from './sessions.js'

/** What the page of a person begins with: `<Chat threadId={threadId} initial={await loadChat(user, threadId)} />`. */
export function loadChat(user: string, threadId: string): Promise<LoadedChat | null> {
  const { events } = createHandlers({ sessions, authorize: () => ({ resourceId: user }) })
  return loadChatThread({
    threadId,
    api: 'http://localhost/api',
    // No network: the handler is called as it is.
    fetch: (input, init) => events(new Request(input, init)),
  })
}
