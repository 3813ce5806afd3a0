import { readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { readTool } from '#toolbox/files/read.js'
import { bash as bashTool } from '#toolbox/bash/bash.js'
import type { BashOptions } from '#toolbox/bash/options.js'
import { bashSettings } from '#toolbox/bash/options.js'
import { ShellRunner } from '#toolbox/bash/run-command.js'
import { isObject } from '#util/json.js'
import type { JsonInput } from '#util/json.js'
import { call, folderWith, workspaceIn } from '../support.js'
import { rounds } from '../../support/length.js'

/** Without a sandbox, so that every machine runs the same. */
function bash(options: BashOptions = {}): ReturnType<typeof bashTool> {
  return bashTool({ sandbox: 'off', ...options })
}

const anyNumber = expect.any(Number) as number
const SHELL = '/bin/bash -lc'

function stubEnv(name: string, value: string): void {
  vi.stubEnv(name, value)
  onTestFinished(() => {
    vi.unstubAllEnvs()
  })
}

describe('bash', () => {
  test('BA-01 the tool is sequential, has a closed schema that requires `command`, and accepts any positive timeout', () => {
    expect(bash()).toMatchObject({
      name: 'bash',
      sequential: true,
      annotations: { readOnly: false, destructive: true, idempotent: false, openWorld: true },
      parameters: {
        required: ['command'],
        additionalProperties: false,
        properties: {
          command: { type: 'string', minLength: 1 },
          cwd: { type: 'string' },
          timeout_ms: { type: 'integer', minimum: 1 },
          max_chars: { type: 'integer', minimum: 1 },
        },
      },
    })
  })

  test('BA-02 a successful command returns its output under labels, with full metadata', async () => {
    const root = await folderWith({ 'sub/a.txt': '' })
    const command = 'ls; echo oops >&2'
    expect(await call(bash({ root }), { command, cwd: 'sub' })).toEqual({
      ok: true,
      content: 'stdout:\na.txt\n\nstderr:\noops\n',
      metadata: {
        command,
        shell: SHELL,
        cwd: 'sub',
        sandbox: 'none',
        exit_code: 0,
        success: true,
        duration_ms: anyNumber,
      },
    })
  })

  test('BA-03 150 a failing command is a successful call: `ok` is true, `success` is false, and the exit code is reported', async () => {
    const root = await folderWith()
    const result = await call(bash({ root }), { command: 'echo no >&2; exit 3' })
    expect(result).toMatchObject({
      ok: true,
      content: 'stderr:\nno\n\n[exit code 3]',
      metadata: { success: false, exit_code: 3 },
    })
    expect(result.metadata).not.toHaveProperty('error_type')
    expect(result.metadata).not.toHaveProperty('retry')
  })

  test('a command that a signal ends has no exit code', async () => {
    const root = await folderWith()
    const { content, metadata } = await call(bash({ root }), { command: 'kill -9 $$' })
    expect(content).toBe('[ended by SIGKILL]')
    expect(metadata).toMatchObject({ exit_code: null, success: false, signal: 'SIGKILL' })
  })

  test('BA-04 151 a soft timeout terminates the process group, keeps the output so far, and is reported as `timed_out` without an error type', async () => {
    const root = await folderWith()
    const result = await call(bash({ root }), { command: 'echo begun; sleep 300; echo never', timeout_ms: 1_500 })
    const message = 'The command was ended: it took longer than 1500 ms.'
    expect(result).toMatchObject({
      ok: true,
      content: `${message}\nstdout:\nbegun\n`,
      metadata: { success: false, timed_out: true, timeout_kind: 'soft', message, exit_code: null, signal: 'SIGTERM' },
    })
  })

  test('BA-05 151 a command that ignores the termination signal is killed after the grace period', async () => {
    const root = await folderWith()
    const command = "trap '' TERM; echo begun; while :; do sleep 0.05; done"
    const result = await call(bash({ root, graceMs: 200 }), { command, timeout_ms: 1_500 })
    expect(result.metadata).toMatchObject({ timeout_kind: 'soft', success: false, exit_code: null, signal: 'SIGKILL' })
    expect(result.metadata['duration_ms']).toBeLessThan(40_000)
  })

  test('151 the hard limit caps the timeout of a call, and exceeding it is reported as `timeout_kind: hard`', async () => {
    const root = await folderWith()
    const message = 'The command was killed: it took longer than the limit of 1500 ms.'
    const result = await call(bash({ root, hardTimeoutMs: 1_500 }), {
      command: 'echo a; sleep 300',
      timeout_ms: 900_000,
    })
    expect(result).toMatchObject({
      ok: true,
      content: `${message}\nstdout:\na\n`,
      metadata: { timed_out: true, timeout_kind: 'hard', message, success: false },
    })
  })

  test('152 a call returns soon after its command has ended, even if a child still holds the pipe open', async () => {
    const root = await folderWith()
    const result = await call(bash({ root }), { command: 'sleep 300 & echo done' })
    expect(result).toMatchObject({ content: 'stdout:\ndone\n', metadata: { exit_code: 0, success: true } })
    expect(result.metadata['duration_ms']).toBeLessThan(40_000)
  })

  test('153 without bash, `/bin/sh -lc` is used and reported; without any shell the exit code is 127', async () => {
    const workspace = workspaceIn(await folderWith())
    const spec = bash()
    const outcomes = [['/nonexistent/bash', '/bin/sh'], ['/nonexistent/bash']].map(async (shells) => {
      const runner = new ShellRunner(bashSettings({ sandbox: 'off' }), shells)
      return call(
        {
          ...spec,
          call: (args, context) => runner.run({ workspace, args: { command: args['command'] as string }, context }),
        },
        { command: 'echo $0' },
      )
    })
    const [plain, none] = await Promise.all(outcomes)
    expect(plain).toMatchObject({ content: 'stdout:\n/bin/sh\n', metadata: { shell: '/bin/sh -lc', exit_code: 0 } })
    expect(none).toMatchObject({
      ok: true,
      content: 'The command could not be started: ENOENT.',
      metadata: { shell: '/nonexistent/bash -lc', exit_code: 127, success: false },
    })
  })

  test('BA-06 BA-07 a working directory outside the root, a missing one and a file are rejected', async () => {
    const root = await folderWith({ 'file.txt': '' })
    await symlink('..', join(root, 'up'))
    const tool = bash({ root })
    const types = ['..', '../..', 'up', 'missing', 'file.txt', 'a\0b', ''].map(async (cwd) => {
      const result = await call(tool, { command: 'touch here', cwd })
      return [result.ok, result.metadata['error_type'], result.content]
    })
    expect(await Promise.all(types)).toEqual([
      [false, 'PathValidationError', 'path escapes root: ..'],
      [false, 'PathValidationError', 'path escapes root: ../..'],
      [false, 'PathValidationError', 'path escapes root: up'],
      [false, 'PathNotFound', 'path not found: missing'],
      [false, 'NotADirectory', 'path is not a directory: file.txt'],
      [false, 'PathValidationError', 'path contains a NUL character: a\\u0000b'],
      [false, 'PathValidationError', 'path is empty: '],
    ])
  })

  test('BA-06 no string as working directory leads outside the root or throws', async () => {
    const root = await folderWith({ 'sub/a.txt': '' })
    const tool = bash({ root })
    const part = fc.constantFrom('..', '.', '', 'sub', 'a.txt', '~', '/', 'C:', '\\\\host', '\0', '-rf', '$(x)')
    const path = fc.oneof(
      fc.array(part, { maxLength: 4 }).map((parts) => parts.join('/')),
      fc.string({ unit: 'binary' }),
    )
    await fc.assert(
      fc.asyncProperty(path, async (cwd) => {
        const { ok, content } = await call(tool, { command: 'pwd -P', cwd })
        if (ok) expect([`stdout:\n${root}\n`, `stdout:\n${root}/sub\n`]).toContain(content)
        else expect(content).not.toContain('\n    at ')
      }),
      rounds(25, 1_200),
    )
  })

  test('BA-08 154 output over the limit keeps its beginning and its end, is marked as truncated, and is saved whole in a file', async () => {
    const root = await folderWith()
    const spec = bash({ root, maxOutputChars: 100 })
    const lines: JsonInput[] = []
    const command = 'for i in $(seq 1 20000); do echo "line $i of a megabyte or more, padded to be long enough"; done'
    const { content, metadata } = await call(spec, { command }, { progress: (update) => lines.push(update) })
    const path = metadata['stdout_file'] as string
    const whole = await readFile(join(root, path), 'utf8')
    expect(whole.length).toBeGreaterThan(1_000_000)
    expect(whole.split('\n')).toHaveLength(20_001)
    expect(metadata).toMatchObject({ truncated: true, stdout_truncated: true, exit_code: 0 })
    expect(metadata).not.toHaveProperty('stderr_truncated')
    expect(content).toBe(
      `stdout (cut; full text in ${path}: use \`read\`):\n${whole.slice(0, 20)}\n` +
        `[… ${whole.length - 100} of ${whole.length} characters left out …]\n${whole.slice(-80)}`,
    )
    const output = lines.flatMap((line) => (isOutput(line) ? [line.output] : []))
    expect(output.join('')).toBe(whole)
    expect(lines.at(-1)).toEqual({ kind: 'command_exit', exitCode: 0, success: true })
    const read = await call(readTool({ root }), { path, offset: 1, limit: 1 })
    expect(read.content).toContain('line 1 of a megabyte')
  })

  test('BA-09 the limit of a call can lower the limit of the tool but never raise it', async () => {
    const root = await folderWith()
    const spec = bash({ root, maxOutputChars: 10 })
    const shown = [5, 1_000].map(
      async (max_chars) => (await call(spec, { command: 'printf 01234567890123456789', max_chars })).content,
    )
    expect((await Promise.all(shown)).map((text) => text.replace(/^.*\n/, ''))).toEqual([
      '0\n[… 15 of 20 characters left out …]\n6789',
      '01\n[… 10 of 20 characters left out …]\n23456789',
    ])
  })

  test('BA-10 missing and invalid arguments are failures that the model can correct', async () => {
    const tool = bash({ root: await folderWith() })
    for (const args of [
      {},
      { command: '' },
      { command: 'ls', timeout_ms: 0 },
      { command: 'ls', shell: 'zsh' },
      { command: 'a\0b' },
    ]) {
      expect(await call(tool, args)).toMatchObject({ ok: false, metadata: { retry: true } })
    }
    expect(await call(tool, { cmd: 'echo hi' })).toMatchObject({ ok: true, content: 'stdout:\nhi\n' })
  })

  test('an abort kills the command, and the result holds its output', async () => {
    const root = await folderWith()
    const abort = new AbortController()
    const result = await call(
      bash({ root }),
      { command: "trap '' TERM; echo begun; while :; do sleep 0.05; done" },
      { signal: abort.signal, progress: () => abort.abort() },
    )
    expect(result).toMatchObject({
      ok: false,
      content: 'The command was cancelled and killed.',
      metadata: { error_type: 'Cancelled', stdout: 'begun\n', stderr: '', exit_code: null, signal: 'SIGKILL' },
    })
  })

  test('color codes are removed, invalid UTF-8 is replaced, and a long command is not repeated in full', async () => {
    const root = await folderWith()
    const command = `printf '\\033[31mred\\033[0m \\377'; : ${'x'.repeat(3_000)}`
    const { content, metadata } = await call(bash({ root }), { command })
    expect(content).toBe('stdout:\nred \uFFFD')
    expect(metadata['command']).toHaveLength(2_001)
  })

  test('a command too long for the system is a failed result, not an exception', async () => {
    const result = await call(bash({ root: await folderWith() }), { command: `: ${'x'.repeat(300_000)}` })
    expect(result).toMatchObject({
      ok: true,
      content: 'The command could not be started: the command is too long: write it to a file and run that.',
      metadata: { exit_code: 126, success: false },
    })
  })
})

function isOutput(value: JsonInput): value is { kind: 'shell_output'; output: string } {
  return isObject(value) && value['kind'] === 'shell_output'
}

describe('the environment of a command', () => {
  test("it holds no key that was not named, and none from the user's login scripts", async () => {
    stubEnv('FAKE_API_KEY', 'sk-from-the-process')
    const home = await folderWith({
      '.bash_profile': 'export FAKE_LOGIN_KEY=sk-from-the-profile PATH=/changed\necho profile was read',
      '.profile': 'export FAKE_LOGIN_KEY=sk-from-the-profile\necho profile was read',
    })
    stubEnv('HOME', home)
    stubEnv('BASH_ENV', join(home, '.bash_profile'))
    const root = await folderWith()
    const { content } = await call(bash({ root, env: { NAMED_KEY: 'named' } }), { command: 'env; echo ~' })
    expect(content).toContain('NAMED_KEY=named\n')
    expect(content).toContain(`HOME=${home}\n`)
    expect(content).toContain(`PATH=${process.env['PATH'] ?? ''}\n`)
    expect(content.endsWith(`${home}\n`)).toBe(true)
    expect(content).not.toMatch(/FAKE_|sk-from|profile was read/)
  })

  test('quoting: home folders and paths with odd characters arrive as they are', async () => {
    const odd = `/tmp/a'b "c" $(x) \`y\` \\`
    const { content } = await call(bash({ root: await folderWith(), env: { HOME: odd } }), {
      command: 'printf %s "$HOME"',
    })
    expect(content).toBe(`stdout:\n${odd}`)
  })

  test('BA-05 arbitrary strings as arguments pass through the shell unchanged', async () => {
    const spec = bash({ root: await folderWith() })
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 }), async (text) => {
        fc.pre(!text.includes('\0') && !/[\p{Cc}\p{Surrogate}]/u.test(text))
        const { ok, content } = await call(spec, { command: `printf %s '${text.replaceAll("'", `'\\''`)}'` })
        expect([ok, content]).toEqual([true, `stdout:\n${text}`])
      }),
      rounds(8, 300),
    )
  })
})

describe('options of bash', () => {
  test.each<[string, object, string]>([
    ['an unknown key', { timeout: 5 }, 'Unknown option of `bash`: `timeout`. Did you mean `timeoutMs`?'],
    [
      'a time of the wrong kind',
      { timeoutMs: 0 },
      'Expected `timeoutMs` of `bash` to be a whole number from 1 to 2147483647, got `0`.',
    ],
    [
      'a sandbox that is none',
      { sandbox: true },
      'Expected `sandbox` of `bash` to be one of `auto`, `required`, `off`, got `true`.',
    ],
    [
      'a rule without a sandbox',
      { network: false },
      '`network` of `bash` is a rule of the sandbox, which is off: set `sandbox` to `auto` or `required`.',
    ],
    [
      'a relative path',
      { sandbox: 'auto', readPaths: ['lib'] },
      'Expected `readPaths[0]` of `bash` to be an absolute path, got `lib`.',
    ],
    ['an output folder outside', { root: '/tmp', outputDir: '../x' }, 'path escapes root: ../x'],
  ])('%s is rejected', (_name, options, message) => {
    expect(() => bash(options as BashOptions)).toThrow(message)
  })
})
