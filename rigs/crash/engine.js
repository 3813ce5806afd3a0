import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Takes a run to its end on DBOS, whose processes take it over from each other. Each run has a queue of its own, so that
 * no process gets the work of another scenario.
 */
export async function toTheEndOnEngine({ packageFolder, harness, log, url, runId, answersTo }) {
  const { dbosRuns } = await import(`${packageFolder}/durable/dbos/index.js`)
  const launch = { databaseUrl: url }
  const runs = await dbosRuns({ harness, log, name: runId, launch, queue: { pollMs: 20 }, takeOverEveryMs: 20 })
  const run = await runs.get(runId).catch(() => runs.start('top', { runId }))
  let reached = await run.result()
  while (reached.pending.length > 0) {
    await runs.answer(runId, answersTo(reached.pending)).catch(passOverOther)
    reached = await (await runs.get(runId)).result()
  }
  await runs.close()
  return reached
}

/** The process before has answered and was killed: its answers are on their way. */
async function passOverOther(error) {
  if (error.code !== 'invalid_state' && error.code !== 'invalid_answer') throw error
  await sleep(20)
}
