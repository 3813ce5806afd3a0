import { Harness } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { createHandlers } from 'thinharness/ui'
import { userOf } from './user.js'

const sessions = new Sessions({ log: sqliteLog('chat.db'), harness: new Harness({ model: 'openai:gpt-5.5' }) })
const { aiSdk } = createHandlers({ sessions, authorize: (request) => ({ resourceId: userOf(request) }) })
export { aiSdk as GET, aiSdk as POST }
