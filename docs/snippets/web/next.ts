import { Harness } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { createHandlers } from 'thinharness/ui'
import { userOf } from './user.js'

const sessions = new Sessions({ log: sqliteLog('chat.db'), harness: new Harness({ model: 'openai:gpt-5.5' }) })
const { aiSdk, requests } = createHandlers({ sessions, authorize: (request) => ({ resourceId: userOf(request) }) })

/** The chat, and the list and the messages of conversations. */
function serve(request: Request): Promise<Response> {
  return new URL(request.url).pathname.startsWith('/api/chat') ? aiSdk(request) : requests(request)
}
export { serve as GET, serve as POST }
