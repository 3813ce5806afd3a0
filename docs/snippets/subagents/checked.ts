import { Harness, ModelRetry } from 'thinharness'
import { defineSubagent } from 'thinharness/tools'
import { z } from 'zod'

const stock = new Map([['lamp', 4]])

const clerk = defineSubagent({
  name: 'clerk',
  description: 'Finds the article that a customer describes.',
  tools: [],
  outputType: [z.object({ article: z.string() }), z.object({ question: z.string() })],
  outputValidator: (answer) => {
    if ('article' in answer && !stock.has(answer.article)) throw new ModelRetry(`There is no ${answer.article}.`)
  },
  limits: { modelRequests: 4 },
  onLimit: 'answer',
})

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', subagents: [clerk] })
const { text, toolCallRecords } = await harness.run('Do we have the thing that gives light?')
console.log(text, `(${toolCallRecords.length} task delegated)`)
