import { writeFile } from 'node:fs/promises'
import { fileLog, Harness } from 'thinharness'
import { viewer } from 'thinharness/viewer'

const log = fileLog('./runs')
await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './notes', log })
const { runId } = await harness.run('What is due this week?')

const page = await viewer(log, {
  runId,
  redact: (event) => (event.kind === 'run_started' ? { ...event, metadata: {} } : event),
})
await writeFile('run.html', page)
