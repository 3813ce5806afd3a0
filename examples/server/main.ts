// A deploy in the middle of many runs: an HTTP server whose runs survive it.
//   npm run example -- server        POST /orders/7 begins the run of an order, GET /orders/7 returns its status
//   kill -TERM <pid>                  the server stops: tool calls in progress end, and the runs are left
//   npm run example -- server        the next process continues them; nothing is shipped twice
import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineTool, Harness, HarnessError } from 'thinharness'
import type { RunSummary } from 'thinharness'
import { sqliteLog } from 'thinharness/store/sqlite'
import { z } from 'zod'

const ship = defineTool({
  name: 'ship',
  description: 'Ship a part of an order.',
  parameters: z.object({ order: z.string(), part: z.number().int() }),
  handler: async ({ order, part }) => {
    await sleep(50)
    appendFileSync('shipped.txt', `${order}/${part}\n`)
    return `Part ${part} of order ${order} is on its way.`
  },
})

const log = sqliteLog('runs.db')
const harness = new Harness({ builtinTools: [], tools: [ship], log })

const server = createServer((request, response) => {
  const [, order] = /^\/orders\/(\w+)$/.exec(request.url ?? '') ?? []
  const answer = order === undefined ? Promise.resolve('unknown') : statusOf(order, request.method === 'POST')
  answer.then(
    (status) => response.end(`${status}\n`),
    (error: unknown) => response.writeHead(500).end(String(error)),
  )
})

/** The status of an order. A run that is begun twice is one run: its id is that of the order. */
async function statusOf(order: string, begins: boolean): Promise<string> {
  const known = await runOf(order)
  if (known !== null || !begins) return known?.status ?? 'unknown'
  report(order, harness.run(`Ship order ${order}.`, { runId: `order-${order}` }))
  return 'begun'
}

function runOf(order: string): Promise<RunSummary | null> {
  return log.inspect({ kind: 'run', id: `order-${order}` })
}

/** Prints the end of a run. One that was left has not ended: the next process continues it. */
function report(order: string, run: Promise<{ readonly text: string }>): void {
  run.then(
    ({ text }) => console.log(`order ${order}: ${text}`),
    (error: unknown) => {
      const isLeft = error instanceof HarnessError && error.code === 'interrupted'
      console.log(isLeft ? `order ${order}: left` : `order ${order}: ${String(error)}`)
    },
  )
}

// Runs that the last process has left, or that it had when it crashed.
for await (const { runId } of log.list({ kind: 'run', status: 'interrupted', parentRunId: null }))
  report(runId.replace('order-', ''), harness.recover(runId))

const stopped = new Promise<void>((resolve) => {
  process.once('SIGTERM', () => server.close(() => resolve()).closeIdleConnections())
})
server.listen(Number(process.env['PORT'] ?? 8080), '127.0.0.1', () => {
  const address = server.address()
  console.log(`listening on port ${typeof address === 'object' ? address?.port : address}`)
})
await stopped
await harness.close({ timeoutMs: 5000 })
await log.close()
console.log('closed')
