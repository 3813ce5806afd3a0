import { chmod, lstat, readFile, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { bash } from '#toolbox/bash/index.js'
import { call, folderWith } from '../support.js'

/** A `bwrap` that does what `script` says. */
async function fakeBubblewrap(script: string): Promise<string> {
  const program = join(await folderWith(), 'bwrap')
  await writeFile(program, `#!/bin/sh\n${script}\n`)
  await chmod(program, 0o755)
  return program
}

describe('the sandbox', () => {
  test('without one, `required` rejects the call and runs nothing', async () => {
    const root = await folderWith()
    const broken = await fakeBubblewrap('echo "bwrap: setting up uid map: Permission denied" >&2; exit 1')
    const results = [broken, '/nonexistent/bwrap'].map((bubblewrap) =>
      call(bash({ root, sandbox: 'required', bubblewrap }), { command: 'touch made' }),
    )
    const why = 'The command was not executed: it requires a sandbox, which is not available:'
    expect(await Promise.all(results)).toEqual([
      {
        ok: false,
        content: `${why} \`bwrap\` does not work here: bwrap: setting up uid map: Permission denied.`,
        metadata: { error_type: 'SandboxUnavailable' },
      },
      {
        ok: false,
        content: `${why} the program \`bwrap\` is not installed.`,
        metadata: { error_type: 'SandboxUnavailable' },
      },
    ])
    expect((await call(bash({ root }), { command: 'ls' })).content).toBe('(no output)')
  })

  test('without one, `auto` runs the command unsandboxed and reports it', async () => {
    const root = await folderWith()
    const result = await call(bash({ root, sandbox: 'auto', bubblewrap: '/nonexistent/bwrap' }), { command: 'echo hi' })
    expect(result).toMatchObject({
      content: 'stdout:\nhi\n',
      metadata: { sandbox: 'none', sandbox_problem: 'the program `bwrap` is not installed' },
    })
  })

  test('it is probed once a root', async () => {
    const [root, probes] = [await folderWith(), join(await folderWith(), 'probes')]
    const tool = bash({ root, sandbox: 'auto', bubblewrap: await fakeBubblewrap(`echo >> ${probes}; exit 1`) })
    await Promise.all([1, 2, 3].map(() => call(tool, { command: ':' })))
    expect(await readFile(probes, 'utf8')).toBe('\n')
  })
})

describe("the harness's own folder in a sandbox", () => {
  /** A `bwrap` that records its arguments, and runs the command without a sandbox. */
  async function recorder(): Promise<{ readonly program: string; readonly calls: () => Promise<string> }> {
    const file = join(await folderWith({ calls: '' }), 'calls')
    const script = `echo "$*" >> ${file}; while [ "$1" != -- ]; do shift; done; shift; exec "$@"`
    return { program: await fakeBubblewrap(script), calls: () => readFile(file, 'utf8') }
  }

  test('BA-15 exists before the first command and is always bound, so that no command can make it a link', async () => {
    const root = await folderWith()
    const { program, calls } = await recorder()

    const made = await call(bash({ root, sandbox: 'required', bubblewrap: program }), {
      command: 'ln -s .. .thinharness',
    })

    const own = join(root, '.thinharness')
    expect(made.metadata).toMatchObject({ sandbox: 'bubblewrap' })
    expect((await lstat(own)).isDirectory()).toBe(true)
    expect((await calls()).split('\n').slice(0, -1)).toEqual(
      [1, 2].map(() => expect.stringContaining(`--bind ${root} ${root} --ro-bind ${own} ${own} `) as unknown),
    )
  })

  test.each([
    ['a link', { 'aim/a.txt': 'a' }, 'aim'],
    ['a link out of the root', {}, '..'],
    ['a link to nothing', {}, 'nothing'],
    ['a file', { '.thinharness': 'a file' }, null],
  ])('BA-16 a sandboxed command does not run if it is not a plain folder: %s', async (_case, files, target) => {
    const root = await folderWith(files)
    if (target !== null) await symlink(target, join(root, '.thinharness'))
    const { program, calls } = await recorder()
    const tool = bash({ root, outputDir: 'out', sandbox: 'required', bubblewrap: program })

    const result = await call(tool, { command: 'touch made' })

    expect(result).toMatchObject({ ok: false, metadata: { error_type: 'PathTypeError' } })
    expect(result.content).toContain('`.thinharness` in the workspace root is not a plain folder')
    expect(await calls()).toBe('')
  })

  test('BA-17 a sandboxed command ends with the host, and a path below a writable one is not bound by itself', async () => {
    const [root, shared] = [await folderWith(), await folderWith()]
    const { program, calls } = await recorder()
    const rules = { readPaths: [`${shared}/a`, '/data', `${root}/b`], writePaths: [shared, `${shared}/x/../c`] }
    const tool = bash({ root, sandbox: 'required', bubblewrap: program, ...rules })

    await call(tool, { command: ':' })

    const made = await calls()
    expect(made).toContain('--die-with-parent')
    expect(made).toContain(`--ro-bind-try /data /data --bind-try ${shared} ${shared} --bind ${root} ${root}`)
  })
})

const works = (await call(bash({ sandbox: 'auto' }), { command: ':' })).metadata['sandbox'] === 'bubblewrap'

// Many containers forbid what bubblewrap is made of.
describe.skipIf(!works)('the bubblewrap sandbox (skipped if it does not work)', () => {
  test("the root is writable except the harness's own folder; the rest of the machine is invisible", async () => {
    const root = await folderWith({ '.thinharness/runs/a.jsonl': 'log', 'a.txt': 'a' })
    const outside = await folderWith({ 'secret.txt': 'secret' })
    const tool = bash({ root, sandbox: 'required' })
    const command = [
      'cat a.txt; echo made > made.txt && cat made.txt',
      'echo x >> .thinharness/runs/a.jsonl || echo own folder refused',
      `cat ${outside}/secret.txt || echo outside refused`,
      `echo x > /usr/x || echo system refused`,
      'ls -A /tmp ~ | tr "\\n" " "; ls /home /root /var 2>/dev/null; ls /proc | grep -c "^[0-9]"',
    ].join('\n')
    const { content, metadata } = await call(tool, { command })
    expect(metadata).toMatchObject({ sandbox: 'bubblewrap', exit_code: 0 })
    for (const part of ['amade\n', 'own folder refused', 'outside refused', 'system refused'])
      expect(content).toContain(part)
    expect(content).not.toContain('secret\n')
    expect(await readFile(join(root, 'made.txt'), 'utf8')).toBe('made\n')
    expect(await readFile(join(root, '.thinharness/runs/a.jsonl'), 'utf8')).toBe('log')
  })

  test('named paths can be read, or written', async () => {
    const [root, shared, output] = [await folderWith(), await folderWith({ 'a.txt': 'shared' }), await folderWith()]
    const tool = bash({ root, sandbox: 'required', readPaths: [shared], writePaths: [output] })
    const command = `cat ${shared}/a.txt; echo x > ${shared}/b.txt || echo refused; echo y > ${output}/y.txt`
    const { content } = await call(tool, { command })
    expect(content).toContain('stdout:\nsharedrefused\n')
    expect(await readFile(join(output, 'y.txt'), 'utf8')).toBe('y\n')
  })

  test('the network is off unless it is allowed', async () => {
    const root = await folderWith()
    const server = createServer((socket) => socket.end('hello\n'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const command = `exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3 || echo no network`
    const closed = await call(bash({ root, sandbox: 'required' }), { command })
    const open = await call(bash({ root, sandbox: 'required', network: true }), { command })
    expect([closed.content.includes('no network'), open.content]).toEqual([true, 'stdout:\nhello\n'])
  })

  test('time limits, aborts and children hold in it too', async () => {
    const root = await folderWith()
    const tool = bash({ root, sandbox: 'required', graceMs: 300 })
    const command = "trap 'echo bye; exit 5' TERM; sleep 30 & wait"
    const soft = await call(tool, { command, timeout_ms: 300 })
    expect(soft).toMatchObject({ metadata: { timeout_kind: 'soft', success: false } })
    expect(soft.content).toContain('bye')
    const stubborn = await call(tool, {
      command: "trap '' TERM; setsid sh -c 'sleep 1; touch late' & while :; do :; done",
      timeout_ms: 300,
    })
    expect(stubborn.metadata).toMatchObject({ timeout_kind: 'soft' })
    const abort = new AbortController()
    const aborted = await call(
      tool,
      { command: 'echo a; sleep 30' },
      { signal: abort.signal, progress: () => abort.abort() },
    )
    expect(aborted.metadata).toMatchObject({ error_type: 'Cancelled', stdout: 'a\n' })
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    expect((await call(bash({ root }), { command: 'ls' })).content).toBe('(no output)')
  })
})
