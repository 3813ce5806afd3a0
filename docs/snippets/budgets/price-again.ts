import { fileLog, Harness, priceRun } from 'thinharness'

const log = fileLog('runs')
await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './notes', log })

const { runId, usage } = await harness.run('Which notes mention a deadline?')
const other = await priceRun(log.read({ kind: 'run', id: runId }), 'openai:gpt-5')
console.log(`It cost $${usage.costUsd}; on gpt-5 it would have cost $${other.costUsd}.`)
