import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import { appendFile, chmod, copyFile, mkdir, readdir, readFile, rename } from 'node:fs/promises'
import { rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'tsup'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fileLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { failureOf, harnessOf, tool } from '../harness/support.js'
import { event } from '../core/state/support.js'
import { temporaryFolder } from '../support/folder.js'
import { collect, eventsOfRun } from '../support/collect.js'
import { times } from '../support/length.js'

let folder: string

beforeEach(() => void (folder = temporaryFolder()))

afterEach(() => chmod(folder, 0o700))

const ENDED = { stopReason: 'end_turn', pending: [] } as const
const STORY = [
  event('run_started', 1),
  event('hook_failed', 2, { message: 'Schön: “ü” 🎈\u2028\n' }),
  event('hook_failed', 3, { message: '' }),
]

/** Descriptors of this process that lead into the folder; 0 on a platform that does not show them. */
function openFiles(): number {
  if (!existsSync('/proc/self/fd')) return 0
  return readdirSync('/proc/self/fd').filter((fd) => targetOf(fd).startsWith(folder)).length
}

function targetOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return ''
  }
}

describe('a log in a folder', () => {
  test('161 it stores each run in a file with one event per line, readable only by its owner, and returns it', async () => {
    const log = fileLog(join(folder, 'deep', 'runs'))
    await log.append({ kind: 'run', id: 'run_a' }, STORY.slice(0, 1))
    await log.append({ kind: 'run', id: 'run_a' }, STORY.slice(1))
    const path = join(folder, 'deep', 'runs', 'run_a.jsonl')
    const text = await readFile(path, 'utf8')
    expect(text).toBe(STORY.map((each) => `${JSON.stringify(each)}\n`).join(''))
    if (process.platform !== 'win32') expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(await eventsOfRun(log, 'run_a')).toEqual(STORY)
    expect(await eventsOfRun(log, 'run_a', 2)).toEqual(STORY.slice(2))
    expect(await eventsOfRun(fileLog(join(folder, 'deep', 'runs')), 'run_a')).toEqual(STORY)
    expect(await eventsOfRun(log, 'run_unknown')).toEqual([])
  })

  test('161 it stores the same run as memory', async () => {
    using model = new ScriptedModel().calls('a').says('Done.')
    const stream = harnessOf({ model, tools: [tool('a')], log: fileLog(folder) }).stream('Go.')
    const told = (await collect(stream)).filter((each) => each.durable)
    expect(await eventsOfRun(fileLog(folder), stream.runId)).toEqual(JSON.parse(JSON.stringify(told)))
  })

  test('160 it rejects events that do not follow, stores nothing of them, and continues with valid ones', async () => {
    const log = fileLog(folder)
    await log.append({ kind: 'run', id: 'run_a' }, STORY.slice(0, 2))
    await expect(log.append({ kind: 'run', id: 'run_a' }, [event('hook_failed', 4)])).rejects.toMatchObject({
      code: 'store_failure',
    })
    await expect(
      log.append({ kind: 'run', id: 'run_a' }, [event('hook_failed', 3), event('hook_failed', 5)]),
    ).rejects.toMatchObject({
      code: 'store_failure',
    })
    await expect(fileLog(folder).append({ kind: 'run', id: 'run_a' }, [event('run_started', 1)])).rejects.toMatchObject(
      {
        code: 'run_exists',
        message: "There is a run `run_a` already. `ifExists: 'continue'` gives its result.",
      },
    )
    await log.append({ kind: 'run', id: 'run_a' }, STORY.slice(2))
    expect(await eventsOfRun(log, 'run_a')).toEqual(STORY)
  })

  test.each(['always', 'interval', 'never'] as const)(
    'resolves with fsync `%s`, at the end of the run too',
    async (fsync) => {
      const log = fileLog(folder, { fsync })
      await log.append({ kind: 'run', id: 'run_a' }, STORY)
      await log.append({ kind: 'run', id: 'run_a' }, [event('run_completed', 4, ENDED)])
      expect(await eventsOfRun(log, 'run_a')).toHaveLength(4)
      expect(openFiles()).toBe(0)
    },
  )

  test.each<[string, unknown, unknown, string]>([
    [
      'a policy that is none',
      'runs',
      { fsync: 'allways' },
      'Expected `fsync` of `fileLog` to be one of `always`, `interval`, `never`, got `allways`. Did you mean `always`?',
    ],
    ['an unknown option', 'runs', { fsinc: 'always' }, 'Unknown option of `fileLog`: `fsinc`. Did you mean `fsync`?'],
    ['no folder', undefined, {}, 'Expected the folder of `fileLog` to be a path.'],
  ])('invalid options are rejected at once: %s', (_name, path, options, message) => {
    expect(() => fileLog(path as string, options as object)).toThrow(
      expect.objectContaining({ code: 'invalid_options', message }),
    )
  })

  test('gives every run id a file of its own, whatever is in it', async () => {
    const log = fileLog(folder)
    const ids = [
      ...['run_1', 'RUN_1', 'Run_1', 'a.b', 'a:b', 'a-b', '.', '..', '...', '-', 'con', '%2e', '_'],
      ...['A'.repeat(128), `${'A'.repeat(127)}B`, '../outside', 'a/b', 'ü', '\u0001', '\u01011', ' ', '~'],
    ]
    for (const id of ids) await log.append({ kind: 'run', id }, [event('run_started', 1, { prompt: id })])
    const names = readdirSync(folder)
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(ids.length)
    expect(names.every((name) => /^[a-z0-9_%~-]+\.jsonl$/.test(name) && name.length <= 255)).toBe(true)
    for (const id of ids) expect(await eventsOfRun(fileLog(folder), id)).toMatchObject([{ prompt: id }])
    expect(readdirSync(join(folder, '..')).includes('outside.jsonl')).toBe(false)
  })

  test('has closed the files of hundreds of runs that have ended, well or not', async () => {
    const model = new ScriptedModel().always(({ messages }) => {
      const [first] = messages
      if (first?.role === 'user' && first.content === 'fail') throw new Error('Down.')
      return 'Done.'
    })
    const harness = harnessOf({ model, log: fileLog(folder) })
    const rounds = times(3, 10)
    for (let round = 0; round < rounds; round++) {
      const runs = Array.from({ length: 100 }, (_, index) => harness.run(index % 2 === 0 ? 'Go.' : 'fail'))
      await Promise.allSettled(runs)
    }
    expect(readdirSync(folder)).toHaveLength(100 * rounds)
    expect(openFiles()).toBe(0)
  }, 60_000)
})

