import { writeFileSync } from 'node:fs'
import { chmod, readdir, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { editTool } from '#toolbox/files/edit/edit.js'
import { writeTool } from '#toolbox/files/write.js'
import { replaceFile, withTarget, writableStats } from '#toolbox/workspace/replace-file.js'
import { call, folderWith, textOf, workspaceIn } from '../support.js'

const signal = new AbortController().signal

async function modeOf(...path: readonly string[]): Promise<number> {
  return (await stat(join(...path))).mode & 0o7777
}

test('FT-78 the temporary file of a private file is private from the start', async () => {
  const root = await folderWith({ 'key.txt': 'old' })
  await chmod(join(root, 'key.txt'), 0o600)
  const modes: number[] = []

  await withTarget(workspaceIn(root), { path: join(root, 'key.txt'), shown: 'key.txt', signal }, async (target) =>
    replaceFile(target, await writableStats(target), {
      write: async (file) => {
        modes.push((await file.stat()).mode & 0o7777)
        await file.writeFile('new')
      },
    }),
  )

  expect([modes, await modeOf(root, 'key.txt'), await textOf(root, 'key.txt')]).toEqual([[0o600], 0o600, 'new'])
})

test('FT-79 a write removes the temporary files that killed processes left in its folder, and no others', async () => {
  const left = '.thinharness-0b9cbf0e-0d6e-4b6e-9f7a-1f3a7e6c2a10.tmp'
  const fresh = '.thinharness-1b9cbf0e-0d6e-4b6e-9f7a-1f3a7e6c2a11.tmp'
  const files = ['.thinharness-notes.tmp', fresh, left]
  const root = await folderWith(Object.fromEntries(files.map((name) => [name, 'x'])))
  const longAgo = new Date(Date.now() - 2 * 3_600_000)
  for (const name of [left, '.thinharness-notes.tmp']) await utimes(join(root, name), longAgo, longAgo)

  await call(writeTool({ root }), { path: 'a.txt', content: 'a' })

  expect((await readdir(root)).sort()).toEqual([fresh, '.thinharness-notes.tmp', 'a.txt'])
})

test('FT-80 a changed file loses its set-user-ID and set-group-ID bits', async () => {
  const root = await folderWith({ a: 'one', b: 'one', c: 'one' })
  for (const name of ['a', 'b', 'c']) await chmod(join(root, name), 0o6755)

  await call(writeTool({ root }), { path: 'a', content: 'two' })
  await call(writeTool({ root }), { path: 'b', content: 'two', append: true })
  await call(editTool({ root }), { edits: [{ path: 'c', old_string: 'one', new_string: 'two' }] })

  expect(await Promise.all(['a', 'b', 'c'].map((name) => modeOf(root, name)))).toEqual([0o755, 0o755, 0o755])
})

test('FT-81 nothing else of this process runs between the last look at a file and its replacement', async () => {
  const root = await folderWith({ 'a.txt': 'old' })
  const path = join(root, 'a.txt')

  await withTarget(workspaceIn(root), { path, shown: 'a.txt', signal }, async (target) =>
    replaceFile(target, await writableStats(target), {
      write: (file) => file.writeFile('new'),
      requireUnchanged: () => process.nextTick(() => writeFileSync(path, 'theirs')),
    }),
  )

  expect(await textOf(path)).toBe('theirs')
})
