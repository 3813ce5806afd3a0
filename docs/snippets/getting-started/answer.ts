import agent from './thinharness.config.js'

const { pending } = await agent.recover('order-1043')
const answers = pending.map(({ callId }) => ({ callId, approved: true }))
const result = await agent.resume('order-1043', answers)
console.log(result.text)
