import { describe, expect, test } from 'vitest'
import { isStale } from '#run/stall/stall.js'
import type { JudgedCall } from '#run/stall/stall.js'

const NOTHING = '{"ok":true,"content":"No matches.","metadata":{}}'
const PAGE = JSON.stringify({ ok: true, content: 'line of text '.repeat(30), metadata: {} })

function call(args: object | string, output = 'same', { name = 'a', ok = true } = {}): JudgedCall {
  return { name, arguments: typeof args === 'string' ? args : JSON.stringify(args), output, ok }
}

describe('a call without progress', () => {
  test.each<[string, JudgedCall, JudgedCall, { readOnly: boolean; stale: boolean }]>([
    ['the same call, the same result', call({ n: 1 }), call({ n: 1 }), { readOnly: false, stale: true }],
    ['members in another order', call('{"a":1,"b":2}'), call('{ "b": 2, "a": 1 }'), { readOnly: false, stale: true }],
    ['arguments that are no JSON', call('{"a":'), call('{"a":'), { readOnly: false, stale: true }],
    ['another result', call({ n: 1 }, 'one'), call({ n: 1 }, 'two'), { readOnly: true, stale: false }],
    ['another tool', call({}, 'same', { name: 'b' }), call({}), { readOnly: true, stale: false }],
    ['it failed before and works now', call({}, 'same', { ok: false }), call({}), { readOnly: true, stale: false }],
    [
      'almost the same search, with nothing found again',
      call({ query: 'deadline' }, NOTHING),
      call({ query: '"Deadline".*' }, NOTHING),
      { readOnly: true, stale: true },
    ],
    [
      'another search, with nothing found again',
      call({ query: 'deadline' }, NOTHING),
      call({ query: 'invoice' }, NOTHING),
      { readOnly: true, stale: false },
    ],
    [
      'the same answer about another number',
      call({ id: 1 }, 'yes'),
      call({ id: 2 }, 'yes'),
      { readOnly: true, stale: false },
    ],
    ['the same long page again', call({ page: 1 }, PAGE), call({ page: 2 }, PAGE), { readOnly: true, stale: true }],
    [
      'a tool that may write, for almost the same',
      call({ to: 'ada@x' }),
      call({ to: 'Ada@X' }),
      { readOnly: false, stale: false },
    ],
    [
      'a failure for almost the same',
      call({ path: 'src/a.ts', old: 'foo(1)' }, 'not found: foo(1)', { ok: false }),
      call({ path: 'src/a.ts', old: 'foo( 1 )' }, 'not found: foo( 1 )', { ok: false }),
      { readOnly: false, stale: true },
    ],
    [
      'a failure for something else',
      call({ path: 'src/a.ts' }, 'not found', { ok: false }),
      call({ path: 'docs/readme.md' }, 'not found', { ok: false }),
      { readOnly: false, stale: false },
    ],
  ])('%s', (_name, before, now, { readOnly, stale }) => {
    expect(isStale(now, readOnly, [call({ other: true }, 'other'), before])).toBe(stale)
    expect(isStale(now, readOnly, [])).toBe(false)
  })
})
