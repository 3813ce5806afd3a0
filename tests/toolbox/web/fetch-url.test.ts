import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isPublicAddress } from '#toolbox/web/addresses.js'
import { convertDocument } from '#toolbox/workspace/convert-document.js'
import { fetchUrl } from '#toolbox/web/fetch-url.js'
import { docxOf, linked, paragraph, zipOf } from '../docx.js'
import { call, folderWith } from '../support.js'
import { fetched, serve, servePage } from './support.js'
import { rounds } from '../../support/length.js'

const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
const NEVER = new AbortController().signal

describe('fetch_url', () => {
  test('text is returned as it is, with its address', async () => {
    const url = await servePage('application/json', '{"a": 1}')
    expect(await fetched({ url })).toEqual({
      ok: true,
      content: `fetched ${url}\n\n{"a": 1}`,
      metadata: { url, final_url: url, status: 200, content_type: 'application/json', format: 'text', size_bytes: 8 },
    })
  })

  test('HTML becomes Markdown: no scripts or styles, whole links, no data URLs', async () => {
    const url = await servePage(
      'text/html; charset=utf-8',
      `<!doctype html><html><head><title>Tea</title><style>p{}</style><script>alert(1)</script></head><body>
       <h1>Green <em>tea</em></h1><p>See <a href="/more?x=1">more</a>, <a href="javascript:alert(1)">less</a>.</p>
       <ul><li>one</li><li>two</li></ul><img src="data:image/png;base64,AAAA" alt="a leaf"><img src="leaf.png" alt="leaf">
       <pre><code>let a = 1</code></pre></body></html>`,
    )
    const { content, metadata } = await fetched({ url })
    const base = url.replace('/page', '')
    expect(content).toBe(
      `fetched ${url}\n\nTea\n\n# Green *tea*\n\nSee [more](${base}/more?x=1), less.\n\n-   one\n-   two\n\n` +
        `a leaf![leaf](${base}/leaf.png)\n\n\`\`\`\nlet a = 1\n\`\`\``,
    )
    expect(metadata).toMatchObject({ format: 'markdown', content_type: 'text/html' })
  })

  test.each<[string, string, string]>([
    [
      'a table of data stays one',
      '<table><caption>Teas</caption><thead><tr><th>Sort</th><th>Time</th></tr></thead>' +
        '<tbody><tr><td><a href="/s">Sencha</a></td><td>2 | 3\n min</td></tr><tr><td><p>Assam</p></td><td></td></tr></tbody></table><p>End.</p>',
      'Teas\n\n| Sort | Time |\n| --- | --- |\n| [Sencha](BASE/s) | 2 \\| 3 min |\n| Assam |  |\n\nEnd.',
    ],
    [
      'a table that arranges a page is text',
      '<table><tr><td>Menu</td><td><table><tr><td>Story.</td></tr></table></td></tr></table>',
      'Menu\n\nStory.',
    ],
    [
      'so is one with lists',
      '<table><tr><td>A</td><td><ul><li>b</li></ul></td></tr><tr><td>C</td><td>d</td></tr></table>',
      'A\n\n-   b\n\nC\n\nd',
    ],
  ])('HTML: %s', async (_name, html, expected) => {
    const url = await servePage('text/html', html)
    const { content } = await fetched({ url })
    expect(content).toBe(`fetched ${url}\n\n${expected.replaceAll('BASE', url.replace('/page', ''))}`)
  })

  test('the text of a PDF is returned', async () => {
    const url = await servePage('application/pdf', pdfSaying('Hello from a PDF'))
    expect(await fetched({ url })).toMatchObject({
      ok: true,
      content: `fetched ${url}\n\nHello from a PDF`,
      metadata: { format: 'text', content_type: 'application/pdf' },
    })
  })

  test.each([
    ['by its type', DOCX],
    ['by its content', 'application/octet-stream'],
    ['without a type', ''],
  ])('a Word document becomes Markdown: %s', async (_name, contentType) => {
    const url = await servePage(contentType, docxOf(paragraph('Tea', 'T1') + linked('More', 'rId3')))
    expect(await fetched({ url })).toMatchObject({
      ok: true,
      content: `fetched ${url}\n\n# Tea\n\n[More](https://example.test/tea)`,
      metadata: { format: 'markdown' },
    })
  })

  test.each<[string, string, Uint8Array | string, string]>([
    ['latin-1 by its header', 'text/plain; charset=iso-8859-1', Buffer.from('caf\xe9', 'latin1'), 'café'],
    ['a quoted charset', 'text/plain; charset="windows-1251"', Buffer.from([0xcf, 0xf0]), 'Пр'],
    ['a byte order mark wins', 'text/plain; charset=latin1', Buffer.from('\uFEFFcafé'), 'café'],
    [
      'UTF-16 by its mark',
      'text/plain',
      Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('hé', 'utf16le')]),
      'hé',
    ],
    [
      'HTML by its meta element',
      'text/html',
      Buffer.from('<meta charset="iso-8859-1"><p>caf\xe9</p>', 'latin1'),
      'café',
    ],
    ['a charset that nobody knows', 'text/plain; charset=klingon', 'café', 'café'],
    ['bytes that are no text', 'text/plain', Buffer.from([0x61, 0xff]), 'a\uFFFD'],
    ['HTML without a type', '', '<!DOCTYPE html><p>hi</p>', 'hi'],
    ['text without a type', '', 'just text', 'just text'],
    ['XML of some kind', 'application/atom+xml', '<feed/>', '<feed/>'],
  ])('%s', async (_name, contentType, body, expected) => {
    const url = await servePage(contentType, body)
    expect(await fetched({ url })).toMatchObject({ ok: true, content: `fetched ${url}\n\n${expected}` })
  })

  test.each<[string, string, Uint8Array]>([
    ['an image', 'image/png', Buffer.from([0x89, 0x50])],
    ['a program', 'application/octet-stream', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0])],
    ['a text with NUL bytes', 'text/plain', Buffer.from('a\0b')],
  ])('%s is rejected with a clear error', async (_name, contentType, body) => {
    const result = await fetched({ url: await servePage(contentType, body) })
    expect(result).toMatchObject({
      ok: false,
      content: `The page is \`${contentType}\`. Only text, HTML, PDF and DOCX are fetched.`,
      metadata: { error_type: 'UnsupportedContent' },
    })
  })

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ] as const)('a body packed with %s is unpacked, never beyond the cap', async (encoding, pack) => {
    const port = await serve(({ url }, response) => {
      response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': encoding })
      response.end(pack(url === '/bomb' ? Buffer.alloc(50_000_000, 'x') : Buffer.from('packed')))
    })
    const base = `http://127.0.0.1:${port}`
    expect((await fetched({ url: `${base}/` })).content).toBe(`fetched ${base}/\n\npacked`)
    const bomb = await fetched({ url: `${base}/bomb` }, { maxBytes: 1_000 })
    expect(bomb.content).toBe(`fetched ${base}/bomb; only the first 1000 bytes were read\n\n${'x'.repeat(1_000)}`)
    expect(bomb.metadata).toMatchObject({ truncated: true, size_bytes: 1_000 })
  })

  test('a text over the limit is saved in a file; a call can lower the limit but never raise it', async () => {
    const root = await folderWith()
    const url = await servePage('text/plain', 'x'.repeat(5_000))
    const result = await call(fetchUrl({ root, allowPrivate: true, maxChars: 1_000 }), { url, max_chars: 9_000 })
    expect(result.metadata).toMatchObject({ truncated: true, chars: 5_000 })
    expect(await readFile(result.metadata['saved_to'] as string, 'utf8')).toBe('x'.repeat(5_000))
    expect(result.metadata['saved_to_display']).toMatch(/^\.thinharness\/outputs\/fetch_url-/)
    const less = await call(fetchUrl({ root, allowPrivate: true }), { url, max_chars: 10 })
    expect(less.content).toContain('xxxxx\n...\nxxxxx')
  })

  test('FT-83 a page has no terminal escapes', async () => {
    const url = await servePage('text/plain; charset=utf-8', 'a\x1b[2J\x1b]0;title\x07\tb\u009b31m\nc')
    expect((await fetched({ url })).content).toBe(`fetched ${url}\n\na\tb\nc`)
  })

  test('a missing page is a failure with its content', async () => {
    const port = await serve((_request, response) => {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('no such\npage')
    })
    const url = `http://127.0.0.1:${port}/x`
    expect(await fetched({ url })).toEqual({
      ok: false,
      content: `${url} answered 404 Not Found. Its message: no such\\u000apage`,
      metadata: { error_type: 'HttpError', url, final_url: url },
    })
  })

  test('redirects are followed up to a limit, loops end', async () => {
    const port = await serve(({ url = '' }, response) => {
      const left = Number(url.slice(1))
      if (left === 0) response.end('arrived')
      else response.writeHead(308, { location: left > 90 ? url : String(left - 1) }).end()
    })
    const base = `http://127.0.0.1:${port}`
    expect(await fetched({ url: `${base}/5` })).toMatchObject({ ok: true, metadata: { final_url: `${base}/0` } })
    for (const path of ['6', '99']) {
      expect(await fetched({ url: `${base}/${path}` })).toMatchObject({
        ok: false,
        content: `${base}/${path} redirects more than 5 times.`,
        metadata: { error_type: 'FetchFailed' },
      })
    }
  })

  test.each<[string, string, string]>([
    ['no URL', 'not a url', 'InvalidInput'],
    ['no scheme', 'example.com', 'InvalidInput'],
    ['a file', 'file:///etc/hostname', 'FetchRefused'],
    ['data', 'data:text/plain,hi', 'FetchRefused'],
    ['ftp', 'ftp://example.com/', 'FetchRefused'],
    ['a user name', 'http://user:pass@example.com/', 'FetchRefused'],
    ['a giant', `http://example.com/${'x'.repeat(10_000)}`, 'InvalidInput'],
    ['a port that is closed', 'http://127.0.0.1:1/', 'FetchFailed'],
    ['no such host', 'http://nowhere.invalid/', 'FetchFailed'],
  ])('%s is rejected or reported', async (_name, url, type) => {
    const result = await fetched({ url }, { lookup: () => Promise.reject(new Error('ENOTFOUND')) })
    expect(result).toMatchObject({ ok: false, metadata: { error_type: type } })
    expect(result.content.length).toBeLessThan(500)
  })

  test('any string as URL yields a result and reaches no network', async () => {
    const spec = fetchUrl({ root: await folderWith(), lookup: () => Promise.reject(new Error('ENOTFOUND')) })
    const text = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1 }),
      fc.webUrl(),
      fc.string().map((each) => `http://${each}`),
    )
    await fc.assert(
      fc.asyncProperty(text, async (url) => {
        // A number can be the address of a true host.
        fc.pre(!URL.canParse(url) || !isPublicAddress(new URL(url).hostname))
        const result = await call(spec, { url })
        expect(result.ok).toBe(false)
        expect(result.content).not.toContain('\n    at ')
      }),
      rounds(40, 2_000),
    )
  })
})

