import { defineTool, Harness } from 'thinharness'
import type { RunEvent } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { expect, test } from 'vitest'
import { callText, durationText } from '../examples/quickstart/call-text.js'
import { columnsOf, cut, wrapped } from '../examples/quickstart/columns.js'
import { Screen } from '../examples/quickstart/screen.js'

const TEXT =
  'Der Sturm traf Borealis am 12. Oktober. 嵐は三日間続きました。 🚚 The policy in force applies to 58 orders.'

/** A terminal of a given width, or a pipe. */
function output(columns?: number) {
  const out = {
    isTTY: columns !== undefined,
    ...(columns !== undefined && { columns }),
    text: '',
    write: (text: string) => void (out.text += text),
  }
  return out
}

async function events(): Promise<RunEvent[]> {
  const search = defineTool({
    name: 'search',
    description: 'Searches.',
    parameters: { type: 'object' },
    handler: ({ path }) => {
      if (path === 'missing')
        throw new Error('There is no folder of this name, neither here nor in any of the folders above.')
      return 'Found.'
    },
  })
  const query = 'storm|refund|delivered more than three days late|嵐'
  const model = new ScriptedModel()
    .callsAll([
      { name: 'search', arguments: { query, path: 'notes' } },
      { name: 'search', arguments: { query: 'x', path: 'missing' } },
    ])
    .says(TEXT)
  await using harness = new Harness({ model, builtinTools: [], tools: [search] })
  const seen: RunEvent[] = []
  for await (const event of harness.stream('Which orders of the storm in October are to be refunded, and how much?', {
    deltas: true,
  }))
    seen.push(event)
  return seen
}

/** The lines as a terminal shows them: a moved cursor erases the end of its line. */
function shownLines(text: string): string[] {
  const written = text.replace(/\r\u001b\[2K/g, '').split('\n')
  return written.map((line) => {
    const [, kept = line, back] = /^(.*)\u001b\[(\d+)D\u001b\[K$/.exec(line) ?? []
    if (back === undefined) return line
    let end = kept
    while (columnsOf(kept) - columnsOf(end) < Number(back)) end = end.slice(0, -1)
    return end
  })
}

test.each([40, 80, 120])(
  'in a terminal of %i columns no line is longer, with wide characters, styles and indents',
  async (columns) => {
    const out = output(columns)
    const screen = new Screen(out, {})
    screen.note(
      'Model: the scripted provider, because no API key is set. Its replies are scripted; HTTP, adapter, tools and files are real.',
    )
    const seen = await events()
    for (const event of seen) screen.show(event)
    // As of a subagent.
    for (const event of seen) if (event.kind.startsWith('tool_call')) screen.show({ ...event, parentRunId: 'run_1' })
    screen.table([
      ['Report', 'examples/quickstart/workspace/report.md'],
      ['Log', `examples/quickstart/workspace/.thinharness/runs/run_${'0'.repeat(32)}.jsonl`],
    ])
    const lines = shownLines(out.text)
    expect(Math.max(...lines.map(columnsOf))).toBeLessThanOrEqual(columns)
    expect(out.text).toContain('\u001b[36m→ search\u001b[39m')
    expect(lines.some((line) => line.startsWith('  \u001b[36m→ search'))).toBe(true)
    const plain = lines.map((line) => line.replace(/\u001b\[\d+m/g, '')).join('\n')
    expect(plain).toContain('→ search "x" in missing')
    // Every word of the answer is there once.
    expect(plain.replace(/\s/g, '')).toContain(TEXT.replace(/\s/g, ''))
  },
)

test('a pipe gets whole lines without escapes, and `NO_COLOR` removes the color of a terminal', async () => {
  const pipe = output()
  const seen = await events()
  const screen = new Screen(pipe, {})
  for (const event of seen) screen.show(event)
  expect(pipe.text).toContain('→ search "storm|refund|delivered more than three days late|嵐" in notes\n')
  expect(pipe.text).toContain(`${TEXT}\n`)
  expect(pipe.text).not.toContain('\u001b')
  const terminal = output(80)
  const plain = new Screen(terminal, { NO_COLOR: '1' })
  for (const event of seen) plain.show(event)
  expect(terminal.text).not.toMatch(/\u001b\[\d+m/)
})

test.each([
  ['search', { query: 'storm|refund', path: 'notes' }, 'search "storm|refund" in notes'],
  ['list', { path: '.' }, 'list'],
  ['write', { path: 'report.md', content: 'x' }, 'write report.md'],
  ['subagent', { task: 'Find\nthe days.', agent: 'reader' }, 'subagent reader "Find the days."'],
  [
    'jsonl_search',
    { path: 'orders.jsonl', where: [{ field: 'days_late', op: 'gt', value: '3', type: 'number' }] },
    'jsonl_search days_late gt 3 in orders.jsonl',
  ],
  ['fetch_url', { url: 'https://a.test/' }, 'fetch_url https://a.test/'],
  ['bash', { command: 'echo \u001b[31mred\u001b[39m' }, 'bash "echo red"'],
])('a call of %s is shown in words: %j', (name, args, expected) => {
  expect(callText(name, JSON.stringify(args))).toBe(expected)
})

test('columns are counted as a terminal shows them', () => {
  expect(columnsOf('嵐 a\u0301 🚚 \u001b[31mred\u001b[39m')).toBe(2 + 1 + 1 + 1 + 2 + 1 + 3)
  expect(cut('\u001b[31mabcdef\u001b[39m', 4)).toBe('\u001b[31mabc…\u001b[39m')
  expect(cut('嵐嵐嵐', 4)).toBe('嵐…')
  expect(wrapped('one two three', 8, '  ')).toBe('one two\n  three')
  expect(callText('odd', '{"query":')).toBe('odd')
  expect([8.4, 1400, 125_000].map(durationText)).toEqual(['8 ms', '1.4 s', '2 min 5 s'])
})