describe('a truncated log', () => {
  const lines = STORY.map((each) => Buffer.from(`${JSON.stringify(each)}\n`))
  const whole = Buffer.concat(lines)
  const ends = lines.map((_, index) => Buffer.concat(lines.slice(0, index + 1)).length)

  test('161 cut at any byte it is read up to its last complete event, and rejected clearly within its first', async () => {
    const path = join(folder, 'run_a.jsonl')
    for (let length = whole.length; length >= 0; length--) {
      await writeFile(path, whole.subarray(0, length))
      // The newline may be what is missing: the event is whole all the same.
      const kept = ends.filter((end) => end - 1 <= length).length
      const reading = eventsOfRun(fileLog(folder), 'run_a')
      if (kept > 0) expect(await reading).toEqual(STORY.slice(0, kept))
      else
        await expect(reading).rejects.toMatchObject({
          code: 'invalid_log',
          message:
            'The log of run `run_a` was cut within its first record: none of its events was stored, so it cannot continue.',
        })
    }
  }, 60_000)

  test('161 SB-41 cut at any byte it is continued after its last complete event', async () => {
    const path = join(folder, 'run_a.jsonl')
    for (let length = whole.length; length >= 0; length--) {
      await writeFile(path, whole.subarray(0, length))
      const kept = ends.filter((end) => end - 1 <= length).length
      const next = kept === 0 ? event('run_started', 1) : event('run_failed', kept + 1)
      await fileLog(folder, { fsync: 'never' }).append({ kind: 'run', id: 'run_a' }, [
        next,
        event('run_failed', kept + 2),
      ])
      const expected = [...STORY.slice(0, kept), next, event('run_failed', kept + 2)]
      expect(await readFile(path, 'utf8')).toBe(expected.map((each) => `${JSON.stringify(each)}\n`).join(''))
    }
    expect(openFiles()).toBe(0)
  }, 60_000)

  test('161 it is read if the cut is in a record longer than the first block', async () => {
    const path = join(folder, 'run_a.jsonl')
    const long = event('hook_failed', 2, { message: 'x'.repeat(300_000) })
    const torn = JSON.stringify(event('hook_failed', 3, { message: 'y'.repeat(300_000) })).slice(0, 200_000)
    await writeFile(path, `${JSON.stringify(STORY[0])}\n${JSON.stringify(long)}\n${torn}`)
    expect((await eventsOfRun(fileLog(folder), 'run_a')).map(({ seq }) => seq)).toEqual([1, 2])
    await fileLog(folder).append({ kind: 'run', id: 'run_a' }, [event('run_failed', 3)])
    expect((await eventsOfRun(fileLog(folder), 'run_a')).map(({ seq }) => seq)).toEqual([1, 2, 3])
  })

  test.each<[string, string, string]>([
    [
      'in its middle',
      `${lines[0]!.toString()}{"kind":\n${lines[1]!.toString()}`,
      `is damaged: record 2, at byte ${lines[0]!.length}, cannot be read.`,
    ],
    [
      'in its last whole line',
      `${lines[0]!.toString()}{"kind":\n`,
      `is damaged: record 2, at byte ${lines[0]!.length}, cannot be read.`,
    ],
    [
      'by a line that is missing',
      `${lines[0]!.toString()}${lines[2]!.toString()}`,
      `is damaged: record 2, at byte ${lines[0]!.length}, is event 3 where 2 was to come.`,
    ],
    [
      'by a line that is no event',
      `${lines[0]!.toString()}5\n`,
      `is damaged: record 2, at byte ${lines[0]!.length}, cannot be read.`,
    ],
  ])('161 a damaged log is rejected clearly: %s', async (_name, text, message) => {
    await writeFile(join(folder, 'run_a.jsonl'), text)
    await expect(eventsOfRun(fileLog(folder), 'run_a')).rejects.toMatchObject({
      code: 'invalid_log',
      message: expect.stringContaining(message) as string,
    })
  })

  test('a damaged log is listed as unreadable, between the others, and can be removed by its name', async () => {
    const first = lines[0]!.toString()
    const texts = {
      run_a: whole.toString(),
      run_b: 'no record\n',
      run_c: `${first}no record\n`,
      run_d: '{"kind":"run_sta',
    }
    for (const [name, text] of Object.entries(texts)) await writeFile(join(folder, `${name}.jsonl`), text)
    await mkdir(join(folder, 'threads'))
    await writeFile(join(folder, 'threads', 'thread_a.jsonl'), 'no record\n')
    const log = fileLog(folder)
    const listed = await collect(log.list())
    expect(new Set(listed.map(({ runId, status }) => `${runId} ${status}`))).toEqual(
      new Set(['run_t interrupted', 'run_b unreadable', 'run_c unreadable']),
    )
    expect(listed.find(({ runId }) => runId === 'run_c')?.error?.message).toContain('record 2')
    const [thread] = await collect(log.list({ kind: 'thread' }))
    expect(thread).toMatchObject({ threadId: 'thread_a', digest: null, error: { code: 'invalid_log' } })
    const refs = ['run_b', 'run_c'].map((id) => ({ kind: 'run' as const, id }))
    expect(await log.prune({ only: [...refs, { kind: 'thread', id: 'thread_a' }] })).toBe(3)
    expect((await readdir(folder)).filter((name) => name.endsWith('.jsonl')).sort()).toEqual([
      'run_a.jsonl',
      'run_d.jsonl',
    ])
  })

  test.each(['', '{"kind":"run_sta'])(
    'a run whose first record is being written (%j) is not there yet',
    async (text) => {
      await writeFile(join(folder, 'run_a.jsonl'), text)
      expect(await fileLog(folder).inspect({ kind: 'run', id: 'run_a' })).toBe(null)
      expect(await collect(fileLog(folder).list())).toEqual([])
    },
  )

  test('161 a damaged last record is not appended to, complete or before a torn one, and no file is left open', async () => {
    for (const text of ['{"kind":\n', '{"kind":\n{"to']) {
      await writeFile(join(folder, 'run_a.jsonl'), `${lines[0]!.toString()}${text}`)
      await expect(
        fileLog(folder).append({ kind: 'run', id: 'run_a' }, [event('hook_failed', 2)]),
      ).rejects.toMatchObject({
        code: 'invalid_log',
        message: `The log of run \`run_a\` is damaged: its last record, at byte ${lines[0]!.length}, cannot be read.`,
      })
      expect(await readFile(join(folder, 'run_a.jsonl'), 'utf8')).toBe(`${lines[0]!.toString()}${text}`)
    }
    expect(openFiles()).toBe(0)
  })

  test('161 a line of 40 MB is read quickly', async () => {
    const log = fileLog(folder, { fsync: 'never' })
    await log.append({ kind: 'run', id: 'run_a' }, [
      event('run_started', 1, { prompt: 'x'.repeat(40_000_000) }),
      event('hook_failed', 2),
    ])
    const start = performance.now()
    expect(await eventsOfRun(log, 'run_a', 1)).toHaveLength(1)
    expect(performance.now() - start).toBeLessThan(30_000)
  }, 60_000)
})