/** A server that answers each connection by hand. */
async function rawServer(answer: string, hold: boolean): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => (hold ? socket.write(answer) : socket.end(answer)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`
}

describe('fetch_url and hostile servers', () => {
  test.each([
    ['says nothing', ''],
    ['stops in its head', 'HTTP/1.1 200 OK\r\ncontent-type: text/'],
    ['stops in its body', 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nsome'],
  ])('one that %s is abandoned after the time limit', async (_name, answer) => {
    const url = await rawServer(answer, true)
    const result = await fetched({ url }, { timeoutMs: 300 })
    expect(result).toMatchObject({
      ok: false,
      content: 'The page could not be fetched and read within 300 ms.',
      metadata: { error_type: 'Timeout', url },
    })
  })

  test.each([
    ['no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['a body that breaks off', 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nsome'],
    ['a body that is not packed as it says', 'HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nnot gzip'],
    ['a packing that was not asked for', 'HTTP/1.1 200 OK\r\ncontent-encoding: zstd\r\n\r\nxx'],
    ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['a head without end', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`],
  ])('%s is a failure', async (_name, answer) => {
    const result = await fetched({ url: await rawServer(answer, false) }, { timeoutMs: 5_000 })
    expect(result).toMatchObject({ ok: false, metadata: { error_type: 'FetchFailed' } })
  })

  test('an abort ends it during name lookup, reading and conversion', async () => {
    const never = { lookup: () => new Promise<never>(() => undefined) }
    const slow = await rawServer('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nsome', true)
    const deep = await servePage('text/html', '<p>x</p>'.repeat(200_000))
    for (const [url, options] of [
      ['http://site.test/', never],
      [slow, {}],
      [deep, {}],
    ] as const) {
      const abort = new AbortController()
      setTimeout(() => abort.abort(new Error('stopped by the test')), 200)
      const startedAt = performance.now()
      const result = await fetched({ url }, options, { signal: abort.signal })
      expect(result).toMatchObject({ ok: false, content: 'Error: stopped by the test' })
      expect(performance.now() - startedAt).toBeLessThan(30_000)
    }
  })

  test('HTML that nests too deep is a failure, and so is an invalid PDF', async () => {
    for (const url of [
      await servePage('text/html', '<div>'.repeat(300_000)),
      await servePage('application/pdf', '%PDF-1.7 broken'),
    ]) {
      const result = await fetched({ url }, { timeoutMs: 3_000 })
      expect(result).toMatchObject({ ok: false })
      expect(['ConversionFailed', 'Timeout']).toContain(result.metadata['error_type'])
    }
  })

  test.each([
    ['PDF', 'application/pdf', pdfSaying('x')],
    ['document', DOCX, docxOf(paragraph('x'))],
  ])('a %s over the limit is not read in part', async (name, contentType, body) => {
    const result = await fetched({ url: await servePage(contentType, body) }, { maxBytes: 100 })
    expect(result).toMatchObject({
      ok: false,
      content: `The ${name} has more than the 100 bytes that are read.`,
      metadata: { error_type: 'ContentTooLarge' },
    })
  })

  test.each<[string, string | Buffer, string]>([
    ['no archive', 'hello', 'ConversionFailed'],
    ['encrypted', Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(504)]), 'UnsupportedContent'],
    ['a bomb', zipOf({ 'word/document.xml': { content: Buffer.alloc(60_000_000, ' ') } }), 'FileTooLarge'],
  ])('a Word document that is %s is a failure', async (_name, body, errorType) => {
    const result = await fetched({ url: await servePage(DOCX, body) })
    expect(result).toMatchObject({ ok: false, metadata: { error_type: errorType } })
    expect(result.content).toMatch(/^The document .{10,200}\.$/)
  })
})

