import { chmod, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findProgram } from '#toolbox/process/find-program.js'
import { exclusionsOf } from '#toolbox/search/exclusions.js'
import type { EngineEnd, SearchRequest } from '#toolbox/search/engine.js'
import { engineFor } from '#toolbox/search/engines.js'
import type { FileHits } from '#toolbox/search/hits.js'
import { searchTool } from '#toolbox/search/index.js'
import { LineCutter, parseRecord } from '#toolbox/search/ripgrep/records.js'
import { ripgrepEngine, RipgrepUnavailable } from '#toolbox/search/ripgrep/engine.js'
import type { RipgrepLimits } from '#toolbox/search/ripgrep/engine.js'
import { callTime } from '#toolbox/workspace/call-time.js'
import { call, folderWith, workspaceIn } from '../support.js'

/** A program that stands in for ripgrep. */
async function program(root: string, script: string): Promise<string> {
  const path = join(dirname(root), 'rg')
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o755)
  return path
}

/** A program that writes records and ends with a code. */
async function writing(root: string, records: readonly object[], code: number, errors = ''): Promise<string> {
  const output = join(dirname(root), 'output')
  await writeFile(output, records.map((record) => `${JSON.stringify(record)}\n`).join(''))
  return program(root, `cat '${output}'\nprintf '%s' '${errors}' >&2\nexit ${code}`)
}

function match(path: string, line: number, text: string, offset?: number): object {
  return {
    type: 'match',
    data: {
      path: { text: path },
      lines: { text: `${text}\n` },
      line_number: line,
      absolute_offset: offset,
      submatches: [],
    },
  }
}

function requestFor(root: string, query: string, seconds = 20, signal = new AbortController().signal): SearchRequest {
  return {
    workspace: workspaceIn(root),
    starts: [root],
    query: { text: query, literal: false, caseSensitive: true },
    fileType: undefined,
    exclusions: exclusionsOf([]),
    keepLines: 3,
    wantsLines: () => true,
    maxLineChars: 100,
    time: callTime(seconds, signal),
  }
}

async function searchWith(
  path: string,
  request: SearchRequest,
  limits: RipgrepLimits = {},
): Promise<{ readonly end: EngineEnd; readonly hits: readonly FileHits[] }> {
  const hits: FileHits[] = []
  const end = await ripgrepEngine(path, limits).search(request, (each) => hits.push(each))
  return { end, hits }
}

