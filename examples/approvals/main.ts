// A tool that needs approval, which is given later in another process.
//   npm run example -- approvals            requests two refunds, one of which needs approval, and exits
//   npm run example -- approvals yes        later: continues the run. `no` rejects the refund.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { defineTool, Harness } from 'thinharness'
import type { HarnessResult, ResumeState } from 'thinharness'
import { z } from 'zod'

const WAITING = 'waiting.json'

const refund = defineTool({
  name: 'refund',
  description: 'Refund an order, in full or in part.',
  parameters: z.object({ orderId: z.string(), cents: z.number().int().positive() }),
  requiresApproval: ({ cents }) => cents > 1000,
  handler: ({ orderId, cents }) => `Refunded ${cents} cents of order ${orderId}.`,
})

await using harness = new Harness({ tools: [refund] })
const [answer] = process.argv.slice(2)
const result =
  answer === undefined
    ? await harness.run('Orders 7 and 8 arrived broken. They cost 5 and 64.50 euros. Please refund them.')
    : await continueRun(answer === 'yes')
await report(result)

async function continueRun(approved: boolean): Promise<HarnessResult> {
  const { resumeState, callIds } = JSON.parse(await readFile(WAITING, 'utf8')) as {
    resumeState: ResumeState
    callIds: string[]
  }
  await rm(WAITING)
  const reason = 'Refunds over 10 euros have to wait until Monday.'
  return harness.resume(
    resumeState,
    callIds.map((callId) => (approved ? { callId, approved } : { callId, approved, reason })),
  )
}

async function report({ text, pending, resumeState, toolCallRecords }: HarnessResult): Promise<void> {
  for (const { call, output } of toolCallRecords) console.log(`called    ${call.name} ${output}`)
  for (const { toolName, arguments: args } of pending) console.log(`waiting   ${toolName} ${args}`)
  if (pending.length === 0) console.log(`answer    ${text}`)
  else await writeFile(WAITING, JSON.stringify({ resumeState, callIds: pending.map(({ callId }) => callId) }))
}
