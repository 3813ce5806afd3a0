import { lstat, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { bash } from '#toolbox/bash/bash.js'
import { call, folderWith } from '../support.js'
import { onlyPath, program } from './support.js'

describe('the sandbox', () => {
  test('BA-31 without one, `required` rejects the call and runs nothing', async () => {
    const root = await folderWith()
    onlyPath(await folderWith())
    const broken = await program('bwrap', 'echo "bwrap: setting up uid map: Permission denied" >&2; exit 1')
    const results = [broken, '/nonexistent/bwrap'].map((bubblewrap) =>
      call(bash({ root, sandbox: 'required', bubblewrap }), { command: 'touch made' }),
    )
    const why = 'The command was not executed: it requires a sandbox, which is not available:'
    expect(await Promise.all(results)).toEqual([
      {
        ok: false,
        content: `${why} \`bwrap\` does not work here: bwrap: setting up uid map: Permission denied; the program \`unshare\` is not installed.`,
        metadata: { error_type: 'SandboxUnavailable' },
      },
      {
        ok: false,
        content: `${why} the program \`bwrap\` is not installed; the program \`unshare\` is not installed.`,
        metadata: { error_type: 'SandboxUnavailable' },
      },
    ])
    expect(await readdir(root)).toEqual(['.thinharness'])
  })

  test('BA-31 without one, `auto`, the default, runs the command unsandboxed and reports it', async () => {
    const root = await folderWith()
    onlyPath(await folderWith())
    const result = await call(bash({ root }), { command: 'echo hi' })
    expect(result).toMatchObject({
      content: expect.stringContaining('stdout:\nhi\n') as string,
      metadata: {
        sandbox: 'none',
        sandbox_problem: 'the program `bwrap` is not installed; the program `unshare` is not installed',
      },
    })
  })

  test('BA-31 its modes: of the tool, else of the harness', async () => {
    const root = await folderWith()
    onlyPath(await folderWith())
    const modes = [
      [bash({ root, sandbox: 'off' }), 'required'],
      [bash({ root, sandbox: 'required' }), 'off'],
      [bash({ root }), 'required'],
    ] as const
    const results = modes.map(([tool, sandbox]) => call(tool, { command: ':' }, { sandbox }))
    expect((await Promise.all(results)).map(({ ok }) => ok)).toEqual([true, false, false])
  })

  test('it is probed once a root', async () => {
    const [root, probes] = [await folderWith(), join(await folderWith(), 'probes')]
    const tool = bash({ root, sandbox: 'auto', bubblewrap: await program('bwrap', `echo >> ${probes}; exit 1`) })
    await Promise.all([1, 2, 3].map(() => call(tool, { command: ':' })))
    expect(await readFile(probes, 'utf8')).toBe('\n')
  })
})

describe('a sandbox that cannot be made', () => {
  /** A `bwrap` that works as long as `works` exists and the command is none of a model. */
  async function fragile(works: string): Promise<string> {
    return program(
      'bwrap',
      `[ -e ${works} ] || { echo 'bwrap: not today' >&2; exit 1; }
      case "$*" in *' -lc '*) echo 'bwrap: no space left' >&2; exit 1;; esac
      while [ "$1" != -- ]; do shift; done; shift; exec "$@"`,
    )
  }

  test('is no failure of the command: the result says that it was not executed', async () => {
    const [root, works] = [await folderWith(), join(await folderWith({ works: '' }), 'works')]
    const tool = bash({ root, sandbox: 'required', bubblewrap: await fragile(works) })
    expect(await call(tool, { command: 'touch made' })).toMatchObject({
      ok: false,
      content: 'The command was not executed: its sandbox could not be made: bwrap: no space left',
      metadata: { error_type: 'SandboxFailed' },
    })
    expect(await readdir(root)).toEqual(['.thinharness'])
  })

  test('with `auto`, commands run without one once it does not work any more', async () => {
    const [root, folder] = [await folderWith(), await folderWith({ works: '' })]
    onlyPath(await folderWith())
    const tool = bash({ root, bubblewrap: await fragile(join(folder, 'works')) })
    expect(await call(tool, { command: 'touch made' })).toMatchObject({ ok: false })
    await rm(join(folder, 'works'))
    expect(await call(tool, { command: 'echo hi' })).toMatchObject({
      content: expect.stringContaining('hi') as string,
      metadata: { sandbox: 'none', sandbox_problem: expect.stringContaining('not today') as string },
    })
  })
})

describe("the harness's own folder in a sandbox", () => {
  /** A `bwrap` that records its arguments, and runs the command without a sandbox. */
  async function recorder(): Promise<{ readonly program: string; readonly calls: () => Promise<string> }> {
    const file = join(await folderWith({ calls: '' }), 'calls')
    const script = `echo "$*" >> ${file}; while [ "$1" != -- ]; do shift; done; shift; exec "$@"`
    return { program: await program('bwrap', script), calls: () => readFile(file, 'utf8') }
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
    expect((await calls()).split('\n').filter((line) => line.startsWith('--'))).toEqual(
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
