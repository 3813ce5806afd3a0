import { z } from 'zod'
import { Harness, orderStatus } from './shop.js'

const orders = new Map([['1042', { owner: 'ann', status: 'in transit' }]])

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  tools: [orderStatus],
  deps: ({ metadata }) => ({ orders, user: z.string().parse(metadata['user']) }),
})
const { text } = await harness.run('Where is order 1042?', { metadata: { user: 'ann' } })
console.log(text)