describe('a file that is changed during its run', () => {
  const ref = { kind: 'run', id: 'run_a' } as const
  const path = (): string => join(folder, 'run_a.jsonl')

  test.each<[string, () => Promise<void>, RegExp]>([
    ['removed', () => rm(path()), /is gone during the run\.$/],
    ['moved', () => rename(path(), join(folder, 'elsewhere.jsonl')), /is gone during the run\.$/],
    ['replaced', () => rename(join(folder, 'copy.jsonl'), path()), /was replaced during the run\.$/],
    ['truncated', () => truncate(path(), 10), /was changed during the run\.$/],
    ['extended', () => appendFile(path(), 'x\n'), /was changed during the run\.$/],
  ])('160 by being %s makes the next append fail', async (_name, change, message) => {
    const log = fileLog(folder, { fsync: 'never' })
    await log.claim(ref, 'ann', 60_000)
    await log.append(ref, STORY.slice(0, 1), { owner: 'ann' })
    await copyFile(path(), join(folder, 'copy.jsonl'))
    await change()
    const failed = { code: 'store_failure', message: expect.stringMatching(message) as string }
    await expect(log.append(ref, STORY.slice(1, 2), { owner: 'ann' })).rejects.toMatchObject(failed)
    await log.claim(ref, 'ann', 0)
    expect(openFiles()).toBe(0)
  })

  test('160 is reported by the run', async () => {
    const steps = { model: new ScriptedModel().calls('erase').says('Done.'), log: fileLog(folder) }
    const erase = tool('erase', () => rm(join(folder, 'run_a.jsonl')))
    const error = await failureOf(harnessOf({ ...steps, tools: [erase] }).run('Go.', { runId: 'run_a' }))
    expect(error).toMatchObject({ code: 'store_failure', run: { runId: 'run_a' } })
  })

  test.skipIf(process.platform !== 'linux')('160 a folder that cannot be created is a store failure', async () => {
    const log = fileLog('/proc/thinharness/runs')
    await expect(log.claim(ref, 'ann', 60_000)).rejects.toMatchObject({ code: 'store_failure' })
    const error = await failureOf(harnessOf({ model: new ScriptedModel(), log }).run('Go.'))
    expect(error).toMatchObject({ code: 'store_failure', cause: { code: 'ENOENT' } })
  })
})

