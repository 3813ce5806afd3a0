import { fileLog, Harness } from 'thinharness'
import { refund } from './refund.js'

const harness = new Harness({ model: 'anthropic:claude-sonnet-5', tools: [refund], log: fileLog('runs') })
const { pending } = await harness.run('Order 1042 arrived broken. Refund its 64.50 euros.', { runId: 'refund-1042' })
console.log('Waiting:', pending[0]?.toolName, pending[0]?.arguments)
// Three days later, in any process that has the log:
const answers = pending.map(({ callId }) => ({ callId, approved: true }))
console.log((await harness.resume('refund-1042', answers)).text)
