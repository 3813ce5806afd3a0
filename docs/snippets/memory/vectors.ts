import { createMemory } from 'thinharness/memory'
import { embedding } from 'thinharness/providers'
import { sqliteLog } from 'thinharness/store/sqlite'

const embed = embedding('openai:text-embedding-3-small')

export const memory = createMemory({ log: sqliteLog('chat.db'), index: 'memory.db', embed })
