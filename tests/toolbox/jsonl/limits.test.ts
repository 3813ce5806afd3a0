import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { jsonlSearch } from '#toolbox/jsonl/jsonl-search.js'
import { searchTool } from '#toolbox/search/search.js'
import type { JsonObject } from '#util/json.js'
import { body, lines, searched, summary } from './support.js'
import { call, folderWith } from '../support.js'

describe('malformed lines', () => {
  test('a truncated last line is a parse error, even if the filters would skip it', async () => {
    const content = `${lines({ s: 'open' }, { s: 'paid' })}{"s":"late","x":[1,2`
    for (const where of [[], [{ field: 's', op: 'eq', value: 'paid' }], [{ field: 's', op: 'exists' }]]) {
      const envelope = await searched({ 'a.jsonl': content }, { where })
      expect([envelope.ok, summary(envelope, 'json_parse_errors')]).toEqual([true, '1'])
    }
  })

  test('a last line without a line feed is a row', async () => {
    expect(body(await searched({ 'a.jsonl': '{"id":1}\n{"id":2}' }, { query: '2' }))).toBe('a.jsonl\n  2: {"id":2}')
  })

  test('blank lines count as lines and as nothing else; CRLF and a byte order mark do not matter', async () => {
    const envelope = await searched({ 'a.jsonl': '\ufeff{"id":1}\r\n\r\n \t\n{"id":2}\r\n' }, {})
    expect([body(envelope), summary(envelope, 'json_parse_errors')]).toEqual([
      'a.jsonl\n  1: {"id":1}\n  4: {"id":2}',
      undefined,
    ])
  })

  test('rows that are not objects are rows', async () => {
    const envelope = await searched(
      { 'a.jsonl': '5\n"x"\n[1,{"a":2}]\nnull\n' },
      { where: [{ field: '[1].a', op: 'eq', value: 2 }] },
    )
    expect([body(envelope), summary(envelope, 'json_parse_errors')]).toEqual(['a.jsonl\n  3: [1,{"a":2}]', undefined])
  })

  test('invalid UTF-8 is shown replaced, and hides nothing', async () => {
    const content = Buffer.concat([Buffer.from('{"s":"caf'), Buffer.from([0xe9]), Buffer.from('","id":1}\n{"id":2}\n')])
    expect(
      body(await searched({ 'a.jsonl': content }, { where: [{ field: 's', op: 'contains', value: 'caf' }] })),
    ).toBe('a.jsonl\n  1: {"s":"caf\ufffd","id":1}')
    expect(
      body(await searched({ 'a.jsonl': content }, { where: [{ field: 's', op: 'contains', value: 'f\ufffd' }] })),
    ).toContain('1: ')
  })

  test('a run of NUL bytes, as a crash leaves it, is a parse error and ends nothing', async () => {
    const envelope = await searched({ 'a.jsonl': `{"id":1}\n${'\0'.repeat(5_000)}\n{"id":2}\n` }, {})
    expect([body(envelope), summary(envelope, 'json_parse_errors')]).toEqual([
      'a.jsonl\n  1: {"id":1}\n  3: {"id":2}',
      '1',
    ])
  })

  test('a row of 50 MB is filtered, and shown cut', async () => {
    const content = `{"id":1}\n{"id":2,"text":"${'x'.repeat(50_000_000)}","n":12.5}\n{"id":3}\n`
    const where = [{ field: 'n', op: 'eq', value: 12.5, type: 'number' }]
    const envelope = await searched({ 'a.jsonl': content }, { where, fields: { id: 0, text: 3 } })
    expect(body(envelope)).toBe('a.jsonl\n  2: {"id": 2, "text": "xxx…"}')
    const whole = await searched({ 'a.jsonl': content }, { where })
    expect(whole.metadata['chars']).toBeLessThan(1_001_000)
  })

  test('a line of more than 64 MiB is skipped and reported, and the following rows keep their line numbers', async () => {
    const root = await folderWith({ 'a.jsonl': '{"id":1}\n' })
    const file = await open(join(root, 'a.jsonl'), 'r+')
    // Mostly a hole: it takes no room on the disk.
    await file.write('\n{"id":3}\n', 70_000_000)
    await file.close()
    for (const args of [{}, { query: 'id' }]) {
      const envelope = await call(jsonlSearch({ root }), args)
      expect(body(envelope)).toBe('a.jsonl\n  1: {"id":1}\n  3: {"id":3}')
      expect(summary(envelope, 'overlong_lines')).toBe('1 line(s) too long to be read')
    }
  })
})

