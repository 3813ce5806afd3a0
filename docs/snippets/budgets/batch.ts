import { Budget, fileLog, Harness } from 'thinharness'

const tickets = [
  { id: 1, text: 'My invoice is wrong.' },
  { id: 2, text: 'Where is my parcel?' },
]

const budget = new Budget({ costUsd: 5 })
await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', log: fileLog('runs') })

const rows = harness.map(tickets, ({ id, text }) => ({ prompt: `Classify: ${text}`, runId: `ticket_${id}` }), {
  concurrency: 1,
  budget,
})
for await (const row of rows) {
  console.log(`${row.item.id} ${row.status === 'completed' ? row.result.output : row.status}`)
}
console.log(`$${budget.spent} of $${budget.costUsd}`)
