import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { LogStore, ToolSpec } from 'thinharness'
import type { Memory } from 'thinharness/memory'
import { ScriptedModel } from 'thinharness/testing'
import { fileTools } from 'thinharness/tools'
import { eventsOf, harnessOf, ofKind } from '../../harness/support.js'
import { temporaryFolder } from '../../support/folder.js'
import { docxOf } from '../../toolbox/docx.js'
import { pdfOf } from '../../toolbox/pdf.js'
import { callMemory, memoryOf, recalled } from './support.js'

const ada = { resourceId: 'ada' }

/** Remembers files of a workspace in one run, and gives the results. */
async function rememberIn(
  {
    log,
    memory,
    ...options
  }: { readonly root: string; readonly log: LogStore; readonly memory: Memory; readonly tools?: readonly ToolSpec[] },
  ...paths: readonly string[]
): Promise<readonly { readonly ok: boolean; readonly content: string }[]> {
  const model = new ScriptedModel()
  for (const path of paths) model.calls('remember', { path })
  const stream = harnessOf({ model: model.says('Done.'), log, ...options, use: [memory] }).stream('Go.', {
    metadata: ada,
  })
  return ofKind(await eventsOf(stream), 'tool_call_completed').map(({ ok, output }) => {
    return { ok, content: (JSON.parse(output) as { content: string }).content }
  })
}

test('XM-38 with `documents`, `remember` loads text, HTML, PDF and DOCX files of the workspace, with their source', async () => {
  const root = temporaryFolder()
  const filler = '<p>Nothing of interest happens here.</p>'.repeat(200)
  writeFileSync(join(root, 'notes.txt'), 'The aardvark sleeps.')
  writeFileSync(
    join(root, 'page.html'),
    `<html><body><h1>Zoo</h1>${filler}<p>The <b>buffalo</b> eats.</p></body></html>`,
  )
  writeFileSync(join(root, 'list.pdf'), pdfOf(['The first page.', 'The capybara swims.']))
  writeFileSync(join(root, 'letter.docx'), docxOf('<w:p><w:r><w:t>The dolphin leaps.</w:t></w:r></w:p>'))
  const log = memoryLog()
  const memory = memoryOf({ log, documents: true })
  const results = await rememberIn({ root, log, memory }, 'notes.txt', 'page.html', 'list.pdf', 'letter.docx')
  expect(results.map(({ ok }) => ok)).toEqual([true, true, true, true])
  for (const [word, text] of [
    ['aardvark', 'The aardvark sleeps.'],
    ['buffalo', 'The **buffalo** eats.'],
    ['capybara', 'The capybara swims.'],
    ['dolphin', 'The dolphin leaps.'],
  ] as const) {
    const [found] = await callMemory({ log, memory, metadata: ada }, ['recall_memory', { query: word, limit: 1 }])
    expect(found?.content).toContain(text)
    expect(JSON.stringify(found?.source)).toContain('"workspace"')
  }
  expect(await recalled({ log, memory, metadata: { resourceId: 'bob' } }, 'aardvark')).toMatch(/^Nothing/)
}, 60_000)

test('XM-39 a file that cannot be remembered is explained, and nothing outside the workspace is read', async () => {
  const [root, outside] = [temporaryFolder(), temporaryFolder()]
  writeFileSync(join(outside, 'secret.txt'), 'The secret is out.')
  writeFileSync(join(root, 'picture.bin'), Buffer.from([1, 0, 2, 0, 3]))
  writeFileSync(join(root, 'empty.txt'), '  ')
  const log = memoryLog()
  const memory = memoryOf({ log, documents: true })
  const paths = ['missing.txt', 'picture.bin', 'empty.txt', join(outside, 'secret.txt')]
  const results = await rememberIn({ root, log, memory }, ...paths)
  expect(results.map(({ ok }) => ok)).toEqual([false, false, false, false])
  expect(results.map(({ content }) => content).join('\n')).toMatch(/not found.*\n.*not text.*\n.*no text/)
  expect(await recalled({ log, memory, metadata: ada }, 'secret')).not.toContain('is out')
  const [both] = await callMemory({ log, memory }, ['remember', { text: 'A fact.', path: 'a.txt' }])
  expect(both).toMatchObject({ ok: false, content: 'Give either `text` or `path`.' })
  const [none] = await callMemory({ log, memory: memoryOf({ log }) }, ['remember', { path: 'notes.txt' }])
  expect(none?.ok).toBe(false)
}, 60_000)

test('`remember` accepts no file that the `read` of the run may not read', async () => {
  const root = temporaryFolder()
  for (const name of ['.env', 'secret.txt', 'plain.txt', 'outside.txt', '.netrc.txt'])
    writeFileSync(join(root, name), `The ${name} is out.`)
  const log = memoryLog()
  const memory = memoryOf({ log, documents: true })
  const paths = ['.env', 'secret.txt', 'outside.txt', 'plain.txt']
  const okOf = async (tools?: readonly ToolSpec[]): Promise<readonly boolean[]> =>
    (await rememberIn({ root, log, memory, ...(tools && { tools }) }, ...paths)).map(({ ok }) => ok)
  expect(await okOf()).toEqual([false, true, true, true])
  const rules = { readPaths: ['secret.txt', 'plain.txt', '.env'], protect: { read: ['secret.*'] } }
  expect(await okOf(fileTools(rules))).toEqual([true, false, false, true])
  expect(await okOf(fileTools(rules).map((tool) => ({ ...tool })))).toEqual([true, false, false, true])
})
