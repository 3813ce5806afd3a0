import { defineTool, Harness } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { z } from 'zod'

const weather = defineTool({
  name: 'weather',
  description: 'The weather in a city.',
  parameters: z.object({ city: z.string() }),
  handler: ({ city }) => ({ city, celsius: 21 }),
})

await using harness = new Harness({ model: 'openai:gpt-5.5', instructions: 'Be brief.', tools: [weather] })
await using sessions = new Sessions({ log: sqliteLog('app.db'), harness })

const chat = await sessions.for({ resourceId: 'user-7' }).open('thread-1')
const { done } = await chat.send('Is it warm in Nairobi?')
console.log((await done).text)
