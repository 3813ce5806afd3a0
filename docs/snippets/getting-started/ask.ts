import agent from './thinharness.config.js'

const result = await agent.run('Order 1043 came twice. Pay it back.', { runId: 'order-1043', ifExists: 'continue' })
console.log(result.status)
for (const { toolName, arguments: given } of result.pending) console.log('May it?', toolName, given)
