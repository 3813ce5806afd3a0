// A tool that asks a person first, who answers later and in another process.
//   npm run example -- approvals            asks for two refunds, of which one needs leave, and ends
//   npm run example -- approvals yes        a day later: goes on where it was. `no` refuses.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { defineTool, Harness } from 'thinharness'
import type { HarnessResult, ResumeState } from 'thinharness'
import { z } from 'zod'

const WAITING = 'waiting.json'

const refund = defineTool({
  name: 'refund',
  description: 'Pay an order back, in part or whole.',
  parameters: z.object({ orderId: z.string(), cents: z.number().int().positive() }),
  requiresApproval: ({ cents }) => cents > 1000,
  handler: ({ orderId, cents }) => `Paid back ${cents} cents of order ${orderId}.`,
})

await using harness = new Harness({ builtinTools: [], tools: [refund] })
const [answer] = process.argv.slice(2)
const result =
  answer === undefined
    ? await harness.run('Orders 7 and 8 came broken. They cost 5 and 64.50 euros: pay them back.')
    : await goOn(answer === 'yes')
await report(result)

async function goOn(approved: boolean): Promise<HarnessResult> {
  const { resumeState, callIds } = JSON.parse(await readFile(WAITING, 'utf8')) as {
    resumeState: ResumeState
    callIds: string[]
  }
  await rm(WAITING)
  const reason = 'Refunds over 10 euros wait until Monday.'
  return harness.resume(
    resumeState,
    callIds.map((callId) => (approved ? { callId, approved } : { callId, approved, reason })),
  )
}

async function report({ text, pending, resumeState, toolCallRecords }: HarnessResult): Promise<void> {
  for (const { call, output } of toolCallRecords) console.log(`called    ${call.name} ${output}`)
  for (const { toolName, arguments: args } of pending) console.log(`waits     ${toolName} ${args}`)
  if (pending.length === 0) console.log(`answer    ${text}`)
  else await writeFile(WAITING, JSON.stringify({ resumeState, callIds: pending.map(({ callId }) => callId) }))
}
