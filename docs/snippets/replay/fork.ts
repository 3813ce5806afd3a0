import { fileLog, Harness } from 'thinharness'
import { lookupOrder } from '../tools/lookup-order.js'

const log = fileLog('./runs')
await using harness = new Harness({ model: 'openai:gpt-5.5', tools: [lookupOrder], log })

await harness.run('Why is order 1042 late?', { runId: 'run_1042' })
const fork = await harness.fork(
  log.read({ kind: 'run', id: 'run_1042' }),
  { afterTurn: 1, prompt: 'Answer in one word.' },
  { effects: 'dry', mocks: { lookup_order: () => 'lost at sea' } },
)

console.log(fork.text)
