import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { RunLog } from 'thinharness'
import { event } from '../core/state/support.js'
import { eventsOfRun } from '../support/collect.js'

const ENDED = { stopReason: 'end_turn', pending: [] } as const

/** A whole run of two events. */
async function runIn(log: RunLog, runId: string): Promise<void> {
  await log.append({ kind: 'run', id: runId }, [event('run_started', 1)])
  await log.append({ kind: 'run', id: runId }, [event('run_completed', 2, ENDED)])
}

describe('a log in memory', () => {
  test('161 it returns the stored events, by run, in order, from any number on', async () => {
    const log = memoryLog()
    const events = [event('run_started', 1), event('hook_failed', 2), event('hook_failed', 3)]
    await log.append({ kind: 'run', id: 'run_a' }, events.slice(0, 2))
    await log.append({ kind: 'run', id: 'run_b' }, [event('run_started', 1)])
    await log.append({ kind: 'run', id: 'run_a' }, events.slice(2))
    await log.append({ kind: 'run', id: 'run_a' }, [])
    expect(await eventsOfRun(log, 'run_a')).toEqual(events)
    expect(await eventsOfRun(log, 'run_a', 2)).toEqual(events.slice(2))
    expect(await eventsOfRun(log, 'run_a', 3)).toEqual([])
    expect(await eventsOfRun(log, 'run_c')).toEqual([])
  })

  test('160 it rejects events that do not follow, and stores nothing of them', async () => {
    const log = memoryLog()
    await log.append({ kind: 'run', id: 'run_a' }, [event('run_started', 1)])
    await expect(log.append({ kind: 'run', id: 'run_a' }, [event('hook_failed', 3)])).rejects.toMatchObject({
      code: 'store_failure',
    })
    await expect(
      log.append({ kind: 'run', id: 'run_a' }, [event('hook_failed', 1), event('hook_failed', 2)]),
    ).rejects.toMatchObject({
      code: 'run_exists',
      message: "There is a run `run_a` already. `ifExists: 'continue'` gives its result.",
    })
    await expect(
      log.append({ kind: 'run', id: 'run_a' }, [event('hook_failed', 2), event('hook_failed', 4)]),
    ).rejects.toMatchObject({
      code: 'store_failure',
    })
    expect(await eventsOfRun(log, 'run_a')).toHaveLength(1)
  })

  test('continues a run whose beginning it has not seen', async () => {
    const log = memoryLog()
    await log.append({ kind: 'run', id: 'run_a' }, [event('answer_received', 7)])
    await log.append({ kind: 'run', id: 'run_a' }, [event('hook_failed', 8)])
    expect((await eventsOfRun(log, 'run_a')).map(({ seq }) => seq)).toEqual([7, 8])
  })

  test('forgets the earliest ended runs beyond its number, never one in progress or resumed', async () => {
    const log = memoryLog({ keepEnded: 2 })
    await log.append({ kind: 'run', id: 'run_open' }, [event('run_started', 1)])
    await runIn(log, 'run_paused')
    await runIn(log, 'run_1')
    await log.append({ kind: 'run', id: 'run_paused' }, [event('answer_received', 3)])
    for (const n of [2, 3, 4]) await runIn(log, `run_${n}`)
    const names = ['run_open', 'run_paused', 'run_1', 'run_2', 'run_3', 'run_4']
    const lengths = await Promise.all(names.map(async (name) => (await eventsOfRun(log, name)).length))
    expect(Object.fromEntries(names.map((name, index) => [name, lengths[index]]))).toEqual({
      run_open: 1,
      run_paused: 3,
      run_1: 0,
      run_2: 0,
      run_3: 2,
      run_4: 2,
    })
    await log.append({ kind: 'run', id: 'run_paused' }, [event('run_completed', 4, ENDED)])
    expect((await eventsOfRun(log, 'run_3')).length).toBe(0)
    expect((await eventsOfRun(log, 'run_paused')).length).toBe(4)
  })
})
