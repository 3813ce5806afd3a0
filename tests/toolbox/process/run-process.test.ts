import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { parse } from '#contracts/parse.js'
import { Capture, excerptOf } from '#toolbox/process/capture.js'
import { environmentOf, namedVariables } from '#toolbox/process/environment.js'
import type { NamedVariables } from '#toolbox/process/environment.js'
import { findProgram } from '#toolbox/process/find-program.js'
import { LineFeed, runProcess } from '#toolbox/process/run-process.js'
import { processGroupsProblem, signalGroup } from '#toolbox/process/process-group.js'
import type { ProcessEnd, ProcessRequest } from '#toolbox/process/run-process.js'
import { object } from '#util/validate.js'
import { folderWith } from '../support.js'

const KIB = 1_024

function shell(script: string, request: Partial<ProcessRequest> = {}): Promise<ProcessEnd> {
  return runProcess({
    program: '/bin/sh',
    args: ['-c', script],
    cwd: tmpdir(),
    environment: { PATH: process.env['PATH'] ?? '' },
    timeoutMs: 15_000,
    graceMs: 100_000,
    maxOutputBytes: 256 * KIB,
    signal: new AbortController().signal,
    ...request,
  })
}

async function ended(script: string, request: Partial<ProcessRequest> = {}): Promise<ProcessEnd & { kind: 'ended' }> {
  const end = await shell(script, request)
  if (end.kind !== 'ended') throw new Error(`It could not be started: ${end.code}.`)
  return end
}

/** Whether a process is there and is no zombie that nobody has asked for. */
async function runs(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return status !== '' && !/\) [ZX] /.test(status)
}

async function expectGone(pidText: string): Promise<void> {
  const pid = Number(pidText)
  expect(pid).toBeGreaterThan(1)
  await vi.waitFor(async () => expect(await runs(pid)).toBe(false), { timeout: 30_000 })
}

