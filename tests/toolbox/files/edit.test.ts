import { writeFileSync } from 'node:fs'
import { chmod, mkdir, readdir, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { editTool } from '#toolbox/files/edit/edit.js'
import { call, folderWith, textOf } from '../support.js'

const edit = (path: string, from: string, to: string, more: object = {}): Record<string, string> => ({
  path,
  old_string: from,
  new_string: to,
  ...more,
})

describe('edit', () => {
  test('FT-04 one call edits two files that contain the same text', async () => {
    const root = await folderWith({ 'a.txt': 'same\n', 'b.txt': 'same\n' })
    const edits = [edit('a.txt', 'same', 'first'), edit('b.txt', 'same', 'second')]
    expect(await call(editTool({ root }), { edits })).toEqual({
      ok: true,
      content: '1. ok a.txt: replaced 1 occurrence(s)\n2. ok b.txt: replaced 1 occurrence(s)',
      metadata: {
        applied: 2,
        failed: 0,
        results: [
          { index: 1, ok: true, path: 'a.txt', replacements: 1, lines: [[1, 1]], diff: '@@ line 1 @@\n-same\n+first' },
          { index: 2, ok: true, path: 'b.txt', replacements: 1, lines: [[1, 1]], diff: '@@ line 1 @@\n-same\n+second' },
        ],
      },
    })
    expect([await textOf(root, 'a.txt'), await textOf(root, 'b.txt')]).toEqual(['first\n', 'second\n'])
    expect(await readdir(root)).toEqual(['a.txt', 'b.txt'])
  })

  test('FT-05 edits of one file apply in order, each to the result of the previous one', async () => {
    const root = await folderWith({ 'a.txt': 'one' })
    const edits = [edit('a.txt', 'one', 'two'), edit('./a.txt', 'two', 'three')]
    expect(await call(editTool({ root }), { edits })).toMatchObject({ ok: true, metadata: { applied: 2 } })
    expect(await textOf(root, 'a.txt')).toBe('three')
  })

  test('FT-06 FT-13 a failing edit, such as one with an empty `old_string`, does not stop the others', async () => {
    const root = await folderWith({ 'a.txt': 'one\ntwo' })
    const edits = [
      edit('a.txt', 'one', '1'),
      edit('a.txt', 'one', '2'),
      edit('a.txt', '', 'x'),
      edit('a.txt', 'two', '2'),
    ]
    expect(await call(editTool({ root }), { edits })).toMatchObject({
      ok: false,
      content: [
        '1. ok a.txt: replaced 1 occurrence(s)',
        '2. FAILED a.txt: old_string not found in a.txt. Read the file again and copy the text exactly.',
        '3. FAILED a.txt: old_string is empty: use `write` to create a file',
        '4. ok a.txt: replaced 1 occurrence(s)',
      ].join('\n'),
      metadata: {
        error_type: 'InvalidInput',
        retry: true,
        applied: 2,
        failed: 2,
        results: [
          { ok: true },
          { index: 2, ok: false, path: 'a.txt', replacements: 0, error_type: 'InvalidInput' },
          { index: 3, ok: false, error_type: 'InvalidInput' },
          { ok: true },
        ],
      },
    })
    expect(await textOf(root, 'a.txt')).toBe('1\n2')
  })

  test('FT-07 if all edits fail, nothing is applied and each failure is reported', async () => {
    const root = await folderWith({ 'a.txt': 'b b\nb' })
    const edits = [edit('a.txt', 'x', 'y'), edit('a.txt', 'b', 'y'), edit('a.txt', 'b', 'b')]
    expect(await call(editTool({ root }), { edits })).toMatchObject({
      ok: false,
      content: [
        '1. FAILED a.txt: old_string not found in a.txt. Read the file again and copy the text exactly.',
        '2. FAILED a.txt: old_string matches 3 times, in lines 1, 1, 2: include more of the surrounding text, or set replace_all',
        '3. FAILED a.txt: old_string and new_string are equal: there is nothing to change',
      ].join('\n'),
      metadata: { applied: 0, failed: 3, results: [{}, { matches: 3 }, {}] },
    })
    expect(await textOf(root, 'a.txt')).toBe('b b\nb')
  })

  test('FT-08 an edit that became ambiguous through an earlier one fails with its number of matches', async () => {
    const root = await folderWith({ 'a.txt': 'one two' })
    const edits = [edit('a.txt', 'one', 'two'), edit('a.txt', 'two', 'x')]
    expect(await call(editTool({ root }), { edits })).toMatchObject({
      ok: false,
      metadata: { results: [{ ok: true }, { ok: false, matches: 2 }] },
    })
    expect(await textOf(root, 'a.txt')).toBe('two two')
  })

  test.each(['replace_all', 'all', 'replaceAll'])(
    'FT-09 every occurrence is replaced on request, and the count is reported: `%s`',
    async (name) => {
      const root = await folderWith({ 'a.txt': 'b b b' })
      const edits = [edit('a.txt', 'b', 'x', { [name]: true, expected_replacements: 3 })]
      expect(await call(editTool({ root }), { edits })).toMatchObject({
        ok: true,
        content: '1. ok a.txt: replaced 3 occurrence(s)',
        metadata: { results: [{ replacements: 3 }] },
      })
      expect(await textOf(root, 'a.txt')).toBe('x x x')
    },
  )

  test('FT-11 an escaping path, a missing file and a directory each fail with their own error type, and the other edits apply', async () => {
    const root = await folderWith({ 'a.txt': 'one', 'docs/b.txt': '' })
    const edits = [
      edit('../x', 'a', 'b'),
      edit('missing.txt', 'a', 'b'),
      edit('docs', 'a', 'b'),
      edit('a.txt', 'one', 'two'),
    ]
    expect(await call(editTool({ root }), { edits })).toMatchObject({
      ok: false,
      metadata: {
        error_type: 'PathValidationError',
        applied: 1,
        failed: 3,
        results: [
          { path: '../x', error: 'path escapes root: ../x', error_type: 'PathValidationError' },
          { path: 'missing.txt', error: 'file not found: missing.txt', error_type: 'NotFound' },
          { path: 'docs', error: 'path is not a file: docs', error_type: 'PathTypeError' },
          { path: 'a.txt', ok: true },
        ],
      },
    })
  })

  test('FT-12 a file that cannot be written fails with the error of the system, and the other edits apply', async () => {
    const root = await folderWith({ 'a.txt': 'one', 'b.txt': 'one' })
    await chmod(join(root, 'a.txt'), 0o444)
    const edits = [edit('a.txt', 'one', 'two'), edit('b.txt', 'one', 'two')]
    expect(await call(editTool({ root }), { edits })).toMatchObject({
      ok: false,
      metadata: {
        error_type: 'EACCES',
        results: [{ error: 'file is read-only: a.txt', error_type: 'EACCES' }, { ok: true }],
      },
    })
    expect([await textOf(root, 'a.txt'), await textOf(root, 'b.txt')]).toEqual(['one', 'two'])
  })

  test.each<[string, object]>([
    ['an empty list', { edits: [] }],
    [
      'the flat form with a field that it does not have',
      { path: 'a.txt', old_string: 'one', new_string: 'two', fuzzy: true },
    ],
    ['an unknown field of an item', { edits: [edit('a.txt', 'one', 'two', { fuzzy: true })] }],
    ['a count of 0', { edits: [edit('a.txt', 'one', 'two', { expected_replacements: 0 })] }],
  ])('FT-14 invalid arguments are rejected: %s', async (_name, args) => {
    const root = await folderWith({ 'a.txt': 'one' })
    const result = await call(editTool({ root }), args as Record<string, never>)
    expect(result).toMatchObject({ ok: false, metadata: { error_type: 'ValidationError', retry: true } })
    expect(await textOf(root, 'a.txt')).toBe('one')
  })

  test('one edit in place of the list is read as the list, and the model learns of it', async () => {
    const root = await folderWith({ 'a.txt': 'one' })
    const args = { file: 'a.txt', old_string: 'one', new_string: 'two' }
    const result = await call(editTool({ root }), args)
    expect(result).toMatchObject({ ok: true })
    expect(JSON.stringify(result)).toContain('the fields of one item were read as the list `edits`')
    expect(await textOf(root, 'a.txt')).toBe('two')
  })

  test('FT-15 the schema has no references, requires at least one edit, and closes the edit object', () => {
    const { parameters } = editTool()
    expect(JSON.stringify(parameters)).not.toContain('$')
    expect(parameters).toMatchObject({
      additionalProperties: false,
      required: ['edits'],
      properties: {
        edits: {
          minItems: 1,
          items: { additionalProperties: false, required: ['path', 'old_string', 'new_string'] },
        },
      },
    })
  })

  test('156 an `old_string` that was escaped too often is repaired, and the repair is reported', async () => {
    const root = await folderWith({ 'a.txt': 'first\nsay "a"\n\tb\n' })
    const edits = [edit('a.txt', 'say \\"a\\"\\n\\tb', 'say \\"x\\"\\n\\ty')]
    expect(await call(editTool({ root }), { edits })).toMatchObject({
      ok: true,
      content:
        '1. ok a.txt: replaced 1 occurrence(s); old_string matched only after its JSON escapes were decoded: check lines 2 to 3',
      metadata: { results: [{ repaired: true, diff: '@@ line 2 @@\n-say "a"\n-\tb\n+say "x"\n+\ty' }] },
    })
    expect(await textOf(root, 'a.txt')).toBe('first\nsay "x"\n\ty\n')
  })

  test('157 line endings, the byte order mark and the mode bits are preserved', async () => {
    const root = await folderWith({ 'a.sh': '\uFEFFone\r\ntwo\r\n' })
    await chmod(join(root, 'a.sh'), 0o754)
    await call(editTool({ root }), { edits: [edit('a.sh', 'one\ntwo', 'one\nand\ntwo')] })
    expect(await textOf(root, 'a.sh')).toBe('\uFEFFone\r\nand\r\ntwo\r\n')
    expect((await stat(join(root, 'a.sh'))).mode & 0o777).toBe(0o754)
  })

  test('157 a file that changes between reading and writing is left unchanged', async () => {
    const root = await folderWith({ 'a.txt': 'one 0' })
    // The call asks again and again whether it was aborted; whenever it asks, somebody else writes.
    const signal = new AbortController().signal
    let writes = 0
    Object.defineProperty(signal, 'throwIfAborted', {
      value: () => {
        writeFileSync(join(root, 'a.txt'), `one ${++writes % 10}`)
      },
    })
    const result = await call(editTool({ root }), { edits: [edit('a.txt', 'one', 'two')] }, { signal })
    expect(result).toMatchObject({
      ok: false,
      content: '1. FAILED a.txt: a.txt was changed meanwhile by another program: read it again',
      metadata: { error_type: 'InvalidInput' },
    })
    expect([await readdir(root), await textOf(root, 'a.txt')]).toEqual([['a.txt'], `one ${writes % 10}`])
  })

  test.each<[string, string | Uint8Array, string]>([
    ['a binary file', 'one\0two', 'a.txt is a binary file'],
    ['a file that is not UTF-8', Uint8Array.of(0x6f, 0x6e, 0x65, 0xff), 'a.txt is not UTF-8 text'],
    ['a file that is too large', 'x'.repeat(10_000_001), 'a.txt has more than the 10000000 bytes that can be edited'],
  ])('%s is rejected', async (_name, content, error) => {
    const root = await folderWith({ 'a.txt': content })
    const result = await call(editTool({ root }), { edits: [edit('a.txt', 'one', 'two')] })
    expect(result).toMatchObject({ ok: false, metadata: { results: [{ error, error_type: 'InvalidInput' }] } })
  })

  test('FT-82 a call with more than 200 edits is rejected as a whole, with a short message', async () => {
    const root = await folderWith({ 'a.txt': 'one' })
    const edits = Array.from({ length: 20_000 }, () => edit('a.txt', 'none', 'two'))
    const result = await call(editTool({ root }), { edits: [edit('a.txt', 'one', 'two'), ...edits] })
    expect(result).toMatchObject({ ok: false, metadata: { error_type: 'ValidationError', retry: true } })
    expect(result.content.length).toBeLessThan(1_000)
    expect(await textOf(root, 'a.txt')).toBe('one')
  })

  test('two calls that edit one file at once both count', async () => {
    const root = await folderWith({ 'a.txt': Array.from({ length: 20 }, (_, index) => `<${index}>`).join('\n') })
    const tool = editTool({ root })
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) => call(tool, { edits: [edit('a.txt', `<${index}>`, `[${index}]`)] })),
    )
    expect(results.filter(({ ok }) => !ok)).toEqual([])
    expect(await textOf(root, 'a.txt')).toBe(Array.from({ length: 20 }, (_, index) => `[${index}]`).join('\n'))
  })

  test('FT-19 a file that may be written but not read is edited without showing its content', async () => {
    const root = await folderWith({ 'a.txt': 'secret: one', 'docs/b.txt': '' })
    const tool = editTool({ root, readPaths: ['docs'] })
    const edits = [edit('a.txt', 'secret; one', 'x'), edit('a.txt', 'one', 'two')]
    const result = await call(tool, { edits })
    expect(result).toMatchObject({ metadata: { applied: 1, failed: 1 } })
    expect(JSON.stringify(result)).not.toContain('secret:')
  })

  test('a path that is neither a file nor missing is left alone', async () => {
    const root = await folderWith({ 'b.txt': 'one' })
    await mkdir(join(root, 'folder'))
    await symlink('b.txt', join(root, 'link'))
    const edits = [edit('folder', 'a', 'b'), edit('.', 'a', 'b'), edit('link', 'one', 'two')]
    expect(await call(editTool({ root }), { edits })).toMatchObject({
      metadata: { results: [{ error_type: 'PathTypeError' }, { error_type: 'PathTypeError' }, { ok: true }] },
    })
    expect(await textOf(root, 'b.txt')).toBe('two')
  })
})