describe.skipIf(process.platform === 'win32')('a program in place of ripgrep', () => {
  test('FT-29 exit code 2 with matches is a success with a warning', async () => {
    const root = await folderWith({ 'a.txt': 'needle\n' })
    const ripgrep = await writing(root, [match('a.txt', 1, 'needle', 0)], 2, `rg: ${'no such thing '.repeat(60)}`)
    const { ok, content, metadata } = await call(searchTool({ root, ripgrep }), { query: 'needle' })
    expect({ ok, metadata }).toMatchObject({
      ok: true,
      metadata: { returncode: 2, warning: 'the search is not complete' },
    })
    expect(metadata['warning_excerpt']).toMatch(/^rg: no such thing .{380,386}\.\.\.$/)
    expect(content).toContain('a.txt\n1: needle')
  })

  test('FT-30 matches that arrive out of order are sorted by line, and the first ones are kept', async () => {
    const file = `${Array.from({ length: 9 }, (_, index) => `needle ${index + 1}\n`).join('')}${'x\n'.repeat(200_000)}`
    const root = await folderWith({ 'a.txt': file })
    const lines = [9, 2, 7, 1, 8, 3].map((line) => match('a.txt', line, `needle ${line}`, (line - 1) * 9))
    const ripgrep = await writing(root, lines, 0)
    const { content } = await call(searchTool({ root, ripgrep }), { query: 'needle', max_matches_per_file: 3 })
    expect(content).toContain('a.txt\n1: needle 1\n2: needle 2\n3: needle 3\n... 3 more match(es)')
  })

  test.each<[string, string, number | undefined]>([
    ['the line is elsewhere', 'hay\nneedle outside\n', 0],
    ['the line differs', 'hay\nneedle inside\n', 4],
    ['the place is not the start of a line', 'hay\nneedle outside\n', 5],
    ['the line is longer', 'hay\nneedle outside or not\n', 4],
    ['the place lies after the end', 'hay\n', 4],
    ['no place is given', 'hay\nneedle outside\n', undefined],
  ])('a line that the file does not have at its place is not shown: %s', async (_, content, offset) => {
    const root = await folderWith({ 'a.txt': content, 'b.txt': 'x\nneedle inside\n' })
    const reported = [match('a.txt', 2, 'needle outside', offset), match('b.txt', 2, 'needle inside', 2)]
    const ripgrep = await writing(root, reported, 0)
    const { content: shown } = await call(searchTool({ root, ripgrep }), { query: 'needle' })
    expect(shown).toBe('[files: 1 total, 1 shown; matches: 1 shown, 0 omitted]\n\n' + 'b.txt\n2: needle inside')
  })

  test('the last line of a file, and those of files in other encodings, are found at their places', async () => {
    const root = await folderWith({
      'a.txt': 'hay\nneedle',
      'b.txt': '\ufeffhay\nneedle é\r\n',
      'c.txt': Buffer.from('\ufeffhay é\nneedle é\n', 'utf16le'),
      'd.txt': Buffer.from('hay\nneedle \xe9\n', 'latin1'),
    })
    for (const context_lines of [0, 1]) {
      const { content } = await call(searchTool({ root }), { query: 'needle', context_lines })
      expect(content).toContain('files: 4 total, 4 shown')
      expect(content.split('\n').filter((line) => /^\d: needle/.test(line))).toEqual([
        '2: needle',
        '2: needle é',
        '2: needle é',
        '2: needle \ufffd',
      ])
    }
  })

  test("of the program's complaints, only those about existing files in the scope count", async () => {
    const root = await folderWith({ 'a.txt': 'needle\n', 'b.txt': 'x' })
    const gone = 'rg: c/only-outside.txt: Permission denied (os error 13)'
    const elsewhere = 'rg: .gitignore: line 1: error parsing glob a line of elsewhere\nrg: ../x: Gone (os error 2)'
    const search = async (errors: string) => {
      const ripgrep = await writing(root, [match('a.txt', 1, 'needle', 0)], 2, errors)
      const { ok, metadata } = await call(searchTool({ root, ripgrep }), { query: 'needle' })
      return [ok, metadata['returncode'], metadata['warning_excerpt']]
    }
    const there = 'rg: b.txt: Permission denied (os error 13)'
    expect(await search(`${gone}\n${there}\n${elsewhere}`)).toEqual([true, 2, there])
    expect(await search(gone)).toEqual([true, 0, undefined])
    expect(await search(`rg: ${'x'.repeat(3_000)}`)).toEqual([true, 2, ''])
  })

  test('matches in files that will not be shown are only counted', async () => {
    const files = Array.from({ length: 9 }, (_, index) => [`${index}.txt`, 'needle\n'.repeat(index + 1)] as const)
    const root = await folderWith(Object.fromEntries(files))
    const search = searchTool({ root })
    const { content } = await call(search, { query: 'needle', max_files: 1, max_matches_per_file: 2 })
    expect(content).toContain('files: 9 total, 1 shown; matches: 1 shown, 44 omitted]\n\n0.txt\n1: needle\n\nnote: 8')
  })

  test("FT-31 exit code 2 without matches is a failure with the code and the program's message", async () => {
    const root = await folderWith({ 'a.txt': 'needle\n' })
    const ripgrep = await writing(root, [], 2, 'rg: something broke')
    expect(await call(searchTool({ root, ripgrep }), { query: 'needle' })).toEqual({
      ok: false,
      content: 'ripgrep failed (rc=2): rg: something broke',
      metadata: {
        error_type: 'SearchFailed',
        returncode: 2,
      },
    })
  })

  test('FT-28 a program that does not end is stopped in time, even if it has started another', async () => {
    const root = await folderWith({ 'a.txt': 'needle\n' })
    const ripgrep = await program(root, 'sleep 30')
    const envelope = await call(searchTool({ root, ripgrep, searchTimeoutMs: 100 }), { query: 'needle' })
    expect(envelope).toMatchObject({
      ok: false,
      content: expect.stringContaining('ripgrep timed out after 0.1s') as unknown,
      metadata: { error_type: 'Timeout', timeout: 0.1 },
    })
  })

  test('an abort stops the program', async () => {
    const root = await folderWith({ 'a.txt': 'needle\n' })
    const controller = new AbortController()
    const path = await program(root, 'sleep 30')
    const search = searchWith(path, requestFor(root, 'needle', 20, controller.signal))
    controller.abort(new Error('no longer wanted'))
    await expect(search).rejects.toThrow('no longer wanted')
  })

  test('output beyond the limit stops the program, and the part already read is kept', async () => {
    const root = await folderWith({ 'a.txt': 'needle\n' })
    const line = JSON.stringify(match('a.txt', 1, 'needle'))
    const path = await program(root, `while :; do printf '%s\\n' '${line}'; done`)
    const { end, hits } = await searchWith(path, requestFor(root, 'needle'), { maxOutputBytes: 100_000 })
    expect(end).toMatchObject({ returncode: 2, detail: 'there was too much output: the counts are too low' })
    expect(hits).toMatchObject([{ path: join(root, 'a.txt'), lines: Array(3).fill({ number: 1, text: 'needle' }) }])
  })

  test('a line whose record is too long is counted, and the others are shown', async () => {
    const root = await folderWith({ 'a.txt': '' })
    const path = await writing(
      root,
      [
        { type: 'begin', data: { path: { text: 'a.txt' } } },
        match('a.txt', 1, `${'x'.repeat(2_000_000)} needle`),
        match('a.txt', 2, 'needle'),
        { type: 'end', data: { path: { text: 'a.txt' }, binary_offset: null } },
      ],
      0,
    )
    const limits = { maxRecordBytes: 10_000, maxOutputBytes: 200_000 }
    const { end, hits } = await searchWith(path, requestFor(root, 'needle'), limits)
    expect(end.returncode).toBe(0)
    expect(hits.map(({ matches, lines }) => [matches, lines.map(({ number }) => number)])).toEqual([[2, [2]]])
  })

  test("FT-19 matches outside the root, in the harness's own folder, or in a link out of the root are not shown", async () => {
    const root = await folderWith({ 'a.txt': 'needle\n', '.thinharness/outputs/o.txt': 'needle\n' })
    const found = ['../b.txt', '/outside.txt', '.thinharness/outputs/o.txt', 'gone/c.txt', 'a.txt']
    const ripgrep = await writing(
      root,
      found.map((path) => match(path, 1, 'needle', 0)),
      0,
    )
    const { content } = await call(searchTool({ root, ripgrep, readPaths: ['a.txt'] }), { query: 'needle' })
    expect(content).toContain('files: 1 total, 1 shown')
    expect(content).toMatch(/\n\na\.txt\n1: needle$/)
  })

  test('a program that cannot be started is a failure if it was named, and replaced if it was found', async () => {
    const root = await folderWith({ 'a.txt': 'needle\n' })
    const missing = join(dirname(root), 'missing')
    await expect(searchWith(missing, requestFor(root, 'needle'))).rejects.toThrow(RipgrepUnavailable)
    const envelope = await call(searchTool({ root, ripgrep: missing }), { query: 'needle' })
    expect(envelope).toMatchObject({ ok: false, content: expect.stringContaining('cannot run ripgrep') as unknown })
    expect((await engineFor(false)).name).toBe('the built-in search')
    expect((await engineFor(missing)).name).toBe('ripgrep')
  })

  test('a program is found on PATH only if it is executable', async () => {
    const root = await folderWith({ 'bin/rg': '#!/bin/sh\n', 'other/x': '' })
    const folders = [join(root, 'other'), '', join(root, 'bin')].join(':')
    expect(await findProgram('rg', folders)).toBeUndefined()
    await chmod(join(root, 'bin', 'rg'), 0o755)
    expect(await findProgram('rg', folders)).toBe(join(root, 'bin', 'rg'))
  })
})

