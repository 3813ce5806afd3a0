import { execFileSync, spawn } from 'node:child_process'
import { constants, renameSync, symlinkSync } from 'node:fs'
import { readdir, symlink, unlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { editTool } from '#toolbox/files/edit/edit.js'
import { PathValidationError } from '#toolbox/workspace/file-failure.js'
import { globTool } from '#toolbox/files/glob.js'
import { listTool } from '#toolbox/files/list.js'
import { readTool } from '#toolbox/files/read.js'
import { appendToFile, replaceFile, withTarget } from '#toolbox/workspace/replace-file.js'
import { openFile, openFolder, openIn, withResolved } from '#toolbox/workspace/safe-open.js'
import { walk } from '#toolbox/workspace/walk.js'
import type { Workspace } from '#toolbox/workspace/workspace.js'
import { writeTool } from '#toolbox/files/write.js'
import { call, folderWith, textOf, workspaceIn } from '../support.js'
import { timeLimit, times } from '../../support/length.js'

const signal = new AbortController().signal
const shown = 'x.txt'

interface Scene {
  readonly root: string
  readonly outside: string
  readonly workspace: Workspace
  /** Puts a link to the folder outside in the place of the folder `a`. */
  readonly swap: () => void
  /** The path of the file, resolved while `a` was a folder; then it is none. */
  readonly resolveAndSwap: () => Promise<string>
}

async function scene(descriptors: boolean, file: string): Promise<Scene> {
  const outside = await folderWith({ 'x.txt': 'secret', 'deep/x.txt': 'secret' })
  const root = await folderWith({ 'a/x.txt': 'inside', 'a/deep/x.txt': 'inside' })
  const made = workspaceIn(root)
  const workspace = { ...made, descriptors: descriptors && made.descriptors }
  let swapped = false
  const swap = (): void => {
    if (swapped) return
    swapped = true
    renameSync(join(root, 'a'), join(root, 'b'))
    symlinkSync(outside, join(root, 'a'))
  }
  const resolveAndSwap = async (): Promise<string> => {
    const path = swapped ? join(root, file) : await workspace.rootPolicy.resolve(file)
    swap()
    return path
  }
  return { root, outside, workspace, swap, resolveAndSwap }
}

async function expectUntouched(outside: string): Promise<void> {
  expect((await readdir(outside, { recursive: true })).sort()).toEqual(['deep', 'deep/x.txt', 'x.txt'])
  expect([await textOf(outside, 'x.txt'), await textOf(outside, 'deep/x.txt')]).toEqual(['secret', 'secret'])
}

describe.each([
  ['the last one, with descriptors', true, 'a/x.txt'],
  ['one further up, with descriptors', true, 'a/deep/x.txt'],
  ['the last one, by comparing paths', false, 'a/x.txt'],
  ['one further up, by comparing paths', false, 'a/deep/x.txt'],
])('a folder that becomes a link between check and use, %s', (_name, descriptors, file) => {
  test('does not lead reading outside', async () => {
    const { workspace, resolveAndSwap } = await scene(descriptors, file)
    const opened = withResolved(resolveAndSwap, (path) => openFile(workspace, path, shown))
    await expect(opened).rejects.toThrow(PathValidationError)
  })

  test.each<[string, (workspace: Workspace, path: string) => Promise<unknown>]>([
    ['opening a folder', (workspace, path) => openFolder(workspace, path.replace('/x.txt', ''))],
    ['making a folder', (workspace, path) => openFolder(workspace, path.replace('/x.txt', '/new/er'), true)],
    [
      'replacing a file',
      (workspace, path) =>
        withTarget(workspace, { path, shown, signal, create: true }, (target) =>
          replaceFile(target, undefined, { write: (file) => file.writeFile('new') }),
        ),
    ],
    [
      'appending to a file',
      (workspace, path) =>
        withTarget(workspace, { path, shown, signal, create: true }, (target) =>
          appendToFile(target, Buffer.from('new')),
        ),
    ],
  ])('does not lead %s outside', async (_what, use) => {
    const { outside, workspace, resolveAndSwap } = await scene(descriptors, file)
    await expect(withResolved(resolveAndSwap, (path) => use(workspace, path))).rejects.toThrow(PathValidationError)
    await expectUntouched(outside)
  })

  test('does not lead work outside that has already started', async () => {
    const { outside, root, workspace, swap } = await scene(descriptors, file)
    const path = await workspace.rootPolicy.resolve(file)
    const replacing = withTarget(workspace, { path, shown, signal }, (target) =>
      replaceFile(target, undefined, {
        write: async (file) => {
          await file.writeFile('new')
          swap()
        },
      }),
    )
    if (workspace.descriptors) await replacing
    else await expect(replacing).rejects.toThrow(PathValidationError)
    expect(await textOf(root, file.replace('a/', 'b/'))).toBe(workspace.descriptors ? 'new' : 'inside')
    await expectUntouched(outside)
  })

  test('does not lead a walk outside', async () => {
    const { root, workspace, swap } = await scene(descriptors, file)
    const paths: string[] = []
    for await (const { path } of walk(workspace, { start: root, signal })) {
      paths.push(path.slice(root.length))
      if (path === dirname(join(root, file))) swap()
    }
    expect(paths.filter((path) => path.startsWith(`/${dirname(file)}/`))).toEqual([])
  })

  test('is rejected if it is a link from the start', async () => {
    const { outside, root, workspace } = await scene(descriptors, file)
    await symlink(join(outside, 'x.txt'), join(root, 'link'))
    const opened = withResolved(
      () => Promise.resolve(join(root, 'link')),
      (path) => openFile(workspace, path, shown),
    )
    await expect(opened).rejects.toThrow(PathValidationError)
  })
})

test('no name in a folder is opened through a link', async () => {
  const outside = await folderWith({ 'x.txt': 'secret' })
  const root = await folderWith()
  await symlink(join(outside, 'x.txt'), join(root, 'link'))
  const folder = await openFolder(workspaceIn(root), root)
  for (const flags of [constants.O_RDONLY, constants.O_RDWR | constants.O_APPEND | constants.O_CREAT]) {
    await expect(openIn(folder, 'link', { flags })).rejects.toThrow(PathValidationError)
  }
  await folder.close()
})

/** Swaps a folder for a link to another one and back, as fast as it can, until it is killed; says so at its start. */
const SWAPPER = `
const { renameSync, symlinkSync, unlinkSync } = require('node:fs')
const [folder, outside] = process.argv.slice(1)
process.stdout.write('ready')
for (;;) {
  renameSync(folder, folder + '.real')
  symlinkSync(outside, folder)
  unlinkSync(folder)
  renameSync(folder + '.real', folder)
}`

test.skipIf(process.platform !== 'linux')(
  'nothing outside is read or changed while another process swaps folders for links',
  { timeout: timeLimit(300_000) },
  async () => {
    const outside = await folderWith({ 'x.txt': 'secret', 'deep/x.txt': 'secret' })
    const root = await folderWith({ 'a/x.txt': 'inside', 'a/deep/x.txt': 'inside' })
    const swapper = spawn(process.execPath, ['-e', SWAPPER, join(root, 'a'), outside])
    onTestFinished(() => {
      swapper.kill('SIGKILL')
    })
    await new Promise((resolve) => swapper.stdout.once('data', resolve))

    const [read, write, edit] = [readTool({ root }), writeTool({ root }), editTool({ root })]
    const [list, glob] = [listTool({ root }), globTool({ root })]
    const results: Record<string, { ok: number; failed: number }> = {}
    const attempt = async (name: string, calling: ReturnType<typeof call>): Promise<void> => {
      const result = await calling
      const counts = (results[name] ??= { ok: 0, failed: 0 })
      if (result.ok) counts.ok++
      else counts.failed++
      expect(JSON.stringify(result)).not.toMatch(/secret|\/proc/)
    }
    // Both must happen, or nothing was tried: a slow machine needs more rounds.
    const triedBoth = (): boolean => {
      const all = Object.values(results)
      return all.reduce((sum, { ok }) => sum + ok, 0) > 50 && all.reduce((sum, { failed }) => sum + failed, 0) > 50
    }
    for (let round = 0; round < times(40, 600) || (!triedBoth() && round < 600); round++) {
      await attempt('read', call(read, { path: 'a/x.txt' }))
      await attempt('read deep', call(read, { path: 'a/deep/x.txt' }))
      await attempt('write', call(write, { path: 'a/x.txt', content: `inside ${round}` }))
      await attempt('write new', call(write, { path: `a/deep/${round}.txt`, content: 'inside' }))
      await attempt('make', call(write, { path: `a/new/${round}/x.txt`, content: 'inside' }))
      await attempt('append', call(write, { path: 'a/x.txt', content: '+', append: true }))
      const edits = [{ path: 'a/deep/x.txt', old_string: 'inside', new_string: 'inside' + '!'.repeat(round % 3) + '.' }]
      await attempt('edit', call(edit, { edits }))
      await attempt('list', call(list, { path: 'a' }))
      await attempt('glob', call(glob, { pattern: '**/secret*' }))
    }
    swapper.kill('SIGKILL')
    await expectUntouched(outside)
    expect(triedBoth(), JSON.stringify(results)).toBe(true)
  },
)

describe.skipIf(process.platform === 'win32')('a path that is not a regular file neither hangs nor is touched', () => {
  const tools: [string, (root: string, path: string) => ReturnType<typeof call>][] = [
    ['read', (root, path) => call(readTool({ root }), { path })],
    ['write', (root, path) => call(writeTool({ root }), { path, content: 'x' })],
    ['append', (root, path) => call(writeTool({ root }), { path, content: 'x', append: true })],
    ['edit', (root, path) => call(editTool({ root }), { edits: [{ path, old_string: 'a', new_string: 'b' }] })],
  ]

  test.each(tools)('%s of a pipe', async (_name, use) => {
    const root = await folderWith()
    execFileSync('mkfifo', [join(root, 'pipe')])
    expect(await use(root, 'pipe')).toMatchObject({ ok: false, metadata: { error_type: 'PathTypeError' } })
    expect(await readdir(root)).toEqual(['pipe'])
  })

  test.each(tools)('%s of a socket', async (_name, use) => {
    const root = await folderWith()
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(join(root, 'socket'), resolve))
    onTestFinished(async () => {
      await new Promise((resolve) => server.close(resolve))
    })
    expect(await use(root, 'socket')).toMatchObject({ ok: false, metadata: { error_type: 'PathTypeError' } })
  })

  test.each(tools)('%s of a device, through a link', async (_name, use) => {
    const root = await folderWith()
    await symlink('/dev/zero', join(root, 'zero'))
    expect(await use(root, 'zero')).toMatchObject({ ok: false, metadata: { error_type: 'PathValidationError' } })
    await unlink(join(root, 'zero'))
  })

  test('opening a pipe does not block', async () => {
    const root = await folderWith()
    execFileSync('mkfifo', [join(root, 'pipe')])
    const folder = await openFolder(workspaceIn(root), root)
    const file = await openIn(folder, 'pipe', { flags: constants.O_RDONLY })
    expect((await file.stat()).isFIFO()).toBe(true)
    await file.close()
    await folder.close()
  })

  test('a pipe that replaces a file between check and use is not read', async () => {
    const root = await folderWith({ 'x.txt': 'inside' })
    const workspace = workspaceIn(root)
    const path = await workspace.rootPolicy.resolve('x.txt')
    await withTarget(workspace, { path, shown, signal }, async (target) => {
      await unlink(path)
      execFileSync('mkfifo', [path])
      await expect(appendToFile(target, Buffer.from('x'))).rejects.toThrow('path is not a regular file: x.txt')
    })
  })
})

test('FT-18 odd paths fail clearly or stay inside the root', async () => {
  const outside = await folderWith()
  const root = await folderWith()
  const write = writeTool({ root })
  const paths = [
    'C:\\Windows\\x',
    '\\\\server\\share\\x',
    '..\\..\\x',
    `${outside}/x`,
    `/${'../'.repeat(50)}${outside.slice(1)}/x`,
    `./${'../'.repeat(50)}${outside.slice(1)}/x`,
    `${root}/../x`,
    '~root/x',
    'a\0.txt',
    '\u202Etxt.exe',
    '. . /x',
    '...',
    ' ',
    '-rf',
    '$(touch x)',
    '`touch x`',
    'a\u0000/../../x',
    '\ud800',
    'x'.repeat(5_000),
    '%2e%2e/x',
    'file:///etc/x',
  ]
  for (const path of paths) {
    const { ok, content, metadata } = await call(write, { path, content: '' })
    expect(content.length).toBeLessThan(500)
    if (ok) expect(metadata['path']).toMatch(new RegExp(`^${root}/`))
  }
  expect(await readdir(outside)).toEqual([])
})
