import { fileLog, Harness } from 'thinharness'
import { lookupOrder } from '../tools/lookup-order.js'

const log = fileLog('./runs')
await using harness = new Harness({ model: 'openai:gpt-5.5', tools: [lookupOrder], log })

const result = await harness.run('Why is order 1042 late?', { runId: 'run_1042' })
const again = await harness.replay(log.read({ kind: 'run', id: 'run_1042' }))

console.log(again.text === result.text ? 'The results are equal.' : 'The results differ.')
