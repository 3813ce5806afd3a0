// Crash recovery with SQLite: a run that outlives its process.
//   npm run example -- durable --die      the process ends between two transfers, like a crash
//   npm run example -- durable            the next process continues; completed transfers are not repeated
import { appendFileSync } from 'node:fs'
import { defineTool, Harness } from 'thinharness'
import { sqliteLog } from 'thinharness/store/sqlite'
import { z } from 'zod'

const RUN = 'transfers-2026-11'

const transfer = defineTool({
  name: 'transfer',
  description: 'Transfer money to a supplier.',
  parameters: z.object({ to: z.string(), cents: z.number().int().positive() }),
  handler: ({ to, cents }, { idempotencyKey }) => {
    // A real bank would take the key as well, and execute each transfer only once.
    appendFileSync('ledger.txt', `${to} ${cents} ${idempotencyKey}\n`)
    return `Transferred ${cents} cents to ${to}.`
  },
})

await using log = sqliteLog('runs.db')
await using harness = new Harness({ tools: [transfer], log })

let transfers = 0
const stream = (await hasStarted())
  ? harness.streamRecover(RUN)
  : harness.stream('Pay our two suppliers.', { runId: RUN })
for await (const event of stream) {
  if (event.kind !== 'tool_call_completed' || !event.ok) continue
  console.log(`done      ${event.toolName} ${event.callId}`)
  if (process.argv.includes('--die') && ++transfers === 1) process.exit(1)
}
console.log(`answer    ${(await stream.result).text}`)

async function hasStarted(): Promise<boolean> {
  for await (const { runId } of log.list()) if (runId === RUN) return true
  return false
}
