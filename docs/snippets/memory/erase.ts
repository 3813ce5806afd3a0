import { createMemory } from 'thinharness/memory'
import { sqliteLog } from 'thinharness/store/sqlite'

const memory = createMemory({ log: sqliteLog('chat.db'), index: 'memory.db' })
const { threads, runs, files } = await memory.erase({ resourceId: 'user-7' })
console.log(`Erased: ${threads} conversations, ${runs} runs, ${files} saved outputs.`)
