import { Harness } from 'thinharness'
import { z } from 'zod'

const refund = z.object({ kind: z.literal('refund'), amount: z.number() })
const question = z.object({ kind: z.literal('question'), text: z.string() })

await using harness = new Harness({ model: 'openai:gpt-5.5', outputType: [refund, question] })
const { output } = await harness.run('The lamp arrived broken. It cost 39 euros.')

switch (output.kind) {
  case 'refund':
    console.log(`Refund ${output.amount}`)
    break
  case 'question':
    console.log(output.text)
}
