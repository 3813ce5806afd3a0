import { Harness } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'

await using harness = new Harness({ model: 'openai:gpt-5.5', root: './notes' })
await using sessions = new Sessions({ log: sqliteLog('chat.db'), harness })

const chat = await sessions.for({ resourceId: 'user-7' }).open('thread-1')
const first = await chat.send('When is the rent due?')
const second = await chat.send('And the electricity?')
console.log(first.status, (await first.done).text)
console.log(second.status, (await second.done).text)
