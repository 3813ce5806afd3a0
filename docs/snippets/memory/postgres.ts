import { createMemory } from 'thinharness/memory'
import { postgresLog } from 'thinharness/store/postgres'

const connectionString = process.env['DATABASE_URL'] ?? ''

export const memory = createMemory({
  log: postgresLog({ connectionString }),
  index: { connectionString, schema: 'chat_memory' },
})