test('a missing package is reported with the command that installs it', async () => {
  const converter = { packageName: 'not-a-package-of-ours', purpose: 'Odd pages are read', source: '' }
  const converted = convertDocument(converter, Buffer.from(''), { base: new URL('http://x/'), signal: NEVER })
  await expect(converted).rejects.toMatchObject({
    errorType: 'MissingDependency',
    message:
      'Odd pages are read by the package `not-a-package-of-ours`, which is not installed: npm install not-a-package-of-ours',
  })
})

test("a conversion has neither the host's environment nor unlimited memory", async () => {
  const convertBy = (source: string): Promise<string> =>
    convertDocument({ packageName: 'turndown', purpose: '', source }, Buffer.from('x'), {
      base: new URL('http://x/'),
      signal: NEVER,
    })
  expect(await convertBy('return JSON.stringify(process.env)')).toBe('{}')
  await expect(
    convertBy('const all = []; for (;;) all.push(new Array(100000).fill(Math.random()))'),
  ).rejects.toMatchObject({
    errorType: 'ConversionFailed',
  })
})

test('the spill folder cannot leave the root', async () => {
  const root = await folderWith()
  expect(() => fetchUrl({ root, outputDir: join('..', 'x') })).toThrow('path escapes root')
})

/** A PDF of one page with one line. */
function pdfSaying(text: string): string {
  const stream = `BT /F1 24 Tf 72 700 Td (${text}) Tj ET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ]
  let pdf = '%PDF-1.4\n'
  const offsets = objects.map((object, index) => {
    const at = pdf.length
    pdf += `${index + 1} 0 obj\n${object}\nendobj\n`
    return String(at).padStart(10, '0')
  })
  const table = ['0000000000 65535 f ', ...offsets.map((offset) => `${offset} 00000 n `)].join('\n')
  return `${pdf}xref\n0 ${objects.length + 1}\n${table}\ntrailer << /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${pdf.length}\n%%EOF\n`
}
