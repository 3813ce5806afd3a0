import { fileLog, Harness } from 'thinharness'
import { lookupOrder } from '../tools/lookup-order.js'

const log = fileLog('./runs')
await using harness = new Harness({ model: 'openai:gpt-5.5', tools: [lookupOrder], log })
await harness.run('Why is order 1042 late?', { runId: 'run_1042' })

await using shorter = new Harness({ model: 'openai:gpt-5.5', tools: [lookupOrder], log, instructions: 'Be brief.' })
const { text, usage } = await shorter.fork(
  log.read({ kind: 'run', id: 'run_1042' }),
  { afterTurn: 0, prompt: 'Why is order 1042 late?' },
  { effects: 'recorded' },
)
console.log(`${text} (${usage.unrecorded ?? 0} calls were not in the recording)`)