describe('one deadline for the whole call', () => {
  let seed = 7
  const letters = Array.from({ length: 10_000 }, () =>
    (seed = (seed * 48_271) % 2_147_483_647) & 64 ? 'a' : 'b',
  ).join('')
  const rows = lines(...Array.from({ length: 200 }, () => ({ text: `${letters}!c` })))
  /** Linear, but expensive: thousands of states that are hardly ever met twice. */
  const EXPENSIVE = '(a|b)*a(a|b){900}c'

  test.each<[string, JsonObject]>([
    ['a query', { query: EXPENSIVE }],
    ['a filter', { where: [{ field: 'text', op: 'regex', value: EXPENSIVE }] }],
    ['a field search', { field_searches: [{ field: 'text', query: EXPENSIVE, regex: true }] }],
  ])('%s that takes too long ends the call in time', async (_, args) => {
    const started = performance.now()
    const envelope = await searched({ 'a.jsonl': rows }, args, { searchTimeoutMs: 200 })
    expect(envelope).toMatchObject({
      ok: false,
      content: 'jsonl_search timed out after 0.2s: narrow the path, or add a query',
      metadata: { error_type: 'Timeout', timeout: 0.2 },
    })
    expect(performance.now() - started).toBeLessThan(30_000)
  })

  test('FT-39 the `timeout` of a call is in seconds and also limits the engine', async () => {
    const root = await folderWith({ 'a.jsonl': rows })
    for (const tool of [jsonlSearch({ root }), searchTool({ root, ripgrep: false })]) {
      const envelope = await call(tool, { query: EXPENSIVE, timeout: 1 })
      expect(envelope).toMatchObject({ ok: false, metadata: { error_type: 'Timeout', timeout: 1 } })
    }
  })

  test.each<[string, JsonObject]>([
    ['a query', { query: '"(a+)+$' }],
    ['a filter', { where: [{ field: 'text', op: 'regex', value: '^(a+)+$' }] }],
    ['a field search', { field_searches: [{ field: 'text', query: '^(a+)+$', regex: true }], fields: { id: 0 } }],
  ])('%s that makes other engines hang finishes at once', async (_, args) => {
    const envelope = await searched({ 'a.jsonl': lines({ id: 1, text: `${'a'.repeat(300_000)}!` }) }, args)
    expect(envelope.ok).toBe(true)
    expect(body(envelope).includes('matches')).toBe(false)
  })

  test('a long search yields to other work, and an abort ends it', async () => {
    const root = await folderWith({ 'a.jsonl': rows })
    const controller = new AbortController()
    const search = jsonlSearch({ root, searchTimeoutMs: 60_000 }).call(
      { query: EXPENSIVE },
      { ...outside(root), signal: controller.signal },
    )
    let turns = 0
    const timer = setInterval(() => {
      if (++turns === 3) controller.abort(new Error('enough'))
    }, 1)
    await expect(search).rejects.toThrow('enough')
    clearInterval(timer)
  })
})

function outside(root: string): Parameters<ReturnType<typeof jsonlSearch>['call']>[1] {
  return {
    runId: 'run_1',
    callId: 'call_1',
    toolName: 'jsonl_search',
    root,
    depth: 0,
    idempotencyKey: 'run_1:call_1',
    metadata: {},
    deps: undefined,
    signal: new AbortController().signal,
    progress: () => undefined,
    ask: () => {
      throw new Error('There is nobody to ask.')
    },
    decide: () => Promise.reject(new Error('There is no model.')),
    spawn: () => {
      throw new Error('No run is started here.')
    },
  }
}
