import { open, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readLineRange, splitLines } from '#toolbox/workspace/lines.js'
import { readTool } from '#toolbox/files/read.js'
import { call, folderWith } from '../support.js'
import { rounds } from '../../support/length.js'

const TEN = Array.from({ length: 10 }, (_, index) => `line ${index + 1}`)

describe('read', () => {
  test('FT-16 without a limit the text of the whole file is returned as it is, without line numbers and without a hint', async () => {
    const root = await folderWith({ 'a.txt': 'one\ntwo\n' })
    expect(await call(readTool({ root }), { path: 'a.txt' })).toEqual({
      ok: true,
      content: 'one\ntwo',
      metadata: { path: join(root, 'a.txt'), total_lines: 2, returned_lines: 2, size_bytes: 8 },
    })
  })

  test('lines have their numbers if the model asks for them', async () => {
    const root = await folderWith({ 'a.txt': TEN.join('\n') })
    const { content } = await call(readTool({ root }), { path: 'a.txt', offset: 9, line_numbers: true })
    expect(content).toBe('[read 2 of 10 lines from a.txt]\n9\tline 9\n10\tline 10')
  })

  test.each<[string, Record<string, number>, string, number]>([
    [
      'a range',
      { offset: 3, limit: 2 },
      '[read 2 of 10 lines from a.txt; more lines are available from offset=5]\nline 3\nline 4',
      2,
    ],
    ['a range to the end', { offset: 9, limit: 2 }, '[read 2 of 10 lines from a.txt]\nline 9\nline 10', 2],
    ['from a line on', { offset: 10 }, '[read 1 of 10 lines from a.txt]\nline 10', 1],
    ['an offset past the end', { offset: 11 }, '[read 0 of 10 lines from a.txt]', 0],
    ['a limit past the end', { offset: 10, limit: 99 }, '[read 1 of 10 lines from a.txt]\nline 10', 1],
  ])('FT-03 the tool reads whole files and ranges: %s', async (_name, range, content, returned) => {
    const root = await folderWith({ 'a.txt': TEN.join('\n') })
    const result = await call(readTool({ root }), { path: 'a.txt', ...range })
    expect(result).toMatchObject({ ok: true, content, metadata: { total_lines: 10, returned_lines: returned } })
  })

  test.each<[string, string | Uint8Array, string]>([
    ['an empty file', '', '[read 0 of 0 lines from a.txt]'],
    ['no line ending at the end', 'a', 'a'],
    ['empty lines', '\n\n', '\n'],
    ['CRLF, and a lone CR, which ends no line', 'a\r\nb\rc', 'a\nb\rc'],
    ['other separators, which end no line', 'a\fb\u0085c\u2028d\u2029e\vf', 'a\fb\u0085c\u2028d\u2029e\vf'],
    ['a byte order mark', '\uFEFFa', 'a'],
    ['invalid bytes', Uint8Array.of(0x61, 0xff, 0x62, 0x0a), 'a\uFFFDb'],
    ['NUL bytes', 'a\0b', 'a\0b'],
  ])('the tool shows %s', async (_name, content, expected) => {
    const root = await folderWith({ 'a.txt': content })
    expect(await call(readTool({ root }), { path: 'a.txt' })).toMatchObject({ ok: true, content: expected })
  })

  test('FT-17 a file over the byte limit needs a `limit`, and then only its range is streamed', async () => {
    const root = await folderWith({ 'a.txt': TEN.join('\n') })
    const read = readTool({ root, maxReadBytes: 20 })
    expect(await call(read, { path: 'a.txt' })).toEqual({
      ok: false,
      content: 'a.txt has 70 bytes, more than the 20 that are read at once: set `offset` and `limit`.',
      metadata: { error_type: 'FileTooLarge', size_bytes: 70, max_read_bytes: 20 },
    })
    expect(await call(read, { path: 'a.txt', offset: 4, limit: 2 })).toEqual({
      ok: true,
      content:
        '[read 2 line(s) from large file a.txt starting at line 4; more lines may be available from offset=6]\nline 4\nline 5',
      metadata: { path: join(root, 'a.txt'), total_lines: null, returned_lines: 2, size_bytes: 70 },
    })
    expect(await call(read, { path: 'a.txt', offset: 10, limit: 2 })).toMatchObject({
      content: '[read 1 line(s) from large file a.txt starting at line 10]\nline 10',
    })
    expect(await call(read, { path: 'a.txt', offset: 2, limit: 9 })).toMatchObject({
      content:
        '[read 2 line(s) from large file a.txt starting at line 2; the range has more than 20 bytes, continue from offset=4]\nline 2\nline 3',
    })
  })

  test('FT-17 a file of 2 GB is rejected without a `limit`, and streamed with one in little memory', async () => {
    const root = await folderWith({ 'a.txt': 'first\nsecond\n' })
    const file = await open(join(root, 'a.txt'), 'r+')
    await file.truncate(2 ** 31)
    await file.close()
    const read = readTool({ root })
    expect(await call(read, { path: 'a.txt' })).toMatchObject({ ok: false, metadata: { size_bytes: 2 ** 31 } })
    expect(await call(read, { path: 'a.txt', limit: 2 })).toMatchObject({
      ok: true,
      content:
        '[read 2 line(s) from large file a.txt starting at line 1; more lines may be available from offset=3]\nfirst\nsecond',
    })
    const before = process.memoryUsage().rss
    expect(await call(read, { path: 'a.txt', offset: 3, limit: 1, max_chars: 100 })).toMatchObject({
      ok: true,
      metadata: { returned_lines: 1, truncated: true },
    })
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000)
  })

  test.each<[string, string, string]>([
    ['missing.txt', 'NotFound', 'file not found: missing.txt'],
    ['docs', 'PathTypeError', 'path is a directory: docs'],
    ['.', 'PathTypeError', 'path is a directory: .'],
    ['docs/a.txt/x', 'NotFound', 'file not found: docs/a.txt/x'],
    ['../x', 'PathValidationError', 'path escapes root: ../x'],
    ['a\0b', 'PathValidationError', 'path contains a NUL character: a\\u0000b'],
    ['dangling', 'NotFound', 'file not found: dangling'],
  ])(
    'FT-18 a path that escapes or cannot be read fails with its error type: %j, %s',
    async (path, errorType, content) => {
      const root = await folderWith({ 'docs/a.txt': '' })
      await symlink('nowhere', join(root, 'dangling'))
      const result = await call(readTool({ root }), { path })
      expect(result).toEqual({ ok: false, content, metadata: { error_type: errorType } })
    },
  )

  test('FT-18 an absolute path is read inside the root and rejected outside', async () => {
    const outside = await folderWith({ 'a.txt': 'secret' })
    const root = await folderWith({ 'a.txt': 'a' })
    const read = readTool({ root })
    expect(await call(read, { path: join(root, 'a.txt') })).toMatchObject({ ok: true })
    expect(await call(read, { path: join(outside, 'a.txt') })).toEqual({
      ok: false,
      content: `path escapes root: ${join(outside, 'a.txt')}`,
      metadata: { error_type: 'PathValidationError' },
    })
  })

  test('FT-19 only files within the read paths can be read', async () => {
    const root = await folderWith({ 'docs/a.txt': 'a', 'b.txt': 'b' })
    const read = readTool({ root, readPaths: ['docs'] })
    expect(await call(read, { path: 'docs/a.txt' })).toMatchObject({ ok: true })
    expect(await call(read, { path: 'b.txt' })).toEqual({
      ok: false,
      content: 'path is not in the read paths: b.txt',
      metadata: { error_type: 'PathValidationError' },
    })
  })

  test('an abort ends a long scan', async () => {
    const root = await folderWith({ 'a.txt': '' })
    const file = await open(join(root, 'a.txt'), 'r+')
    await file.truncate(2 ** 40)
    await file.close()
    const abort = new AbortController()
    const reading = call(readTool({ root }), { path: 'a.txt', offset: 2, limit: 1 }, { signal: abort.signal })
    setImmediate(() => {
      abort.abort()
    })
    expect(await reading).toMatchObject({ ok: false, metadata: { error_type: 'AbortError' } })
  })

  test('a tool without a root uses the root of the call', async () => {
    const root = await folderWith({ 'a.txt': 'a' })
    expect(await call(readTool(), { path: 'a.txt' }, { root })).toMatchObject({ ok: true })
  })
})

test('a range that is read in pieces has the lines of the whole file', async () => {
  const root = await folderWith({ 'a.txt': '' })
  const texts = fc
    .array(fc.constantFrom('\n', '\r', '\r\n', 'a', 'bc', ''), { maxLength: 30 })
    .map((parts) => parts.join(''))
  await fc.assert(
    fc.asyncProperty(texts, fc.nat(40), fc.nat(10), fc.nat(40), async (text, first, limit, padding) => {
      // Line endings of the text come to stand on both sides of a border between two pieces.
      const whole = `${'x'.repeat(262_144 - padding)}${text}`
      const file = await open(join(root, 'a.txt'), 'w+')
      try {
        await file.writeFile(whole)
        const offset = first + 1
        const range = { offset, limit: limit + 1, maxBytes: 1_000_000, signal: new AbortController().signal }
        const { bytes } = await readLineRange(file, range)
        expect(splitLines(bytes.toString())).toEqual(splitLines(whole).slice(first, first + limit + 1))
      } finally {
        await file.close()
      }
    }),
    { ...rounds(100), examples: [['\r\n\n', 0, 1, 1]] },
  )
})
