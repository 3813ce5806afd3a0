import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { existsSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { fileLog } from 'thinharness'
import type { DurableEvent, RunLog } from 'thinharness'
import { bundleStores } from '../support/store-bundle.js'
import { event } from '../core/state/support.js'
import { temporaryFolder } from '../support/folder.js'
import { eventsOfRun } from '../support/collect.js'

/** Where a process can be paused in the middle of an append, another takes the run over here. */
const between: Record<'beforeWrite' | 'afterWrite', (() => void) | null> = { beforeWrite: null, afterWrite: null }
const { writeSync } = fs

function pausableWrite(...args: Parameters<typeof writeSync>): number {
  const { beforeWrite, afterWrite } = between
  Object.assign(between, { beforeWrite: null, afterWrite: null })
  beforeWrite?.()
  const written = writeSync(...args)
  afterWrite?.()
  return written
}

let folder: string
let programs: string

beforeAll(async () => {
  programs = await bundleStores()
  Object.assign(fs, { writeSync: pausableWrite })
  syncBuiltinESMExports()
}, 60_000)

afterAll(() => {
  Object.assign(fs, { writeSync })
  syncBuiltinESMExports()
  rmSync(programs, { recursive: true })
})

beforeEach(() => void (folder = temporaryFolder()))

const LONG_MS = 60_000

const readAll = (log: RunLog, runId = 'run_a'): Promise<DurableEvent[]> => eventsOfRun(log, runId)

const numbers = (...seqs: readonly number[]): DurableEvent[] =>
  seqs.map((seq) => (seq === 1 ? event('run_started', 1) : event('hook_failed', seq, { message: `${seq}` })))

/** Makes the claim of another look as if its time were over. */
function lapse(): void {
  const leases = join(folder, 'run_a.lease')
  for (const name of readdirSync(leases)) utimesSync(join(leases, name), 1, 1)
}

describe('a claim on a file', () => {
  test('160 a released claim leaves no files', async () => {
    const log = fileLog(folder)
    expect(await log.claim({ kind: 'run', id: 'run_a' }, 'ann', LONG_MS)).toBe(true)
    await log.append({ kind: 'run', id: 'run_a' }, numbers(1, 2), { owner: 'ann' })
    expect(readdirSync(folder).sort()).toEqual(['run_a.jsonl', 'run_a.lease'])
    expect(readdirSync(join(folder, 'run_a.lease'))).toEqual(['1'])
    expect(await log.claim({ kind: 'run', id: 'run_a' }, 'ann', 0)).toBe(true)
    expect(readdirSync(folder)).toEqual(['run_a.jsonl'])
    expect(await readAll(log)).toEqual(numbers(1, 2))
  })

  test.each(['beforeWrite', 'afterWrite'] as const)(
    '160 an owner that is paused during an append is rejected, and the log is intact (%s)',
    async (when) => {
      const [ann, bob] = [fileLog(folder, { fsync: 'never' }), fileLog(folder, { fsync: 'never' })]
      await ann.claim({ kind: 'run', id: 'run_a' }, 'ann', LONG_MS)
      await ann.append({ kind: 'run', id: 'run_a' }, numbers(1, 2), { owner: 'ann' })
      // The code of a log is loaded on first use: here it claims at once.
      await bob.inspect({ kind: 'run', id: 'run_a' })
      let taking: Promise<boolean> | undefined
      between[when] = () => {
        lapse()
        taking = bob.claim({ kind: 'run', id: 'run_a' }, 'bob', LONG_MS)
      }
      await expect(ann.append({ kind: 'run', id: 'run_a' }, numbers(3), { owner: 'ann' })).rejects.toMatchObject({
        code: 'run_owned',
      })
      expect(await taking).toBe(true)
      // What was written before the run changed hands may be kept; nothing is afterwards.
      const found = await readAll(bob)
      expect(found).toEqual(numbers(...[1, 2, 3].slice(0, when === 'afterWrite' ? 3 : 2)))
      await bob.append({ kind: 'run', id: 'run_a' }, [event('run_failed', found.length + 1)], { owner: 'bob' })
      await expect(ann.append({ kind: 'run', id: 'run_a' }, numbers(4), { owner: 'ann' })).rejects.toMatchObject({
        code: 'run_owned',
      })
      expect(await readAll(ann)).toEqual([...found, event('run_failed', found.length + 1)])
    },
  )

  test('160 a writer without a claim that is paused during an append is rejected too', async () => {
    const [anybody, bob] = [fileLog(folder, { fsync: 'never' }), fileLog(folder, { fsync: 'never' })]
    await anybody.append({ kind: 'run', id: 'run_a' }, numbers(1))
    await bob.inspect({ kind: 'run', id: 'run_a' })
    let taking: Promise<boolean> | undefined
    between.beforeWrite = () => {
      taking = bob.claim({ kind: 'run', id: 'run_a' }, 'bob', LONG_MS)
    }
    await expect(anybody.append({ kind: 'run', id: 'run_a' }, numbers(2))).rejects.toMatchObject({ code: 'run_owned' })
    expect(await taking).toBe(true)
    await bob.append({ kind: 'run', id: 'run_a' }, [event('run_failed', 2)], { owner: 'bob' })
    expect(await bob.claim({ kind: 'run', id: 'run_a' }, 'bob', 0)).toBe(true)
    expect(await readAll(bob)).toEqual([...numbers(1), event('run_failed', 2)])
  })

  test('160 a claim on a log with a torn tail continues after its last complete record', async () => {
    writeFileSync(join(folder, 'run_a.jsonl'), `${JSON.stringify(numbers(1)[0])}\n{"kind":"ho`)
    const log = fileLog(folder)
    expect(await log.claim({ kind: 'run', id: 'run_a' }, 'ann', LONG_MS)).toBe(true)
    await log.append({ kind: 'run', id: 'run_a' }, numbers(2), { owner: 'ann' })
    expect(await readAll(log)).toEqual(numbers(1, 2))
  })

  test('160 a claim on a damaged log is rejected clearly, and leaves it as it is', async () => {
    const text = `${JSON.stringify(numbers(1)[0])}\n{"kind":\n`
    writeFileSync(join(folder, 'run_a.jsonl'), text)
    await expect(fileLog(folder).claim({ kind: 'run', id: 'run_a' }, 'ann', LONG_MS)).rejects.toMatchObject({
      code: 'invalid_log',
    })
    expect(readdirSync(folder)).toEqual(['run_a.jsonl'])
    expect(readFileSync(join(folder, 'run_a.jsonl'), 'utf8')).toBe(text)
  })

  test('160 an unfinished claim of a process that died blocks nobody for long', async () => {
    await mkdir(join(folder, 'run_a.lease'))
    writeFileSync(join(folder, 'run_a.lease', '7'), '{"own')
    writeFileSync(join(folder, 'run_a.lease', 'log-left'), 'x')
    const log = fileLog(folder)
    expect(await log.claim({ kind: 'run', id: 'run_a' }, 'ann', LONG_MS)).toBe(false)
    lapse()
    expect(await log.claim({ kind: 'run', id: 'run_a' }, 'ann', LONG_MS)).toBe(true)
    expect(readdirSync(join(folder, 'run_a.lease'))).toEqual(['8'])
    await log.claim({ kind: 'run', id: 'run_a' }, 'ann', 0)
    expect(readdirSync(folder)).toEqual([])
  })

  test('160 SB-28 the claim of a process that has ended is free at once, and its run is interrupted', async () => {
    const program = `
      import { fileLog } from ${JSON.stringify(join(programs, 'index.js'))}
      import { newOwner } from ${JSON.stringify(join(programs, 'owner.js'))}
      const log = fileLog(process.argv[1])
      const owner = newOwner()
      await log.claim({ kind: 'run', id: 'run_a' }, owner, 60_000)
      await log.append({ kind: 'run', id: 'run_a' }, ${JSON.stringify(numbers(1, 2))}, { owner })
      process.kill(process.pid, 'SIGKILL')`
    expect(() => execFileSync(process.execPath, ['--input-type=module', '-e', program, folder])).toThrow()
    const log = fileLog(folder)
    expect(await log.inspect({ kind: 'run', id: 'run_a' })).toMatchObject({ status: 'interrupted', lastSeq: 2 })
    expect(await log.claim({ kind: 'run', id: 'run_a' }, 'ann', LONG_MS)).toBe(true)
    expect(await log.inspect({ kind: 'run', id: 'run_a' })).toMatchObject({ status: 'running' })
    await log.append({ kind: 'run', id: 'run_a' }, numbers(3), { owner: 'ann' })
    expect(await readAll(log)).toEqual(numbers(1, 2, 3))
  }, 60_000)

  test.skipIf(process.platform === 'win32')(
    '160 SB-43 a process that was stopped for a while loses its claim',
    async () => {
      const program = `
      import { fileLog } from ${JSON.stringify(join(programs, 'index.js'))}
      const log = fileLog(process.argv[1])
      const events = ${JSON.stringify(numbers(1, 2, 3))}
      await log.claim({ kind: 'run', id: 'run_a' }, 'ann', 300)
      await log.append({ kind: 'run', id: 'run_a' }, events.slice(0, 1), { owner: 'ann' })
      process.stdout.write('claimed\\n')
      process.stdin.once('data', async () => {
        const outcome = await log.append({ kind: 'run', id: 'run_a' }, events.slice(1, 2), { owner: 'ann' }).then(() => 'kept', ({ code }) => code)
        console.log(outcome, await log.claim({ kind: 'run', id: 'run_a' }, 'ann', 300))
        process.exit()
      })`
      const child = spawn(process.execPath, ['--input-type=module', '-e', program, folder], {
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      try {
        await once(child.stdout, 'data')
        child.kill('SIGSTOP')
        const log = fileLog(folder)
        await vi.waitFor(async () => expect(await log.claim({ kind: 'run', id: 'run_a' }, 'bob', LONG_MS)).toBe(true), {
          timeout: 30_000,
        })
        await log.append({ kind: 'run', id: 'run_a' }, numbers(2), { owner: 'bob' })
        const said = once(child.stdout, 'data')
        child.stdin.write('go\n')
        child.kill('SIGCONT')
        expect(String((await said)[0])).toBe('run_owned false\n')
        await log.append({ kind: 'run', id: 'run_a' }, numbers(3), { owner: 'bob' })
        expect(await readAll(log)).toEqual(numbers(1, 2, 3))
      } finally {
        child.kill('SIGKILL')
      }
    },
    30_000,
  )

  test.skipIf(!existsSync('/proc/self/fd'))('160 no file is left open, won or lost, however often', async () => {
    const open = (): number => readdirSync('/proc/self/fd').length
    const log = fileLog(folder)
    await log.claim({ kind: 'run', id: 'run_a' }, 'ann', LONG_MS)
    const before = open()
    for (let round = 0; round < 50; round++) {
      expect(await log.claim({ kind: 'run', id: 'run_a' }, 'bob', LONG_MS)).toBe(false)
      expect(await log.claim({ kind: 'run', id: 'run_b' }, 'bob', LONG_MS)).toBe(true)
      await log.append({ kind: 'run', id: 'run_b' }, numbers(round + 1), { owner: 'bob' })
      expect(await log.claim({ kind: 'run', id: 'run_b' }, 'bob', 0)).toBe(true)
    }
    expect(open()).toBeLessThanOrEqual(before + 1)
    await log.claim({ kind: 'run', id: 'run_a' }, 'ann', 0)
  })
})
