import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { readTool } from '#toolbox/files/read.js'
import { convertDocument } from '#toolbox/workspace/convert-document.js'
import { pdfBomb, pdfOf } from '../pdf.js'
import { call, folderWith, textOf } from '../support.js'

const isLinux = process.platform === 'linux'

/** The memory of the processes that this one has started, in MB. */
function memoryOfChildren(): number {
  const sizes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8')
        if (!status.includes(`\nPPid:\t${process.pid}\n`)) return 0
        return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024
      } catch {
        return 0
      }
    })
  return Math.max(0, ...sizes)
}

test.skipIf(!isLinux)(
  'a small PDF that unpacks to gigabytes is a failed call, and takes bounded memory',
  async () => {
    const bomb = await pdfBomb(1_000)
    expect(bomb.length).toBeLessThan(10_000)
    const read = readTool({ root: await folderWith({ 'a.pdf': bomb, 'b.pdf': pdfOf(['Hello']) }) })
    const before = process.memoryUsage().rss
    let [host, child] = [0, 0]
    const timer = setInterval(() => {
      host = Math.max(host, process.memoryUsage().rss - before)
      child = Math.max(child, memoryOfChildren())
    }, 20)
    const { ok, content } = await call(read, { path: 'a.pdf' }).finally(() => clearInterval(timer))
    expect({ ok, content }).toEqual({
      ok: false,
      content: expect.stringMatching(/^The PDF a\.pdf could not be read: it was stopped: it needs more than/) as string,
    })
    expect(child).toBeLessThan(800)
    expect(host / 1_000_000).toBeLessThan(300)
    expect((await call(read, { path: 'b.pdf' })).content).toContain('Hello')
  },
  120_000,
)

test('reading a document has a limit of time', async () => {
  const read = readTool({ root: await folderWith({ 'a.pdf': pdfOf(['Hello']) }), searchTimeoutMs: 1 })
  expect(await call(read, { path: 'a.pdf' })).toMatchObject({
    ok: false,
    content: 'The PDF a.pdf could not be read: it took longer than 1 ms.',
    metadata: { error_type: 'Timeout' },
  })
})

test('documents are converted one at a time', async () => {
  const folder = await folderWith({ log: '' })
  const source = `const { appendFileSync } = await import('node:fs'); const log = new URL(base)
    appendFileSync(log, 'begin '); await new Promise((resolve) => setTimeout(resolve, 50)); appendFileSync(log, 'end '); return 'done'`
  const converter = { packageName: 'turndown', purpose: '', source }
  const conversion = { base: pathToFileURL(join(folder, 'log')), signal: new AbortController().signal }
  await Promise.all([1, 2, 3].map(() => convertDocument(converter, Buffer.from(''), conversion)))
  expect(await textOf(folder, 'log')).toBe('begin end begin end begin end ')
})