describe('the process runner', () => {
  test('a result holds both streams and the exit code; there is no input', async () => {
    const end = await ended('cat; echo out; echo err >&2; exit 3')
    expect({ ...end, stdout: end.stdout.text(), stderr: end.stderr.text() }).toEqual({
      kind: 'ended',
      exitCode: 3,
      signal: null,
      stopped: null,
      durationMs: expect.any(Number) as number,
      stdout: 'out\n',
      stderr: 'err\n',
    })
  })

  test('merged streams arrive as one, in their order', async () => {
    const end = await ended('echo 1; sleep 0.1; echo 2 >&2; sleep 0.1; echo 3', { merged: true })
    expect(end.stdout.text()).toBe('1\n2\n3\n')
    expect(end.stderr).toBe(end.stdout)
  })

  test('151 a soft timeout terminates the whole group, and its output is kept', async () => {
    const end = await ended("trap 'echo bye; exit 5' TERM; echo hello; sleep 300 & wait", { timeoutMs: 1_500 })
    expect([end.stopped, end.exitCode, end.stdout.text()]).toEqual(['soft', 5, 'hello\nbye\n'])
    expect(end.durationMs).toBeLessThan(40_000)
  })

  test('BA-05 151 a process that ignores the signal is killed after the grace period, with its children', async () => {
    const script = `trap '' TERM; sh -c "trap '' TERM; echo \\$\\$; while :; do sleep 0.05; done" & wait; while :; do sleep 0.05; done`
    const end = await ended(script, { timeoutMs: 1_000, graceMs: 300 })
    expect([end.stopped, end.exitCode, end.signal]).toEqual(['soft', null, 'SIGKILL'])
    expect(end.durationMs).toBeLessThan(40_000)
    await expectGone(end.stdout.text())
  })

  test.each([
    ['the hard limit comes during the grace', { timeoutMs: 1_000, hardTimeoutMs: 1_500, graceMs: 100_000 }],
    ['the hard limit comes first', { timeoutMs: 90_000, hardTimeoutMs: 1_000 }],
    ['the two are the same', { timeoutMs: 1_000, hardTimeoutMs: 1_000 }],
  ])('151 the hard limit kills the process at once: %s', async (_name, request) => {
    const end = await ended("trap '' TERM; echo hello; while :; do sleep 0.05; done", request)
    expect([end.stopped, end.signal, end.stdout.text()]).toEqual(['hard', 'SIGKILL', 'hello\n'])
    expect(end.durationMs).toBeLessThan(40_000)
  })

  test('152 a child that keeps the pipe open has half a second, then it is killed', async () => {
    const end = await ended('sleep 300 & echo $!')
    expect([end.exitCode, end.stopped]).toEqual([0, null])
    expect(end.durationMs).toBeGreaterThanOrEqual(450)
    expect(end.durationMs).toBeLessThan(40_000)
    await expectGone(end.stdout.text())
  })

  test('a child that holds no pipe is killed too', async () => {
    const end = await ended('sleep 300 >/dev/null 2>&1 & echo $!')
    expect(end.durationMs).toBeLessThan(40_000)
    await expectGone(end.stdout.text())
  })

  test('an abort kills the group, without a grace', async () => {
    const abort = new AbortController()
    const running = ended("trap '' TERM; echo $$; while :; do sleep 0.05; done", {
      signal: abort.signal,
      onLines: () => abort.abort(),
    })
    const abortedAt = await new Promise<number>((resolve) => {
      abort.signal.addEventListener('abort', () => resolve(performance.now()))
    })
    const end = await running
    expect(performance.now() - abortedAt).toBeLessThan(40_000)
    expect([end.stopped, end.signal]).toEqual(['aborted', 'SIGKILL'])
    await expectGone(end.stdout.text())
  })

  test('a signal that is already aborted lets no command continue', async () => {
    const end = await ended('sleep 300', { signal: AbortSignal.abort() })
    expect(end.stopped).toBe('aborted')
  })

  test.each([
    ['a program that is not there', { program: '/nonexistent/program', args: [] }, 'ENOENT'],
    ['a file that is no program', { program: new URL(import.meta.url).pathname, args: [] }, 'EACCES'],
    ['arguments that are too long', { args: ['-c', 'x'.repeat(300_000)] }, 'E2BIG'],
  ])('%s is a reported failure, not an exception', async (_name, request, code) => {
    expect(await shell('', request)).toEqual({ kind: 'unstarted', code })
  })

  test('a stream beyond its limit keeps its beginning and its end, in bounded memory', async () => {
    const end = await ended("i=0; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo end", {
      maxOutputBytes: 128 * KIB,
    })
    const text = end.stdout.text()
    expect(text.length).toBeLessThan(130 * KIB)
    expect(text).toMatch(/^x+\n\[… \d+ bytes left out …\]\nx+\nend\n$/)
    expect(end.stdout.leftOut).toBeGreaterThan(29_000_000)
  })

  test('154 lines are emitted in order while the program runs, including a last line without an ending', async () => {
    const seen: [string, string][] = []
    const script =
      'for i in 1 2 3; do echo line $i; sleep 0.1; done; printf "half \\303"; sleep 0.1; printf "\\244 line"'
    await ended(script, { onLines: (stream, lines) => seen.push([stream, lines]) })
    expect(seen.length).toBeGreaterThanOrEqual(3)
    expect(seen.map(([, lines]) => lines).join('')).toBe('line 1\nline 2\nline 3\nhalf ä line')
    expect(seen.slice(0, -1).every(([stream, lines]) => stream === 'stdout' && lines.endsWith('\n'))).toBe(true)
  })
})

describe('Capture', () => {
  test('it keeps short output whole, however it is split', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 50 }), (chunks) => {
        const capture = new Capture(128 * KIB)
        for (const chunk of chunks) capture.add(Buffer.from(chunk))
        expect(capture.text()).toBe(Buffer.concat(chunks).toString())
      }),
    )
  })

  test('of longer output, the two ends are exact', () => {
    const whole = Buffer.from('ä€😀x'.repeat(100_000))
    const capture = new Capture(256 * KIB)
    for (let at = 0; at < whole.length; at += 777) capture.add(whole.subarray(at, at + 777))
    const [head = '', marker = '', tail = ''] = capture.text().split('\n')
    expect(whole.toString().startsWith(head)).toBe(true)
    expect(whole.toString().endsWith(tail)).toBe(true)
    expect(marker).toBe(`[… ${capture.leftOut} bytes left out …]`)
    expect(head.length + tail.length).toBeGreaterThan(60_000)
  })
})

