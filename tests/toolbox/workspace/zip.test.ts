import fc from 'fast-check'
import { expect, test } from 'vitest'
import { storedZip, unpack, zipEntries, ZipProblem } from '#toolbox/workspace/zip.js'
import { docxOf, paragraph } from '../docx.js'
import { rounds } from '../../support/length.js'

const BYTES = docxOf(paragraph('Some words.'))

test('FT-86 an archive that is read and written again has the same files', async () => {
  const files = await contentsOf(BYTES)
  expect([...files.keys()]).toContain('word/document.xml')
  expect(await contentsOf(storedZip(files))).toEqual(files)
})

test('FT-86 whatever the bytes of an archive are, it is read or refused, and nothing beyond the declared sizes is unpacked', async () => {
  const change = fc.record({ at: fc.nat(BYTES.length - 1), value: fc.nat(255) })
  const cut = fc.nat(BYTES.length)
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 12 }), fc.option(cut), async (changes, end) => {
      const bytes = Buffer.from(BYTES.subarray(0, end ?? BYTES.length))
      for (const { at, value } of changes) if (at < bytes.length) bytes[at] = value
      try {
        for (const entry of zipEntries(bytes)) {
          if (entry.size > 1_000_000) continue
          expect((await unpack(bytes, entry)).length).toBe(entry.size)
        }
      } catch (error) {
        expect(error).toBeInstanceOf(ZipProblem)
      }
    }),
    rounds(500),
  )
})

async function contentsOf(bytes: Buffer): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>()
  for (const entry of zipEntries(bytes)) files.set(entry.name, await unpack(bytes, entry))
  return files
}
