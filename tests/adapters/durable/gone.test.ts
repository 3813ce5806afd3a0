import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import type { RunStatus, LogStore } from 'thinharness'
import type { DbosEngine, DbosWorkflow } from '#adapters/durable/dbos/engine.js'
import { TakeOver } from '#adapters/durable/dbos/harness-runs.js'
import { newOwner } from '#util/platform/owner.js'

const MINUTE = 60_000

/** An engine that has these workflows, and remembers what was done to them. */
function engineWith(workflows: readonly Partial<DbosWorkflow>[], versions: readonly string[]) {
  const done: string[] = []
  const known = workflows.map((each) => ({ workflowID: 'run_a/0.1', createdAt: 0, status: 'PENDING', ...each }))
  const tell =
    (what: string) =>
    (workflowID: string): Promise<void> => {
      done.push(`${what} ${workflowID}`)
      return Promise.resolve()
    }
  const dbos: Partial<DbosEngine> = {
    applicationVersion: 'new',
    listApplicationVersions: () => Promise.resolve(versions.map((versionName) => ({ versionName }))),
    listWorkflows: ({ status = [], applicationVersion }) =>
      Promise.resolve(
        known.filter(
          (each) =>
            status.some((one) => one === each.status) &&
            (applicationVersion === undefined || applicationVersion.some((one) => one === each.applicationVersion)),
        ),
      ),
    resumeWorkflow: tell('resume'),
    cancelWorkflow: tell('cancel'),
    rewindWorkflow: tell('rewind'),
  }
  return { done, dbos: dbos as DbosEngine }
}

const logIn = (status: RunStatus | null): LogStore =>
  ({ inspect: () => Promise.resolve(status === null ? null : { status }) }) as unknown as LogStore

async function ownerThatEnded(): Promise<string> {
  const child = spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' })
  const { pid = 0 } = child
  await once(child, 'exit')
  const [place = '', , start = '', random = ''] = newOwner().split('/')
  return [place, pid, start, random].join('/')
}

describe('taking over', () => {
  const now = Date.now()
  const ended = ownerThatEnded()

  test.each<[string, RunStatus | null, Partial<DbosWorkflow>, boolean]>([
    ['a run that somebody has in hand', 'running', { dequeuedAt: now - 10 * MINUTE }, false],
    ['a run that nobody has in hand', 'interrupted', { dequeuedAt: now }, true],
    ['a run that was just given to a process', null, { dequeuedAt: now }, false],
    ['a run that was given to a process long ago and has not begun', null, { dequeuedAt: now - 2 * MINUTE }, true],
    ['a run that has just ended', 'completed', { dequeuedAt: now }, false],
    ['a run that has ended without the engine being told', 'paused', { dequeuedAt: now - 2 * MINUTE }, true],
  ])('%s', async (_name, status, workflow, isTaken) => {
    const { dbos, done } = engineWith([{ applicationVersion: 'new', ...workflow }], ['new'])
    const taken = await new TakeOver(dbos, logIn(status), { name: 'runs', here: new Set() }).once()
    expect([taken, done]).toEqual(isTaken ? [['run_a'], ['resume run_a/0.1']] : [[], []])
  })

  test('DU-33 a run just assigned to a process that has ended is taken over at once', async () => {
    const { dbos, done } = engineWith(
      [{ applicationVersion: 'new', dequeuedAt: now, executorId: await ended }],
      ['new'],
    )
    await new TakeOver(dbos, logIn(null), { name: 'runs', here: new Set() }).once()
    expect(done).toEqual(['resume run_a/0.1'])
  })

  test('DU-34 runs in progress here, or not ours, are left alone', async () => {
    const workflows = [{}, { workflowID: 'something-else' }].map((each) => ({ ...each, applicationVersion: 'new' }))
    const { dbos, done } = engineWith(workflows, ['new'])
    await new TakeOver(dbos, logIn('interrupted'), { name: 'runs', here: new Set(['run_a/0.1']) }).once()
    expect(done).toEqual([])
  })

  const old = [
    { workflowID: 'run_a/0.1', applicationVersion: 'old' },
    { workflowID: 'run_b/7.1', applicationVersion: 'old', status: 'ENQUEUED' },
    { workflowID: 'run_c/0.1', status: 'ENQUEUED' },
  ]

  test('DU-35 runs of an earlier version are moved to the latest', async () => {
    const { dbos, done } = engineWith(old, ['new', 'old'])
    await new TakeOver(dbos, logIn('interrupted'), { name: 'runs', here: new Set() }).once()
    expect(done).toEqual(['cancel run_a/0.1', 'rewind run_a/0.1', 'cancel run_b/7.1', 'rewind run_b/7.1'])
  })

  test('DU-36 an earlier version does not take over runs of a later one', async () => {
    const { dbos, done } = engineWith(
      [...old, { workflowID: 'run_d/0.1', applicationVersion: 'new' }],
      ['newer', 'new'],
    )
    await new TakeOver(dbos, logIn('interrupted'), { name: 'runs', here: new Set() }).once()
    expect(done).toEqual(['resume run_d/0.1'])
  })
})
