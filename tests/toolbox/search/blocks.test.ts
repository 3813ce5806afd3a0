import { open } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { textBlocks } from '#toolbox/search/text-blocks.js'
import type { BlockOptions } from '#toolbox/search/text-blocks.js'
import { forEachConcurrently } from '#toolbox/search/builtin-engine.js'
import { folderWith } from '../support.js'
import { rounds } from '../../support/length.js'

/** The blocks of a file with this content, as text; `null` for an overlong line. */
async function blocksIn(content: Uint8Array, options: Partial<BlockOptions> = {}): Promise<(string | null)[]> {
  const root = await folderWith({ file: content })
  const handle = await open(join(root, 'file'))
  try {
    const blocks: (string | null)[] = []
    for await (const block of textBlocks(handle, { size: content.length, ...options })) {
      blocks.push(block === null ? null : block.toString())
    }
    return blocks
  } finally {
    await handle.close()
  }
}

test('blocks are whole lines that together form the file; lines that are too long are each reported once', async () => {
  const line = fc.oneof(
    { weight: 4, arbitrary: fc.string({ unit: fc.constantFrom('a', 'é', '\r', ' '), maxLength: 6 }) },
    fc.constantFrom('x'.repeat(31), 'x'.repeat(32), 'x'.repeat(33), 'x'.repeat(100)),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 12 }), fc.boolean(), async (lines, endsWithLine) => {
      const text = lines.join('\n') + (endsWithLine && lines.length > 0 ? '\n' : '')
      // A size that is too small: the file has grown since it was looked at.
      const blocks = await blocksIn(Buffer.from(text), { maxLineBytes: 32, size: 7 })
      const expected = text
        .split(/(?<=\n)/)
        .flatMap((each) => (Buffer.byteLength(each.replace('\n', '')) > 32 ? [null] : each === '' ? [] : [each]))
      const got = blocks.flatMap((block) => block?.split(/(?<=\n)/) ?? [null])
      expect(got).toEqual(expected)
    }),
    rounds(200),
  )
})

test.each<[string, Buffer, string]>([
  ['UTF-8 with a mark', Buffer.from('\ufeffa\né'), 'a\né'],
  ['UTF-16, little end first', Buffer.from('\ufeffa\n😀é', 'utf16le'), 'a\n😀é'],
  ['UTF-16, big end first', Buffer.from('\ufeffa\n😀é', 'utf16le').swap16(), 'a\n😀é'],
  ['nothing', Buffer.from(''), ''],
  ['a mark alone', Buffer.from('\ufeff'), ''],
])('a file is read as UTF-8: %s', async (_, content, text) => {
  expect((await blocksIn(content)).join('')).toBe(text)
})

test('a large file in UTF-16 keeps the characters that lie across chunks', async () => {
  const text = `${'a😀é\n'.repeat(100_000)}end`
  expect((await blocksIn(Buffer.from(`\ufeff${text}`, 'utf16le'))).join('')).toBe(text)
})

test('work on items that arrive one by one is concurrent, and stops at the first error', async () => {
  const done: number[] = []
  let most = 0
  let now = 0
  async function* items(): AsyncGenerator<number> {
    for (let item = 0; item < 20; item++) yield Promise.resolve(item)
  }
  const work = async (item: number): Promise<void> => {
    most = Math.max(most, ++now)
    await new Promise(setImmediate)
    now--
    if (item === 11) throw new Error('broken')
    done.push(item)
  }
  await expect(forEachConcurrently(items(), 3, work)).rejects.toThrow('broken')
  expect({ most, isStopped: done.length < 15 }).toEqual({ most: 3, isStopped: true })
})
