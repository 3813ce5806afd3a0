import { describe, expect, test } from 'vitest'
import { callTool } from 'thinharness'
import type { TranscriptEntry } from 'thinharness'
import type { ContentSource } from '#contracts/entry.js'
import { clearResults, recall } from 'thinharness/context'
import { policy } from 'thinharness/policy'
import { ScriptedModel } from 'thinharness/testing'
import { eventsOf, harnessOf, ofKind, tool } from '../../harness/support.js'

const at = '2026-01-01T00:00:00.000Z'

function result(place: number, content: string, source?: ContentSource): TranscriptEntry {
  const stamp = { id: `e${place}`, at, role: 'tool', callId: `c${place}`, name: 'look', isError: false } as const
  return { ...stamp, content: JSON.stringify({ ok: true, content, metadata: {} }), ...(source && { source }) }
}

const web: ContentSource = { kind: 'web', name: 'https://a.test/' }
const transcript: readonly TranscriptEntry[] = [
  { id: 'e1', at, role: 'user', content: [{ type: 'text', text: 'Go.' }] },
  result(2, 'one'),
  result(3, 'two', web),
  result(4, 'x'.repeat(40_000), web),
]

describe('recall', () => {
  test.each(['run_1.e2', 'e2', 'run.with.dots.e2'])(
    'XC-13 reads an original by its handle or its place: %s',
    async (handle) => {
      expect(await callTool(recall, { handle }, { transcript })).toMatchObject({ ok: true, content: 'one' })
    },
  )

  test('XC-14 reads a range; texts of two sources are never on one page', async () => {
    const first = await callTool(recall, { handle: 'run_1.e1-e3' }, { transcript })
    expect(first.content).toBe(
      `## e1: message, ${at}\nGo.\n\n## e2: result of look, ${at}\none\n\n[Page 1 of 2. Next: page 2.]`,
    )
    const second = await callTool(recall, { handle: 'run_1.e1-e3', page: 2 }, { transcript })
    expect(second.content).toBe(`## e3: result of look, ${at}\ntwo\n\n[Page 2 of 2.]`)
    expect(second.metadata).toMatchObject({ content_source: web })
  })

  test('XC-15 reads a long original page by page', async () => {
    let text = ''
    for (const page of [1, 2, 3]) text += (await callTool(recall, { handle: 'e4', page }, { transcript })).content
    expect(text.replace(/\s*\[Page \d of 3\..*?\]/g, '')).toBe('x'.repeat(40_000))
    expect(await callTool(recall, { handle: 'e4', page: 4 }, { transcript })).toMatchObject({
      ok: false,
      content: '`e4` has 3 pages.',
    })
  })

  test.each(['e9', 'run_1.e9', 'nothing', 'e3-e2', ''])(
    'XC-16 an unknown handle is an error for the model: %s',
    async (handle) => {
      expect(await callTool(recall, { handle }, { transcript })).toMatchObject({ ok: false })
    },
  )

  test('XC-17 its result has the source of the original; policies allow it unless they deny it', async () => {
    const fetching = tool('fetching', () => ({ page: 'Call 555-0199.' }), { reach: { hosts: ['*'] } })
    const script = (): ScriptedModel =>
      new ScriptedModel().calls('fetching').calls('recall', { handle: 'run_1.e3' }).says('Done.')
    const asked = policy([{ decision: 'allow', tool: 'fetching' }], { default: 'ask' })
    const stream = harnessOf({ model: script(), tools: [fetching], use: [clearResults(), asked] }).stream('Go.', {
      runId: 'run_1',
    })
    const ended = ofKind(await eventsOf(stream), 'tool_call_completed')
    expect(ended[1]).toMatchObject({ toolName: 'recall', ok: true, source: { kind: 'web' } })
    expect(ended[1]?.output).toContain('555-0199')
    const denied = policy([{ decision: 'deny', tool: 'recall' }], { name: 'strict' })
    const other = harnessOf({ model: script(), tools: [fetching], use: [clearResults(), denied] }).stream('Go.')
    expect(ofKind(await eventsOf(other), 'tool_call_completed')[1]).toMatchObject({ ok: false })
  })

  test('XC-18 it is one tool, however many policies bring it', async () => {
    const model = new ScriptedModel().says('Done.')
    const other = { ...clearResults(), name: 'other' }
    await harnessOf({ model, use: [clearResults(), other] }).run('Go.')
    expect(model.requests[0]?.constants.tools.map(({ name }) => name)).toEqual(['recall'])
  })
})
