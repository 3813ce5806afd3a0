// The program that pays. It knows nothing of being killed: it begins or continues the run of each invoice, and that is all.
import { readdirSync } from 'node:fs'
import { fileLog } from 'thinharness'
import { payingAgent } from './agent.js'
import { Bank } from './bank.js'

const bank = new Bank(process.env['BANK_URL'] ?? '')
const harness = payingAgent({ bank, log: fileLog('runs'), isCareless: process.env['CARELESS'] === '1' })

// A run has the name of its invoice. One that was interrupted continues; one that has ended gives its answer again.
const rows = harness.map(readdirSync('invoices'), (file) => ({ prompt: `Pay ${file}.`, runId: `pay-${file}` }), {
  concurrency: 4,
})
for await (const { item, status, error } of rows)
  if (status !== 'completed') console.log(`${item}: ${status} ${error instanceof Error ? error.message : ''}`)
await harness.close()
