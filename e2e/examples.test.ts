import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../tests/support/folder.js'

const run = promisify(execFile)
const place = temporaryFolder()

interface Ended {
  readonly stdout: string
  readonly stderr: string
  readonly code?: number
}

/** `npm run example -- NAME`, but for the build; the home of who runs it is a folder of the test. */
function example(name: string, ...args: string[]): Promise<Ended> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: join(place, 'home'), EXAMPLE_FOLDER: join(place, name) }
  return run(process.execPath, ['.build/examples/run.js', name, ...args], { env }).catch(
    (error: unknown) => error as Ended,
  )
}

const linesOf = ({ stdout }: Ended): readonly string[] => stdout.trimEnd().split('\n')

test('approvals: a refund waits for a person, who answers in another process', async () => {
  expect(linesOf(await example('approvals'))).toEqual(['waiting   refund {"orderId":"8","cents":6450}'])
  expect(linesOf(await example('approvals', 'no'))).toEqual([
    expect.stringMatching(/^called {4}refund \{"ok":true,"content":"Refunded 500 cents of order 7\."/),
    expect.stringMatching(/^called {4}refund \{"ok":false,.*Refunds over 10 euros have to wait until Monday\./),
    'answer    One of the two has to wait.',
  ])
  await example('approvals')
  expect(linesOf(await example('approvals', 'yes')).at(-1)).toBe('answer    Both are refunded.')
})

test('AC-01 AC-23 editors: an agent over stdio edits a file, other output does not reach the editor, and its process ends with 0', async () => {
  const { stdout, stderr } = await example('editors')
  expect(stdout).toContain('Coder is connected.\n')
  expect(stdout).toContain('→ read greeting.txt (read)\n→ edit greeting.txt (edit)\n')
  expect(stdout).toContain('It says "Hello, world!" now.\nend_turn\nThe agent has ended (0).\n')
  expect(stderr).toContain('The agent uses the model')
})

test('mcp: a harness uses another one as an MCP server, and describes its reach', async () => {
  const { stdout } = await example('mcp')

  expect(stdout).toContain('secrets THINHARNESS_MODEL')
  // The SDK drops a progress notification that arrives together with the result.
  const last = '  {"progress":4,"message":"Asking the model"}'
  const lines = stdout.slice(stdout.indexOf('→')).trimEnd().split('\n')
  expect(lines.filter((line) => line !== last)).toEqual([
    '→ warehouse_stock {"tea":"Assam"}',
    '→ warehouse_run {"prompt":"When does Assam arrive? 0 in stock."}',
    '  {"progress":1,"message":"Asking the model"}',
    '  {"progress":2,"message":"Calling stock"}',
    '  {"progress":3,"message":"stock has ended"}',
    'The warehouse says: There is none. More arrives on Tuesday.',
  ])
})

test('EX-07 the research example writes a report from the files of its steps, whose claims subagents check over MCP; traces are in the home folder, not in the root', async () => {
  const lines = linesOf(await example('research'))
  const files = await readdir(join(place, 'research'), { recursive: true })
  const traces = await readdir(join(place, 'home', '.thinharness', 'traces'), { recursive: true })

  expect(lines.filter((line) => line === '  checker → archive_find')).toHaveLength(2)
  expect(lines.slice(-2)).toEqual(['The report is in report.md.', '9 requests, 7 by child runs'])
  expect(await readFile(join(place, 'research', 'report.md'), 'utf8')).toBe(
    [
      '# How is oolong stored best?',
      '',
      '- Oolong keeps its aroma for two years in an opaque tin at 20 degrees, and for six months in paper. Confirmed: Yearbook 1987, page 41.',
      '- A lid with a rubber seal lets in a tenth of the moisture of one without. Not in the archive.',
      '',
    ].join('\n'),
  )
  expect(traces.some((file) => file.endsWith('.jsonl'))).toBe(true)
  expect(files.filter((file) => /trace|thinharness/.test(file))).toEqual([])
})

test('an unknown example prints the known ones; a missing API key prints one line', async () => {
  const unknown = await example('nothing')
  const env = {
    PATH: process.env['PATH'] ?? '',
    EXAMPLE_FOLDER: join(place, 'no-key'),
    THINHARNESS_MODEL: 'openai:gpt-5.5',
  }
  const keyless = run(process.execPath, ['.build/examples/run.js', 'research'], { env })

  expect(unknown).toMatchObject({ code: 1, stdout: '' })
  expect(unknown.stderr).toContain(
    'with NAME one of approvals, chat, editors, fleet, invoices, mcp, records, research, server, support-desk.',
  )
  await expect(keyless).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/\n\nThere is no API key for `openai`: [^\n]*\n$/) as string,
  })
})