test('the line feed splits a giant line into pieces and stops at its limit', () => {
  vi.useFakeTimers()
  try {
    const told: string[] = []
    const feed = new LineFeed((lines) => told.push(lines), 200_000)
    feed.add(Buffer.alloc(100_000, 'x'))
    vi.advanceTimersByTime(50)
    expect(told.map((text) => text.length)).toEqual([100_000])
    feed.add(Buffer.alloc(500_000, 'y'))
    feed.end()
    feed.add(Buffer.from('late'))
    vi.advanceTimersByTime(1_000)
    expect(told.join('')).toBe('x'.repeat(100_000) + 'y'.repeat(100_000))
  } finally {
    vi.useRealTimers()
  }
})

test.each([
  ['short', 5, { text: 'short', truncated: false }],
  ['0123456789', 5, { text: '0\n[… 5 of 10 characters left out …]\n6789', truncated: true }],
  ['😀😀😀😀😀😀', 5, { text: '😀\n[… 1 of 6 characters left out …]\n😀😀😀😀', truncated: true }],
])(
  'an excerpt of %s in %i characters has a fifth from the start and the rest from the end',
  (text, limit, expected) => {
    expect(excerptOf(text, limit)).toEqual(expected)
  },
)

describe('the environment of a command', () => {
  test('it holds the usual names and the named ones, nothing else', () => {
    vi.stubEnv('FAKE_API_KEY', 'sk-not-a-key')
    try {
      const environment = environmentOf({ TOKEN: 't', HOME: undefined, LANG: 'C.UTF-8', ABSENT: undefined })
      expect(environment).toMatchObject({ TOKEN: 't', LANG: 'C.UTF-8', TERM: 'dumb', PATH: process.env['PATH'] })
      const usual = [
        'PATH',
        'HOME',
        'USER',
        'LOGNAME',
        'LANG',
        'LANGUAGE',
        'LC_ALL',
        'LC_CTYPE',
        'TZ',
        'TMPDIR',
        'TERM',
      ]
      expect(Object.keys(environment).filter((name) => ![...usual, 'TOKEN'].includes(name))).toEqual([])
      expect(environment).not.toHaveProperty('HOME')
    } finally {
      vi.unstubAllEnvs()
    }
  })

  test.each([
    ['a list', ['A'], 'Expected `env` of the tool to be an object, got a list.'],
    [
      'an odd name',
      { 'A=B': 'x' },
      'Expected `env` of the tool to be an object with names of variables as keys, got `A=B`.',
    ],
    [
      'an empty name',
      { '': 'x' },
      'Expected `env` of the tool to be an object with names of variables as keys, got ``.',
    ],
    [
      'a value that is not a string',
      { KEY: 5 },
      'Expected `env.KEY` of the tool to be a string without NUL, got something else.',
    ],
    ['a NUL', { KEY: 'sec\0ret' }, 'Expected `env.KEY` of the tool to be a string without NUL, got something else.'],
  ])('%s is rejected without showing a value', (_name, given, message) => {
    expect(() => parse(object<{ env: NamedVariables }>({ env: namedVariables }), { env: given }, 'the tool')).toThrow(
      message,
    )
  })
})

test('a program is looked up only in the absolute folders of the path', async () => {
  const folder = await folderWith({ 'data.txt': '', 'around/tool': '' })
  expect(await findProgram('sh', `relative:${folder}:/bin`)).toBe('/bin/sh')
  expect(await findProgram('data.txt', folder)).toBeUndefined()
  expect(await findProgram('around', folder)).toBeUndefined()
  expect(await findProgram('/bin/sh', '')).toBe('/bin/sh')
  expect(await findProgram(join(folder, 'missing'), '')).toBeUndefined()
})

test('process groups: Windows is rejected in plain words, and no signal reaches other processes', () => {
  expect(processGroupsProblem('linux')).toBeUndefined()
  expect(processGroupsProblem('win32')).toContain('Windows Subsystem for Linux')
  const kill = vi.spyOn(process, 'kill').mockImplementation(() => true)
  try {
    for (const pid of [undefined, 0, 1, -1]) signalGroup(pid, 'SIGTERM')
    expect(kill).not.toHaveBeenCalled()
  } finally {
    kill.mockRestore()
  }
})
