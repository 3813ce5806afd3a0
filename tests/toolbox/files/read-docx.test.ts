import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readTool } from '#toolbox/files/read.js'
import { docxToMarkdown } from '#toolbox/workspace/docx.js'
import { FileFailure } from '#toolbox/workspace/file-failure.js'
import { CONTENT_TYPES, docxOf, linked, PACKAGE_LINKS, paragraph, picture, table, zipOf } from '../docx.js'
import type { Packed } from '../docx.js'
import { call, folderWith } from '../support.js'

const COMPOUND_FILE = Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(504)])

describe('read: Word documents', () => {
  test('a document becomes Markdown: headings, links, tables; of images, only the description', async () => {
    const body = [
      paragraph('Tea', 'T1'),
      paragraph('Green &amp; black.'),
      linked('More', 'rId3'),
      linked('Less', 'rId4'),
      picture('a leaf'),
      table([
        ['Sort', 'Minutes'],
        ['Sencha', '2'],
      ]),
    ]
    const image = { content: Buffer.alloc(1_000_000) }
    const root = await folderWith({ 'tea.docx': docxOf(body.join(''), { 'word/media/image1.png': image }) })
    expect(await call(readTool({ root }), { path: 'tea.docx' })).toMatchObject({
      ok: true,
      content:
        '# Tea\n\nGreen & black.\n\n[More](https://example.test/tea)\n\nLess\n\na leaf\n\n' +
        '| Sort | Minutes |\n| --- | --- |\n| Sencha | 2 |',
      metadata: { total_lines: 13, returned_lines: 13 },
    })
  })

  test('its lines are read in ranges; `pages` is for PDF files', async () => {
    const root = await folderWith({ 'a.docx': docxOf(paragraph('One.') + paragraph('Two.') + paragraph('Three.')) })
    const read = readTool({ root })
    expect((await call(read, { path: 'a.docx', offset: 3, limit: 1 })).content).toBe(
      '[read 1 of 5 lines from a.docx; more lines are available from offset=4]\nTwo.',
    )
    expect((await call(read, { path: 'a.docx', pages: '1' })).content).toContain('`pages` is for PDF files')
  })

  test('a long document is saved, and the model gets its beginning and the way to the rest', async () => {
    const body = Array.from({ length: 3_000 }, (_, index) => paragraph(`Line ${index} of the report.`)).join('')
    const root = await folderWith({ 'long.docx': docxOf(body) })
    const { content, metadata } = await call(readTool({ root }), { path: 'long.docx' })
    expect(content).toContain('Line 0 of the report.')
    expect(content.length).toBeLessThan(45_000)
    expect(metadata).toMatchObject({ total_lines: 5_999, truncated: true })
  })

  test.each([
    ['encrypted', 'letter.docx', COMPOUND_FILE],
    ['in the format of Word 97', 'letter.doc', COMPOUND_FILE],
  ])('one that is %s is a clear failure', async (_name, path, bytes) => {
    const root = await folderWith({ [path]: bytes })
    expect(await call(readTool({ root }), { path })).toMatchObject({
      ok: false,
      content: `The document ${path} has a password or the format of Word 97, which cannot be read.`,
      metadata: { error_type: 'UnsupportedContent' },
    })
  })

  test.each<[string, Buffer, string]>([
    ['cut off', docxOf(paragraph('x')).subarray(0, 300), 'invalid zip data'],
    [
      'without a main part',
      zipOf({ '[Content_Types].xml': { content: CONTENT_TYPES } }),
      'Could not find main document',
    ],
    ['of invalid XML', withDocument({ content: '<w:document' }), 'unclosed xml'],
    ['no archive', Buffer.concat([docxOf(paragraph('x')).subarray(0, 30), Buffer.alloc(99)]), ''],
    ['packed in an unknown way', withDocument({ content: 'x', method: 12 }), 'unknown compression type 12'],
    ['with broken content', withDocument({ content: Buffer.from('x'), method: 0 }, 8), 'unexpected EOF'],
  ])('one that is %s is a failure in one sentence', async (_name, bytes, message) => {
    const root = await folderWith({ 'a.docx': bytes })
    const { ok, content, metadata } = await call(readTool({ root }), { path: 'a.docx' })
    expect({ ok, type: metadata['error_type'] }).toEqual({ ok: false, type: 'ConversionFailed' })
    expect(content).toContain('The document a.docx could not be read: ')
    expect(content).toContain(message)
    expect(content.length).toBeLessThan(400)
  })
})

describe('a document that unpacks to much', () => {
  test.each([
    ['by one part', docxWith(1, 60_000_000)],
    ['by all of them together', docxWith(100, 600_000)],
    ['whose directory declares less', docxWith(1, 400_000_000, 1_000)],
  ])('is refused at the limit: %s', async (_name, bytes) => {
    await expect(converted(bytes)).rejects.toMatchObject({
      errorType: 'FileTooLarge',
      message: 'The document could not be read: it unpacks to more than the 50000000 bytes of text that can be read.',
    })
  })

  test('its media are not unpacked at all', async () => {
    const media = { content: 'x', declaredSize: 4_000_000_000 }
    expect(await converted(docxOf(paragraph('Text.') + picture(''), { 'word/media/image1.png': media }))).toBe('Text.')
  })
})

test('a conversion of a document ends by its signal', async () => {
  const abort = new AbortController()
  abort.abort(new Error('stopped'))
  await expect(docxToMarkdown(docxOf(paragraph('x')), { signal: abort.signal })).rejects.toThrow('stopped')
})

test('FT-86 whatever the bytes of a document are, it is read or refused', async () => {
  const original = docxOf(paragraph('Some words.'))
  const change = fc.record({ at: fc.nat(original.length - 1), value: fc.nat(255) })
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 12 }), fc.option(fc.nat(original.length)), async (changes, end) => {
      const bytes = Buffer.from(original.subarray(0, end ?? original.length))
      for (const { at, value } of changes) if (at < bytes.length) bytes[at] = value
      const outcome: unknown = await converted(bytes).catch((error: unknown) => error)
      if (typeof outcome !== 'string') expect(outcome).toBeInstanceOf(FileFailure)
    }),
    { numRuns: 20 },
  )
}, 60_000)

function docxWith(parts: number, bytes: number, declaredSize?: number): Buffer {
  const content = Buffer.alloc(bytes, ' ')
  const part = { content, ...(declaredSize !== undefined && { declaredSize }) }
  return zipOf(Object.fromEntries(Array.from({ length: parts }, (_, index) => [`word/part${index}.xml`, part])))
}

function converted(bytes: Buffer): Promise<string> {
  return docxToMarkdown(bytes, { signal: new AbortController().signal })
}

function withDocument(document: Packed, shownMethod = document.method ?? 8): Buffer {
  const bytes = zipOf({ '_rels/.rels': { content: PACKAGE_LINKS }, 'word/document.xml': document })
  bytes.writeUInt16LE(shownMethod, bytes.lastIndexOf('PK\u0003\u0004') + 8)
  return bytes
}
