import { describe, expect, test } from 'vitest'
import { readTool } from '#toolbox/files/read.js'
import { docxToMarkdown } from '#toolbox/workspace/docx.js'
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
    ['cut off', docxOf(paragraph('x')).subarray(0, 300), 'it is damaged (it is cut off, or no archive)'],
    [
      'without a main part',
      zipOf({ '[Content_Types].xml': { content: CONTENT_TYPES } }),
      'Could not find main document',
    ],
    ['of invalid XML', withDocument({ content: '<w:document' }), 'unclosed xml'],
    ['encrypted as an archive', withDocument({ content: 'x', encrypted: true }), 'it is encrypted'],
    [
      'packed in an unknown way',
      withDocument({ content: 'x', method: 12 }),
      '`word/document.xml` is packed by a method that is not supported (12)',
    ],
    [
      'with broken content',
      withDocument({ content: Buffer.from('x'), method: 99 }, 8),
      '`word/document.xml` cannot be unpacked',
    ],
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
  test('is refused by the sizes in its directory, before anything is unpacked', async () => {
    const bytes = withDocument({ content: 'x', declaredSize: 4_000_000_000 })
    await expect(converted(bytes)).rejects.toMatchObject({
      errorType: 'FileTooLarge',
      message: expect.stringMatching(
        /^The document unpacks to 40\d{8} bytes of text, more than the 50000000 that can be read\.$/,
      ) as string,
    })
  })

  test('has no effect if its directory lies: unpacking stops at the declared size', async () => {
    const bomb = Buffer.alloc(150_000_000, ' ')
    const bytes = withDocument({ content: bomb, declaredSize: 1_000 })
    const before = process.memoryUsage().arrayBuffers
    let most = 0
    const watch = setInterval(() => (most = Math.max(most, process.memoryUsage().arrayBuffers)), 1)
    await expect(converted(bytes)).rejects.toMatchObject({
      message:
        'The document could not be read: it is damaged (`word/document.xml` cannot be unpacked to its declared size).',
    })
    clearInterval(watch)
    expect(most - before).toBeLessThan(50_000_000)
  })

  test('counts every file of the archive, also those that share their bytes', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [`word/part${index}.xml`, { content: 'x', declaredSize: 600_000 }]),
    )
    await expect(converted(zipOf(files))).rejects.toMatchObject({ errorType: 'FileTooLarge' })
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

function converted(bytes: Buffer): Promise<string> {
  return docxToMarkdown(bytes, { signal: new AbortController().signal })
}

function withDocument(document: Packed, shownMethod = document.method ?? 8): Buffer {
  const bytes = zipOf({ '_rels/.rels': { content: PACKAGE_LINKS }, 'word/document.xml': document })
  const entry = bytes.lastIndexOf('PK\u0001\u0002')
  bytes.writeUInt16LE(shownMethod, entry + 10)
  return bytes
}