describe('the output of ripgrep', () => {
  const never = (): boolean => false

  test('it omits the lines that were read from their chunk directly', () => {
    const cutter = new LineCutter(100)
    const taken: string[] = []
    const take = (chunk: Buffer, start: number, length: number): boolean => {
      const text = chunk.toString('utf8', start, start + length)
      if (text.startsWith('b')) taken.push(text)
      return text.startsWith('b')
    }
    const lines = ['a1\nb1\nb', '2\nb3\nc1\n'].flatMap((text) => [...cutter.push(Buffer.from(text), take)].map(String))
    expect([lines, taken]).toEqual([
      ['a1', 'b2', 'c1'],
      ['b1', 'b3'],
    ])
  })

  test('it is split at LF only, whatever the chunks', () => {
    const text = 'one\u2028two\n\nthree\u0085\r\nfour'
    const bytes = Buffer.from(text)
    for (let size = 1; size <= bytes.length; size++) {
      const cutter = new LineCutter(1_000)
      const lines: string[] = []
      for (let at = 0; at < bytes.length; at += size) {
        lines.push(...[...cutter.push(bytes.subarray(at, at + size), never)].map(String))
      }
      lines.push(...[...cutter.end()].map(String))
      expect(lines).toEqual(text.split('\n'))
    }
  })

  test('a line that is too long is omitted, the next one is not', () => {
    const cutter = new LineCutter(4)
    const pieces = ['12345\n1234\n123', '45\nok\n'].map((text) => Buffer.from(text))
    const lines = pieces.flatMap((piece) => [...cutter.push(piece, never)])
    expect(lines.map((line) => line?.toString())).toEqual([undefined, '1234', undefined, 'ok'])
  })

  test.each<[string, unknown, unknown]>([
    [
      'a match',
      { type: 'match', data: { path: { text: 'a' }, lines: { text: 'é\n' }, line_number: 3, absolute_offset: 7 } },
      { kind: 'match', path: 'a', line: 3, offset: 7, bytes: Buffer.from('é\n') },
    ],
    [
      'bytes',
      { type: 'match', data: { path: { text: 'a' }, lines: { bytes: '/w==' }, line_number: 1 } },
      { kind: 'match', path: 'a', line: 1, offset: undefined, bytes: Buffer.from([0xff]) },
    ],
    ['a path that is not text', { type: 'begin', data: { path: { bytes: '/w==' } } }, undefined],
    [
      'a name like a record',
      { type: 'end', data: { path: { text: '},"binary_offset":null,\\"é' }, binary_offset: null, stats: {} } },
      { kind: 'end', path: '},"binary_offset":null,\\"é', isBinary: false },
    ],
    ['a name with quotes', { type: 'begin', data: { path: { text: 'a "b\\' } } }, { kind: 'begin', path: 'a "b\\' }],
    ['a beginning', { type: 'begin', data: { path: { text: 'a' } } }, { kind: 'begin', path: 'a' }],
    [
      'an end',
      { type: 'end', data: { path: { text: 'a' }, binary_offset: null } },
      { kind: 'end', path: 'a', isBinary: false },
    ],
    [
      'a binary end',
      { type: 'end', data: { path: { text: 'a' }, binary_offset: 0 } },
      { kind: 'end', path: 'a', isBinary: true },
    ],
    [
      'a text with a NUL further on',
      { type: 'end', data: { path: { text: 'a' }, binary_offset: 100_000 } },
      { kind: 'end', path: 'a', isBinary: false },
    ],
    ['a summary', { type: 'summary', data: {} }, undefined],
    ['a number', 1, undefined],
    ['no data', { type: 'match' }, undefined],
    ['no line', { type: 'match', data: { path: { text: 'a' } } }, undefined],
  ])('%s', (_, record, expected) => {
    expect(parseRecord(Buffer.from(JSON.stringify(record)))).toEqual(expected)
  })

  test('a line that is not JSON is skipped', () => {
    expect(parseRecord(Buffer.from('{"type":"match"'))).toBeUndefined()
  })
})
