// Runs a batch and is killed in the middle of it: after `--replies` replies of the model.
//   node .build/rigs/batch-worker.js --folder runs --rows 8 --replies 5
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fileLog, Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'

const { values } = parseArgs({
  options: { folder: { type: 'string' }, rows: { type: 'string' }, replies: { type: 'string' } },
})
const { folder = '.', rows = '8', replies = '5' } = values

let count = 0
const model = new ScriptedModel().always(({ turn, messages: [prompt] }) => {
  count += 1
  if (count > Number(replies)) process.kill(process.pid, 'SIGKILL')
  appendFileSync(join(folder, 'requests'), `${JSON.stringify([prompt?.role === 'user' && prompt.content, turn])}\n`)
  return 'Done.'
})

const log = fileLog(join(folder, 'runs'), { fsync: 'always' })
const harness = new Harness({ model, builtinTools: [], log })
const items = Array.from({ length: Number(rows) }, (_, index) => index)
for await (const row of harness.map(items, (item) => ({ prompt: `Row ${item}`, runId: `row_${item}` }), {
  concurrency: 2,
})) {
  appendFileSync(join(folder, 'rows'), `${row.item}\n`)
}