describe('a failing disk', () => {
  const isRoot = process.getuid?.() === 0

  test.skipIf(isRoot || process.platform === 'win32')(
    '160 a folder that cannot be written to is a store failure',
    async () => {
      await chmod(folder, 0o500)
      const error = await failureOf(harnessOf({ model: new ScriptedModel(), log: fileLog(folder) }).run('Go.'))
      expect(error).toMatchObject({ code: 'store_failure', cause: { code: 'EACCES' } })
    },
  )

  test('160 a folder that is a file is a store failure', async () => {
    await writeFile(join(folder, 'file'), '')
    const error = await failureOf(
      harnessOf({ model: new ScriptedModel(), log: fileLog(join(folder, 'file', 'runs')) }).run('Go.'),
    )
    expect(error).toMatchObject({ code: 'store_failure', cause: { code: 'ENOTDIR' } })
  })

  test.skipIf(!existsSync('/dev/full'))('160 a full disk is a store failure, and its file is closed', async () => {
    await symlink('/dev/full', join(folder, 'run_a.jsonl'))
    await expect(fileLog(folder).append({ kind: 'run', id: 'run_a' }, STORY)).rejects.toMatchObject({
      code: 'store_failure',
      message: expect.stringMatching(/^The log could not store an event of run `run_a`: ENOSPC/) as string,
      cause: { code: 'ENOSPC' },
    })
    expect(openFiles()).toBe(0)
  })

  test.skipIf(process.platform === 'win32')(
    '160 a disk that fills up during an append stores nothing of it',
    async () => {
      await build({
        entry: { log: new URL('../../src/store/file-log.ts', import.meta.url).pathname },
        outDir: folder,
        format: 'esm',
        outExtension: () => ({ js: '.mjs' }),
        silent: true,
        config: false,
      })
      const program = join(folder, 'program.mjs')
      await writeFile(
        program,
        `import { fileLog } from './log.mjs'
      const event = (seq) => ({ kind: 'hook_failed', seq, message: 'x'.repeat(300) })
      const log = fileLog('.')
      await log.append({ kind: 'run', id: 'run_a' }, [event(1), event(2)])
      const failure = await log.append({ kind: 'run', id: 'run_a' }, [3, 4, 5, 6, 7, 8, 9, 10].map(event)).catch(({ cause }) => cause.code)
      await log.append({ kind: 'run', id: 'run_a' }, [event(3)])
      console.log(failure)`,
      )
      // No file of the program may be longer than 2 blocks of 1024 bytes.
      const limited = ['-c', 'ulimit -f 2; exec "$0" "$1"', process.execPath, program]
      expect(execFileSync('bash', limited, { cwd: folder, encoding: 'utf8' })).toBe('EFBIG\n')
      const kept = await readFile(join(folder, 'run_a.jsonl'), 'utf8')
      expect(kept.split('\n').map((line) => line.length)).toEqual([343, 343, 343, 0])
      expect((await eventsOfRun(fileLog(folder), 'run_a')).map(({ seq }) => seq)).toEqual([1, 2, 3])
    },
    30_000,
  )

  test('160 a log may continue after a temporary failure', async () => {
    const log = fileLog(folder)
    await mkdir(join(folder, 'run_a.jsonl'))
    await expect(log.append({ kind: 'run', id: 'run_a' }, STORY.slice(0, 1))).rejects.toMatchObject({
      code: 'store_failure',
      message: expect.stringMatching(/^The log could not store an event of run `run_a`: EISDIR/) as string,
      cause: { code: 'EISDIR' },
    })
    await rm(join(folder, 'run_a.jsonl'), { recursive: true })
    await log.append({ kind: 'run', id: 'run_a' }, STORY)
    expect(await eventsOfRun(log, 'run_a')).toEqual(STORY)
  })
})
