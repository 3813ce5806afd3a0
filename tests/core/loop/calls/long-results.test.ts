import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Harness, memoryLog, ToolResult } from 'thinharness'
import type { HarnessOptions, HarnessResult } from 'thinharness'
import type { ToolEntry } from '#contracts/entry.js'
import { ScriptedModel } from 'thinharness/testing'
import { envelopeIn } from '../../../run/children/subagents-support.js'
import { harnessOf, tool } from '../../../harness/support.js'
import { temporaryFolder } from '../../../support/folder.js'

const ROWS = Array.from({ length: 4_000 }, (_, id) => ({ id, note: `order ${id} is late` }))
const FOLDER = '.thinharness/outputs'

/** A run that calls `rows` once. */
async function runOf(returned: unknown, options: Partial<HarnessOptions> = {}) {
  const root = temporaryFolder()
  using model = new ScriptedModel().calls('rows').says('Done.')
  await using harness = new Harness({ model, root, tools: [tool('rows', () => returned)], ...options })
  const result = await harness.run('Go.')
  const names = await readdir(join(root, FOLDER)).catch(() => [])
  return { root, result, shown: shownIn(result), names }
}

function shownIn({ toolCallRecords }: HarnessResult<unknown>): ReturnType<typeof envelopeIn> {
  return envelopeIn(toolCallRecords[0])
}

describe('a result of any tool that is longer than its bound', () => {
  test('PT-13 is saved whole; the model gets its size, its place, and its start and end', async () => {
    const { root, shown, names } = await runOf(ROWS)
    expect(names).toEqual([expect.stringMatching(/^rows\.workspace-\d{13}-[0-9a-f]{8}\.txt$/)])
    const [name = ''] = names
    const path = `${FOLDER}/${name}`
    const text = JSON.stringify(ROWS)
    expect(shown.content).toContain(`The output has ${text.length} characters, more than the limit of 40000.`)
    expect(shown.content).toContain(`Call \`read\` with path \`${path}\` and offset=1`)
    expect(shown.content.length).toBeLessThanOrEqual(40_000)
    expect([shown.content.includes('order 3999 is late'), shown.content.includes('order 2000 is late')]).toEqual([
      true,
      false,
    ])
    expect(shown.metadata).toMatchObject({ truncated: true, saved_to_display: path, chars: text.length })
    expect(JSON.parse(await readFile(join(root, path), 'utf8'))).toEqual(ROWS)
  })

  test('a result on one line can be read to its end, page by page', async () => {
    const { root, names } = await runOf(ROWS)
    const [name = ''] = names
    let seen = ''
    for (let offset = 1; ;) {
      using model = new ScriptedModel().calls('read', { path: `${FOLDER}/${name}`, offset }).says('Done.')
      const { content } = shownIn(await new Harness({ model, root }).run('Read.'))
      seen += content
      const next = /more lines are available from offset=(\d+)/.exec(content)?.[1]
      if (next === undefined) break
      expect(Number(next)).toBeGreaterThan(offset)
      offset = Number(next)
    }
    expect(ROWS.filter(({ note }) => !seen.includes(note))).toEqual([])
  })

  test('is saved if it is a failure, the result of a wrap, or that of a child run', async () => {
    const failed = await runOf(
      new ToolResult({ ok: false, content: 'no '.repeat(20_000), metadata: { error_type: 'Conflict' } }),
    )
    expect(failed.shown).toMatchObject({ ok: false, metadata: { error_type: 'Conflict', truncated: true } })
    expect(failed.names).toHaveLength(1)
    const wrapped = await runOf(`secret ${'x'.repeat(50_000)}`, {
      wrapToolCall: [
        async (_, next) => {
          const outcome = await next()
          return 'content' in outcome ? { ...outcome, content: outcome.content.replace('secret', '***') } : outcome
        },
      ],
    })
    const saved = await readFile(join(wrapped.root, FOLDER, wrapped.names[0] ?? ''), 'utf8')
    expect([saved.startsWith('*** xxx'), wrapped.shown.content.includes('secret')]).toEqual([true, false])
    const child = new ScriptedModel().says('y'.repeat(60_000))
    const delegate = tool('rows', async (_, { spawn }) => (await spawn({ prompt: 'Work.', model: child }).result).text)
    const delegated = await runOf(undefined, { tools: [delegate] })
    expect(delegated.names).toEqual([expect.stringMatching(/^rows\.agent-/)])
  })

  test('keeps the source of its content when it is read back', async () => {
    const served = new ToolResult({
      content: 'z'.repeat(60_000),
      metadata: { source: 'mcp', mcp_server_id: 'tracker', mcp_tool_name: 'issues' },
    })
    const { root, names } = await runOf(served)
    using model = new ScriptedModel().calls('read', { path: `${FOLDER}/${names[0] ?? ''}` }).says('Done.')
    const { transcript } = await new Harness({ model, root }).run('Read.')
    const [entry] = transcript.filter((each): each is ToolEntry => each.role === 'tool')
    expect(entry?.source).toEqual({ kind: 'server' })
  })

  test('without a tool that can read it, is cut with a note of how much is missing', async () => {
    using model = new ScriptedModel().calls('rows').says('Done.')
    const root = temporaryFolder()
    const options = { model, root, log: memoryLog(), tools: [tool('rows', () => 'x'.repeat(90_000))] }
    const { content, metadata } = shownIn(await harnessOf(options).run('Go.'))
    expect(content).toMatch(/\[… 5\d{4} of 90000 characters left out …\]/)
    expect([content.length <= 40_000, metadata, await readdir(root)]).toEqual([
      true,
      { truncated: true, chars: 90_000 },
      [],
    ])
  })

  test('a small bound applies to the start and end, and the note is whole', async () => {
    const rows = tool('rows', () => 'x'.repeat(5_000), { maxOutputChars: 100 })
    const { shown, names } = await runOf(undefined, { tools: [rows] })
    expect(shown.content).toContain(names[0])
    expect(shown.content.match(/x{10,}/g)?.join('').length).toBe(50)
  })
})
