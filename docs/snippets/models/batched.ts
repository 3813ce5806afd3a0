import { Harness } from 'thinharness'
import { batched } from 'thinharness/models'
import { openai } from 'thinharness/providers'
import { sqliteLog } from 'thinharness/store/sqlite'

const model = batched(openai('gpt-5.5'), { maxWaitMs: 10_000, maxRequests: 500 })
await using harness = new Harness({ model, log: sqliteLog('runs.db') })

const reviews = ['Works well.', 'Broke after a day.']
const rows = harness.map(
  reviews,
  (review, index) => ({ prompt: `Rate from 1 to 5: ${review}`, runId: `review_${index}` }),
  {
    concurrency: 500,
  },
)
for await (const row of rows) console.log(row.item, row.status === 'completed' ? row.result.output : row.status)
