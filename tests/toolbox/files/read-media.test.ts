import { describe, expect, test } from 'vitest'
import { readTool } from '#toolbox/files/read.js'
import { call, folderWith } from '../support.js'
import { Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { pdfOf } from '../pdf.js'

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const GIF = Buffer.from('R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=', 'base64')

/** An image file of a size, as far as its header goes. */
function pngOf(width: number, height: number): Buffer {
  const bytes = Buffer.from(PNG)
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes
}

function jpegOf(width: number, height: number): Buffer {
  const frame = Buffer.from([0xff, 0xc0, 0, 11, 8, 0, 0, 0, 0, 1, 1, 0x11, 0])
  frame.writeUInt16BE(height, 5)
  frame.writeUInt16BE(width, 7)
  const segment = Buffer.from([0xff, 0xe0, 0, 6, 1, 2, 3, 4])
  return Buffer.concat([Buffer.from([0xff, 0xd8]), segment, frame, Buffer.from([0xff, 0xd9])])
}

function webpOf(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(30)
  bytes.write('RIFF', 0, 'latin1')
  bytes.write('WEBPVP8X', 8, 'latin1')
  bytes.writeUIntLE(width - 1, 24, 3)
  bytes.writeUIntLE(height - 1, 27, 3)
  return bytes
}

describe('images', () => {
  test.each<[string, Buffer, string, string]>([
    ['PNG', PNG, 'image/png', '1 x 1'],
    ['GIF', GIF, 'image/gif', '1 x 1'],
    ['JPEG', jpegOf(640, 480), 'image/jpeg', '640 x 480'],
    ['WebP', webpOf(300, 200), 'image/webp', '300 x 200'],
  ])('a file is recognized by its content, not its name: %s', async (_name, bytes, mediaType, size) => {
    const root = await folderWith({ 'photo.bin': bytes })
    expect(await call(readTool({ root }), { path: 'photo.bin' })).toMatchObject({
      ok: true,
      content: `photo.bin: ${mediaType}, ${size} pixels, ${bytes.length} bytes`,
      metadata: { media_type: mediaType, size_bytes: bytes.length },
    })
  })

  test('the model gets the image itself', async () => {
    const root = await folderWith({ 'a.png': PNG })
    const model = new ScriptedModel().calls('read', { path: 'a.png' }).says('One pixel.')
    await using harness = new Harness({ model, root })
    const { transcript } = await harness.run('What is on it?')
    const image = { type: 'image', data: PNG.toString('base64'), mediaType: 'image/png' }
    expect(transcript.find(({ role }) => role === 'tool')).toMatchObject({ content: [{ type: 'text' }, image] })
  })

  test.each<[string, Buffer, string]>([
    ['too many pixels', pngOf(9_000, 10), 'a.png has 9000 x 10 pixels, more than the 8000 of a side'],
    ['too many bytes', Buffer.concat([PNG, Buffer.alloc(3_750_000)]), 'more than the 3750000 that can be read'],
  ])('one that models do not accept is a failure: %s', async (_name, bytes, message) => {
    const root = await folderWith({ 'a.png': bytes })
    expect(await call(readTool({ root }), { path: 'a.png' })).toMatchObject({
      ok: false,
      content: expect.stringContaining(message) as string,
      metadata: { error_type: 'FileTooLarge' },
    })
  })

  test('a header that is cut off has no size', async () => {
    for (const bytes of [
      PNG.subarray(0, 9),
      GIF.subarray(0, 7),
      jpegOf(1, 1).subarray(0, 5),
      webpOf(1, 1).subarray(0, 14),
    ]) {
      const root = await folderWith({ 'a.png': bytes })
      expect((await call(readTool({ root }), { path: 'a.png' })).content).toMatch(/^a\.png: image\/\w+, \d+ bytes$/)
    }
  })
})

describe('PDF', () => {
  test('its text is read by pages', async () => {
    const root = await folderWith({ 'a.pdf': pdfOf(['First.', 'Second.', 'Third.']) })
    const read = readTool({ root })
    expect((await call(read, { path: 'a.pdf' })).content).toBe(
      'read pages 1 to 3 of 3 from a.pdf\n--- page 1 ---\nFirst.\n--- page 2 ---\nSecond.\n--- page 3 ---\nThird.',
    )
    expect((await call(read, { path: 'a.pdf', pages: '2' })).content).toBe(
      'read pages 2 to 2 of 3 from a.pdf; set pages=3-3 for more\n--- page 2 ---\nSecond.',
    )
    expect((await call(read, { path: 'a.pdf', pages: '2-9' })).content).toContain('pages 2 to 3 of 3')
    expect(await call(read, { path: 'a.pdf', pages: '4' })).toMatchObject({
      ok: false,
      content: '`pages` is `4`, but a.pdf has the pages 1 to 3',
    })
  })

  test('one without text, a broken one and `pages` of another file are explained', async () => {
    const root = await folderWith({ 'a.pdf': pdfOf(['']), 'b.pdf': '%PDF-1.7 broken', 'c.txt': 'x' })
    const read = readTool({ root })
    expect((await call(read, { path: 'a.pdf' })).content).toContain('they may be scanned images')
    expect((await call(read, { path: 'b.pdf' })).content).toMatch(/^The PDF b\.pdf could not be read: /)
    expect((await call(read, { path: 'c.txt', pages: '1' })).content).toContain('`pages` is for PDF files')
  })
})
