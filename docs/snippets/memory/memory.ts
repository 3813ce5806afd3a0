import { Harness } from 'thinharness'
import { createMemory } from 'thinharness/memory'
import { sqliteLog } from 'thinharness/store/sqlite'

const log = sqliteLog('chat.db')
const memory = createMemory({ log, index: 'memory.db' })

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', log, use: [memory] })
const metadata = { resourceId: 'user-7' }
await harness.run('I am allergic to nuts. Remember that.', { metadata })
console.log((await harness.run('Which cake can you recommend to me?', { metadata })).text)
