import { defineTool, Harness, textOf } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { sqliteLog } from 'thinharness/store/sqlite'
import { z } from 'zod'

const bookRoom = defineTool({
  name: 'book_room',
  description: 'Book a room in a hotel.',
  parameters: z.object({ hotel: z.string(), nights: z.number().int() }),
  requiresApproval: true,
  handler: ({ hotel, nights }) => `Booked ${hotel} for ${nights} nights.`,
})

await using harness = new Harness({ model: 'openai:gpt-5.5', instructions: 'You book hotels.', tools: [bookRoom] })
await using sessions = new Sessions({ log: sqliteLog('trips.db'), harness })

const chat = await sessions.for({ resourceId: 'user-7' }).open('trip-1')
const { done } = await chat.send('A room at the Norfolk for two nights, please.')
if ((await done).status === 'paused') {
  const answers = chat.pending.map(({ callId }) => ({ callId, approved: true }))
  await chat.answer(answers)
  await chat.whenIdle()
}
const [last] = await sessions.messages('trip-1', { last: 1 })
if (last?.role === 'assistant') console.log(textOf(last.parts))
