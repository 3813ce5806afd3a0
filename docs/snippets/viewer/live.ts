import { serve } from '@hono/node-server'
import { fileLog, Harness } from 'thinharness'
import { createHub } from 'thinharness/ui'
import { viewerHandler } from 'thinharness/viewer'

const log = fileLog('./runs')
const hub = createHub({ log })
await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './notes', log })
const run = harness.stream('Tidy up.', { deltas: true })
await hub.start(run)

const show = viewerHandler(log, {
  runId: run.runId,
  hub,
  answers: (runId, answers) => harness.streamResumeRun(runId, answers, { log }),
})
serve({ fetch: show, hostname: '127.0.0.1', port: 4000 })
await run.result
