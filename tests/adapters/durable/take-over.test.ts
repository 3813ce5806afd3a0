import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { engineDatabase, Worker } from './support.js'
import { postgresLog } from 'thinharness/store/postgres'
import { temporaryFolder } from '../../support/folder.js'

const database = await engineDatabase()

interface Effect {
  readonly pid: number
  readonly tool: string
  readonly call: string
}

interface Outcome {
  readonly text: string
  readonly stopReason: string
  readonly pending: readonly { readonly callId: string }[]
  readonly outputs: readonly string[]
}

describe.skipIf(database === null)('runs of a process that was killed', () => {
  const log = postgresLog({ connectionString: database?.url ?? 'postgres://127.0.0.1/none' })
  let folder: string
  let effectsFile: string
  let workers: Worker[] = []
  let count = 0
  let version = ''

  afterAll(async () => {
    await log.close()
    await database!.drop()
  }, 60_000)

  beforeEach(() => {
    folder = temporaryFolder()
    effectsFile = join(folder, 'effects')
    writeFileSync(effectsFile, '')
    // The engine gives what is queued to the version that was new last.
    version = `deploy-${(count += 1)}`
  })
  afterEach(async () => {
    await Promise.all(workers.map((worker) => worker.kill()))
    workers = []
  })

  async function worker(): Promise<Worker> {
    const started = await Worker.start({ url: database!.url, effects: effectsFile, version })
    workers.push(started)
    return started
  }

  function effects(): Effect[] {
    const lines = readFileSync(effectsFile, 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => {
      const [pid, tool = '', call = ''] = line.split(' ')
      return { pid: Number(pid), tool, call }
    })
  }

  const begun = (runId: string, tool: string): Effect[] =>
    effects().filter((effect) => effect.tool === tool && effect.call.startsWith(`${runId}/`))

  /** The calls of a run whose outcome is stored. */
  async function endedCalls(runId: string): Promise<number> {
    let ended = 0
    for await (const { kind } of log.read({ kind: 'run', id: runId })) if (kind === 'tool_call_completed') ended++
    return ended
  }

  /** Waits until a run is in the middle of its batch, and gives the process that has it. */
  async function holder(runId: string, endedBefore: number): Promise<Worker> {
    while (begun(runId, 'hold').length === 0 || (await endedCalls(runId)) < endedBefore) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    return workers.find(({ pid }) => pid === begun(runId, 'hold')[0]?.pid)!
  }

  const release = (): void => writeFileSync(`${effectsFile}.released`, '')
  const newRunId = (): string => `run_${(count += 1)}`

  /** That no call took effect twice but those of the tool that only reads. */
  function expectOnce(): void {
    const calls = effects().filter(({ tool }) => tool !== 'safe')
    expect(calls.map(({ call }) => call).sort()).toEqual([...new Set(calls.map(({ call }) => call))].sort())
  }

  test('DU-30 they are taken over by another in the middle of a batch; nothing is done twice', async () => {
    const [one, other] = await Promise.all([worker(), worker()])
    const runId = newRunId()
    const quick = [newRunId(), newRunId(), newRunId()]
    await one.ask({ do: 'start', prompt: 'batch', runId })
    for (const each of quick) await other.ask({ do: 'start', prompt: 'quick', runId: each })
    const victim = await holder(runId, 3)
    await victim.kill()
    release()
    const survivor = victim === one ? other : one
    const { text, stopReason, outputs } = (await survivor.ask({ do: 'result', runId })) as Outcome
    expect([text, stopReason]).toEqual(['All done.', 'end_turn'])
    // The call under way was reported to the model as one whose outcome nobody knows; the ended ones were kept.
    expect(outputs.map((output) => (output.includes('UnknownOutcome') ? 'unknown' : 'ok'))).toEqual([
      'ok',
      'unknown',
      'ok',
      'ok',
      'ok',
    ])
    for (const each of quick)
      expect(await survivor.ask({ do: 'result', runId: each })).toMatchObject({ text: 'Quick.' })
    expectOnce()
  }, 60_000)

  test('DU-31 they are taken over after an answer too, by a process that starts later', async () => {
    const first = await worker()
    const runId = newRunId()
    await first.ask({ do: 'start', prompt: 'approve', runId })
    const { pending } = (await first.ask({ do: 'result', runId })) as Outcome
    await first.ask({ do: 'answer', runId, answers: [{ callId: pending[0]!.callId, approved: true }] })
    await (await holder(runId, 3)).kill()
    release()
    const next = await worker()
    expect(await next.ask({ do: 'result', runId })).toMatchObject({ text: 'Approved.', stopReason: 'end_turn' })
    expect(begun(runId, 'gated')).toHaveLength(1)
    expectOnce()
  }, 60_000)

  test('DU-32 they are taken over by a process of a later version', async () => {
    const first = await worker()
    const runId = newRunId()
    await first.ask({ do: 'start', prompt: 'batch', runId })
    await (await holder(runId, 3)).kill()
    release()
    version = `${version}-next`
    const next = await worker()
    expect(await next.ask({ do: 'result', runId })).toMatchObject({ text: 'All done.' })
    expectOnce()
  }, 60_000)
})
