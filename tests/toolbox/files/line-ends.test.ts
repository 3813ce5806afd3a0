import { join } from 'node:path'
import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fileTools } from '#toolbox/files/file-tools.js'
import { rounds } from '../../support/length.js'
import { call, folderWith } from '../support.js'

async function toolsIn(root: string) {
  const tools = fileTools({ root, requireRead: false, ripgrep: false })
  return async (name: string, args: Parameters<typeof call>[1]) => {
    const tool = tools.find((each) => each.name === name)
    if (tool === undefined) throw new Error(name)
    return call(tool, args)
  }
}

test('what `read` shows can be edited, `search` names the line that `read` shows, whatever ends the lines', async () => {
  const lines = fc.array(
    fc.tuple(fc.constantFrom('alpha', 'b', '10%\r50%', 'needle', ''), fc.constantFrom('\n', '\r\n')),
    {
      minLength: 1,
      maxLength: 8,
    },
  )
  await fc.assert(
    fc.asyncProperty(lines, async (parts) => {
      const text = `start\n${parts.flat().join('')}needle\n`
      const root = await folderWith({ 'a.txt': text })
      const use = await toolsIn(root)
      const shown = (await use('read', { path: 'a.txt' })).content
      const found = (await use('search', { query: 'needle' })).content
      for (const [, line] of found.matchAll(/^(\d+): /gm))
        expect((await use('read', { path: 'a.txt', offset: Number(line), limit: 1 })).content).toMatch(
          /\nneedle$|^needle$/,
        )
      const edit = await use('edit', { edits: [{ path: 'a.txt', old_string: shown, new_string: `${shown}\nmore` }] })
      expect(edit.ok, edit.content).toBe(true)
      const after = await readFile(join(root, 'a.txt'), 'utf8')
      expect(after.startsWith(text.slice(0, -1))).toBe(true)
      expect(after.slice(text.length - 1)).toBe('\nmore\n')
    }),
    rounds(30),
  )
})

test('`write` over a file keeps its byte order mark and its line ends', async () => {
  const root = await folderWith({
    'dos.txt': '\uFEFFa\r\nb\r\n',
    'mixed.txt': 'a\nb\nc\r\n',
    'unix.txt': 'a\n',
    'one.txt': 'a',
  })
  const use = await toolsIn(root)
  for (const path of ['dos.txt', 'mixed.txt', 'unix.txt', 'one.txt', 'new.txt'])
    await use('write', { path, content: path === 'unix.txt' ? 'x\r\ny\r\n' : 'x\ny\n' })
  await use('write', { path: 'dos.txt', content: 'z\n', append: true })
  const texts = await Promise.all(
    ['dos.txt', 'mixed.txt', 'unix.txt', 'one.txt', 'new.txt'].map((path) => readFile(join(root, path), 'utf8')),
  )
  expect(texts).toEqual(['\uFEFFx\r\ny\r\nz\r\n', 'x\ny\n', 'x\ny\n', 'x\ny\n', 'x\ny\n'])
})
