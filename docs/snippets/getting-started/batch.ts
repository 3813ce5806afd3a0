import { Budget } from 'thinharness'
import agent from './thinharness.config.js'

const numbers = ['1043', '1044', '1045']
const budget = new Budget({ costUsd: 1 })
const rows = agent.map(numbers, (number) => ({ prompt: `Where is order ${number}?`, runId: `where-${number}` }), {
  budget,
})
for await (const row of rows) {
  console.log(row.item, row.status === 'completed' ? row.result.text : row.status)
}
