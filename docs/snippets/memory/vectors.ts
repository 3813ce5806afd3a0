import { createMemory } from 'thinharness/memory'
import { sqliteLog } from 'thinharness/store/sqlite'
import OpenAI from 'openai'

const client = new OpenAI()

export const memory = createMemory({
  log: sqliteLog('chat.db'),
  index: 'memory.db',
  embed: async (texts, { signal }) => {
    const { data } = await client.embeddings.create({ model: 'text-embedding-3-small', input: [...texts] }, { signal })
    return data.map(({ embedding }) => embedding)
  },
})
