import { mkdir, readdir, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { characterCount, firstCharacters, lastCharacters } from '#util/characters.js'
import { readTool } from '#toolbox/files/read.js'
import { spill } from '#toolbox/workspace/spill.js'
import { call, folderWith, textOf, workspaceIn } from '../support.js'

const OUTPUTS = '.thinharness/outputs'
const TEXT = Array.from({ length: 100 }, (_, index) => `row ${index + 1}`).join('\n')

async function spilledName(root: string, folder = OUTPUTS): Promise<string> {
  const names = await readdir(join(root, folder))
  expect(names).toHaveLength(1)
  return `${folder}/${names[0]!}`
}

describe('long results', () => {
  test('a result within the limit stays as it is, counted in characters', async () => {
    const root = await folderWith()
    const text = '😀'.repeat(10)
    expect(await spill(workspaceIn(root), { text, prefix: 'read', limit: 10 })).toEqual({ content: text, metadata: {} })
    expect(await readdir(root)).toEqual([])
  })

  test.each(['..', 'aim', 'nothing'])(
    'FT-77 a link to `%s` in the place of the own folder stops no tool: long results are not saved',
    async (target) => {
      const root = await folderWith({ 'a.txt': TEXT, 'aim/outputs/b.txt': 'b' })
      await symlink(target, join(root, '.thinharness'))
      const around = await readdir(join(root, '..'))

      const short = await call(readTool({ root }), { path: 'a.txt', limit: 1 })
      const long = await spill(workspaceIn(root), { text: TEXT, prefix: 'read', limit: 5 })

      expect(short.content).toContain('row 1')
      expect(long.content).toContain('The full text could not be saved: ')
      expect([await readdir(join(root, '..')), await readdir(join(root, 'aim/outputs'))]).toEqual([around, ['b.txt']])
    },
  )

  test('FT-67 a longer result is saved whole in a file; its beginning and end are shown, with instructions for reading it', async () => {
    const root = await folderWith()
    const text = `😀${'a'.repeat(50)}${'b'.repeat(50)}😀`
    const { content, metadata } = await spill(workspaceIn(root), { text, prefix: 'search', limit: 5 })
    const name = await spilledName(root)
    expect(name).toMatch(/^\.thinharness\/outputs\/search-\d{13}-[0-9a-f]{8}\.txt$/)
    expect(content).toBe(
      [
        `The output has 102 characters, more than the limit of 5. Its full text is in ${name}.`,
        `Call \`read\` with path \`${name}\` and offset=1, then continue with later offsets.`,
        '😀a',
        '...',
        'bb😀',
      ].join('\n'),
    )
    expect(metadata).toEqual({ truncated: true, saved_to: join(root, name), saved_to_display: name, chars: 102 })
    expect(await textOf(root, name)).toBe(text)
  })

  test('PT-09 results that are saved concurrently get different files', async () => {
    const root = await folderWith()
    const workspace = workspaceIn(root)
    const spills = Array.from({ length: 16 }, () => spill(workspace, { text: 'same text', prefix: 'read', limit: 3 }))
    const paths = (await Promise.all(spills)).map(({ metadata }) => metadata['saved_to'])
    expect(new Set(paths).size).toBe(16)
    expect(await readdir(join(root, OUTPUTS))).toHaveLength(16)
  })

  test('the oldest files are deleted if there are too many, and only those that are named like them', async () => {
    const root = await folderWith({ 'out/read-1-deadbeef.md': 'other', 'out/notes.txt': 'notes' })
    const workspace = workspaceIn(root, { outputDir: 'out', maxOutputFiles: 3 })
    const saved = ['read-1-deadbeef.md', 'notes.txt']
    for (let index = 0; index < 6; index++) {
      await spill(workspace, { text: `text ${index}`, prefix: 'read', limit: 1 })
      saved.push(...(await readdir(join(root, 'out'))).filter((name) => !saved.includes(name)))
      // The age of a file is the millisecond in its name.
      await new Promise((resolve) => setTimeout(resolve, 3))
    }
    const left = await readdir(join(root, 'out'))
    expect(left.sort()).toEqual([...saved.slice(0, 2), ...saved.slice(-3)].sort())
  })

  test('a text that cannot be saved is still cut, and the loss is reported', async () => {
    const root = await folderWith({ '.thinharness': 'a file where the folder should be' })
    expect(await spill(workspaceIn(root), { text: 'abcdef', prefix: 'read', limit: 2 })).toEqual({
      content:
        'The output has 6 characters, more than the limit of 2.\nThe full text could not be saved: path is not a directory: .thinharness. Narrow the call to see the rest.\na\n...\nf',
      metadata: { truncated: true, chars: 6 },
    })
  })

  test('nothing is saved outside the root', async () => {
    const outside = await folderWith()
    const root = await folderWith()
    const workspace = workspaceIn(root)
    await symlink(outside, join(root, '.thinharness'))
    const { metadata } = await spill(workspace, { text: 'abcdef', prefix: 'read', limit: 2 })
    expect([metadata, await readdir(outside)]).toEqual([{ truncated: true, chars: 6 }, []])
  })
})

describe('reading saved results', () => {
  test.each<[string, string | undefined]>([
    ['FT-68 in the default folder', undefined],
    ['FT-69 in a custom folder', 'results/long'],
  ])('%s, a saved result may be read whatever the read paths are, by a later process too', async (_name, outputDir) => {
    const root = await folderWith({ 'docs/a.txt': TEXT })
    const options = { root, readPaths: ['docs'], ...(outputDir !== undefined && { outputDir }) }
    await call(readTool({ ...options, maxReadChars: 100 }), { path: 'docs/a.txt' })
    const path = await spilledName(root, outputDir)
    const result = await call(readTool(options), { path })
    expect(result).toMatchObject({ ok: true, metadata: { total_lines: 100, returned_lines: 100 } })
    expect(result.content).toContain('\nrow 100')
  })

  test('it is not saved again: whole lines are shown, with the offset to continue from', async () => {
    const root = await folderWith({ 'docs/a.txt': TEXT })
    const read = readTool({ root, readPaths: ['docs'], maxReadChars: 400, maxReadBytes: 500 })
    await call(read, { path: 'docs/a.txt', limit: 70 })
    const path = await spilledName(root)

    const seen: string[] = []
    for (let offset: number | undefined = 1; offset !== undefined;) {
      const { ok, content } = await call(read, { path, offset })
      expect([ok, content.length <= 400]).toEqual([true, true])
      const [note, ...lines] = content.split('\n')
      seen.push(...lines)
      const next: string | undefined = /more lines are available from offset=(\d+)\]$/.exec(note!)?.[1]
      offset = next === undefined ? undefined : Number(next)
    }
    expect(seen.join('\n')).toBe(await textOf(root, path))
    expect(await readdir(join(root, OUTPUTS))).toHaveLength(1)
  })

  test('a single line that is too long is cut, and marked as cut', async () => {
    const root = await folderWith({ 'a.txt': `${'x'.repeat(2_000)}\nlast` })
    const read = readTool({ root, maxReadChars: 300 })
    await call(read, { path: 'a.txt' })
    const path = await spilledName(root)
    expect((await call(read, { path, offset: 1 })).content).toBe(
      `[read 1 line(s) from saved output ${path} starting at line 1; line 1 is cut after 100 characters; more lines are available from offset=2]\n${'x'.repeat(100)}`,
    )
    expect((await call(read, { path, offset: 2 })).content).toContain('last')
  })

  test('FT-71 other files of the folder stay unreadable', async () => {
    const root = await folderWith({ 'docs/a.txt': TEXT, [`${OUTPUTS}/notes.txt`]: 'secret' })
    const read = readTool({ root, readPaths: ['docs'], maxReadChars: 100 })
    await call(read, { path: 'docs/a.txt' })
    const own = (await readdir(join(root, OUTPUTS))).find((name) => name.startsWith('read-'))!
    await writeFile(join(root, OUTPUTS, 'read-1.txt'), 'secret')
    await mkdir(join(root, OUTPUTS, 'deep'))
    await writeFile(join(root, OUTPUTS, 'deep', own), TEXT)
    for (const name of ['notes.txt', 'read-1.txt', `deep/${own}`, '.']) {
      const path = join(OUTPUTS, name)
      expect(await call(read, { path })).toMatchObject({ ok: false, metadata: { error_type: 'PathValidationError' } })
    }
  })

  test('FT-72 a link that has the name of a saved result and leads elsewhere is rejected', async () => {
    const outside = await folderWith({ 'secret.txt': 'secret' })
    const root = await folderWith({ 'docs/a.txt': TEXT, 'private.txt': 'secret' })
    const read = readTool({ root, readPaths: ['docs'], maxReadChars: 100 })
    await call(read, { path: 'docs/a.txt' })
    const path = await spilledName(root)
    await rename(join(root, path), join(root, 'kept'))
    for (const target of [join(outside, 'secret.txt'), join(root, 'private.txt'), outside]) {
      await symlink(target, join(root, path))
      const result = await call(read, { path })
      expect(result).toMatchObject({ ok: false, metadata: { error_type: 'PathValidationError' } })
      await rename(join(root, path), join(root, 'old-link'))
    }
  })
})

test('characters are code points, and no pair is ever split', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('a', 'ä', '😀', '\ud83d', '\ude00') }), fc.nat(12), (text, count) => {
      const characters = Array.from(text)
      expect(characterCount(text)).toBe(characters.length)
      expect(firstCharacters(text, count)).toBe(characters.slice(0, count).join(''))
      expect(lastCharacters(text, count)).toBe(count === 0 ? '' : characters.slice(-count).join(''))
    }),
  )
})
