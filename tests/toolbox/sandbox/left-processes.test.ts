import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { bash } from '#toolbox/bash/bash.js'
import { call, folderWith } from '../support.js'
import { formsHere, FORMS } from './support.js'

const here = await formsHere()
const ALL = [...FORMS, { form: 'none', only: { sandbox: 'off' } }] as const

describe.for(ALL)('a command in the form $form', ({ form, only }) => {
  const works = form === 'none' || here.some((each) => each.form === form)

  // At its first sign of life, the host may not have returned from starting it.
  test.skipIf(!works).for([
    ['at once', /beat/],
    ['once its child runs', /beat,.*beat2/],
  ] as const)('BA-32 does not outlive a host that is killed %s, nor do its children', async ([, alive]) => {
    const root = await folderWith()
    const tools = pathToFileURL(join(process.cwd(), '.build/src/toolbox/index.js')).href
    const testing = pathToFileURL(join(process.cwd(), '.build/src/index.js')).href
    const command = `setsid sh -c 'while :; do date +%N > beat; sleep 0.05; done' & while :; do date +%N > beat2; sleep 0.05; done`
    const script = `import { bash } from '${tools}'; import { callTool } from '${testing}'
      await callTool(bash(${JSON.stringify({ root, ...only })}), { command: ${JSON.stringify(command)} })`
    const host = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' })
    onTestFinished(() => void host.kill('SIGKILL'))
    await vi.waitFor(async () => expect((await readdir(root)).sort().join()).toMatch(alive), {
      timeout: 20_000,
      interval: 1,
    })

    host.kill('SIGKILL')

    await vi.waitFor(
      async () => {
        const beats = (): Promise<string[]> =>
          Promise.all(['beat', 'beat2'].map((name) => readFile(join(root, name), 'utf8').catch(() => '')))
        const before = await beats()
        await new Promise((resolve) => setTimeout(resolve, 300))
        expect(await beats()).toEqual(before)
      },
      { timeout: 30_000 },
    )
  })
})

describe('a command without a sandbox', () => {
  test.skipIf(process.platform !== 'linux')('BA-33 leaves no process behind, whatever its session', async () => {
    const root = await folderWith()
    const command = `setsid sh -c 'echo $$ > pid; exec sleep 60' & (setsid sleep 60 &) ; while [ ! -s pid ]; do sleep 0.01; done`
    const { metadata } = await call(bash({ root, sandbox: 'off' }), { command })
    expect(metadata).toMatchObject({ exit_code: 0, sandbox: 'none' })
    // One that has ended and that nobody has asked for has no command line.
    const pid = (await readFile(join(root, 'pid'), 'utf8')).trim()
    await vi.waitFor(async () => expect(await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).toBe(''), {
      timeout: 20_000,
    })
    const late = await call(bash({ root, sandbox: 'off', graceMs: 50 }), {
      command: `setsid sh -c 'sleep 1; touch late' & sleep 30`,
      timeout_ms: 200,
    })
    expect(late.metadata).toMatchObject({ timeout_kind: 'soft' })
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    expect(await readdir(root)).toEqual(['pid'])
  })

  test.skipIf(process.platform !== 'linux')('leaves none of many double forks behind', async () => {
    const sleep = `sleep 61.${process.pid}`
    const command = `for n in $(seq 40); do (setsid ${sleep} > /dev/null 2>&1 &); done`
    await call(bash({ root: await folderWith(), sandbox: 'off' }), { command })
    const lines = (await readdir('/proc'))
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''))
    expect((await Promise.all(lines)).filter((line) => line.replaceAll('\0', ' ').startsWith(sleep))).toEqual([])
  })
})
