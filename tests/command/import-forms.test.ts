import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fold } from '#core/loop/apply.js'
import { FORMAT_NAMES } from '#command/import/formats.js'
import { readFile } from '#command/import/read-file.js'
import { rounds } from '../support/length.js'
import { CLAUDE, DATA, eventsOf, linesOf, LISTED, read, textsOf } from './import-support.js'
import { project, shell } from './shell.js'

describe('other forms', () => {
  const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const said = { role: 'user', content: 'Where is Oslo?' }
  const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'find', input: { city: 'Oslo' } }
  const weather = { id: 'c1', type: 'function', function: { name: 'find', arguments: '{"city":"Oslo"}' } }

  test.each<[string, string, object]>([
    [
      'ai-sdk',
      JSON.stringify([
        said,
        { role: 'assistant', content: [call] },
        {
          role: 'tool',
          content: [
            { type: 'tool-result', toolCallId: 'c1', toolName: 'find', output: { type: 'text', value: 'North' } },
          ],
        },
        { role: 'assistant', content: 'In the north.' },
      ]),
      { turns: 1, texts: 1, calls: 1, results: 1 },
    ],
    [
      'ai-sdk-ui',
      JSON.stringify([
        { id: '1', role: 'user', parts: [{ type: 'text', text: 'Where is Oslo?' }] },
        {
          ...{ id: '2', role: 'assistant' },
          parts: [
            { type: 'step-start' },
            { type: 'reasoning', text: 'Hm.' },
            {
              type: 'tool-find',
              toolCallId: 'c1',
              state: 'output-available',
              input: { city: 'Oslo' },
              output: { at: 'north' },
            },
            {
              type: 'dynamic-tool',
              toolName: 'other',
              toolCallId: 'c2',
              state: 'output-error',
              input: {},
              errorText: 'No.',
            },
            { type: 'tool-find', toolCallId: 'c3', state: 'input-available', input: { city: 'Bern' } },
            { type: 'text', text: 'In the north.' },
          ],
        },
      ]),
      { turns: 1, texts: 1, calls: 3, results: 2, reasoning: 1, callsWithoutResult: 1 },
    ],
    [
      'openai-chat',
      JSON.stringify({
        model: 'gpt-5.5',
        messages: [
          { role: 'system', content: 'Be short.' },
          said,
          { role: 'assistant', content: null, tool_calls: [weather] },
          { role: 'tool', tool_call_id: 'c1', content: 'North' },
        ],
      }),
      { turns: 1, texts: 0, calls: 1, results: 1 },
    ],
    [
      'openai-responses',
      JSON.stringify({
        ...{ object: 'response', model: 'gpt-5.5', input: 'Where is Oslo?' },
        output: [
          { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { query: 'Oslo' } },
          { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'In the north.' }] },
        ],
      }),
      { turns: 1, texts: 1, calls: 1, results: 0 },
    ],
    [
      'gemini',
      JSON.stringify({
        ...{ sessionId: 's', projectHash: 'p', startTime: '2026-01-01T00:00:00Z' },
        messages: [
          { id: '1', timestamp: '2026-01-01T00:00:01Z', type: 'user', content: 'Where is Oslo?' },
          {
            ...{ id: '2', timestamp: '2026-01-01T00:00:02Z', type: 'gemini', model: 'gemini-3-pro', content: 'North.' },
            thoughts: [{ subject: 'Cities', description: 'I look.' }],
            toolCalls: [
              {
                id: 't',
                name: 'find',
                args: { city: 'Oslo' },
                status: 'error',
                result: [{ functionResponse: { response: { error: 'No.' } } }],
              },
            ],
          },
          { id: '3', type: 'info', content: 'Cancelled.' },
        ],
      }),
      { turns: 1, texts: 1, calls: 1, results: 1, reasoning: 1, unknown: {} },
    ],
    [
      'gemini',
      JSON.stringify([
        { role: 'user', parts: [{ text: 'Where is Oslo?' }] },
        { role: 'model', parts: [{ functionCall: { name: 'find', args: { city: 'Oslo' } } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'find', response: { output: 'North' } } }] },
      ]),
      { turns: 1, texts: 0, calls: 1, results: 1 },
    ],
    [
      'opencode',
      JSON.stringify({
        info: { id: 's', directory: '/home', version: '1.4.0' },
        messages: [
          { info: { id: 'm1', role: 'user', time: { created: 1 } }, parts: [{ type: 'text', text: 'Where is Oslo?' }] },
          {
            info: {
              id: 'm2',
              role: 'assistant',
              providerID: 'openai',
              modelID: 'gpt-5.5',
              cost: 0.01,
              tokens: { input: 5, output: 2, cache: { read: 3, write: 0 } },
            },
            parts: [
              { type: 'tool', callID: 'c', tool: 'find', state: { status: 'running', input: {} } },
              { type: 'text', text: 'North.' },
            ],
          },
        ],
      }),
      { turns: 1, texts: 1, calls: 1, results: 0 },
    ],
    [
      'codex',
      linesOf(
        { timestamp: '2026-01-01T00:00:00Z', type: 'session_meta', payload: { id: 's', cwd: '/home' } },
        {
          type: 'response_item',
          payload: {
            type: 'message',
            role: 'user',
            content: [
              {
                type: 'input_text',
                text: '# AGENTS.md instructions for /home\n\n<INSTRUCTIONS>Be short.</INSTRUCTIONS>',
              },
            ],
          },
        },
        {
          type: 'response_item',
          payload: {
            type: 'message',
            role: 'user',
            content: [
              { type: 'input_text', text: 'Where is <b>Oslo</b>?' },
              { type: 'input_image', image_url: `data:image/png;base64,${PNG}` },
            ],
          },
        },
        {
          type: 'response_item',
          payload: {
            type: 'local_shell_call',
            call_id: 'c',
            status: 'completed',
            action: { type: 'exec', command: ['ls'] },
          },
        },
        {
          type: 'response_item',
          payload: { type: 'function_call_output', call_id: 'c', output: { content: 'none', success: false } },
        },
        { type: 'response_item', payload: { type: 'something_new' } },
      ),
      { turns: 1, calls: 1, results: 1, unknown: { something_new: 1 } },
    ],
    [
      'droid',
      linesOf(
        { type: 'system', subtype: 'init', session_id: 's', cwd: '/home', model: 'claude-sonnet-5' },
        {
          type: 'message',
          role: 'user',
          id: 'm1',
          text: 'Where is Oslo?',
          timestamp: 1_767_225_600_000,
          session_id: 's',
        },
        { type: 'tool_call', id: 'c1', toolName: 'find', parameters: { city: 'Oslo' }, session_id: 's' },
        { type: 'tool_result', id: 'c1', isError: false, value: 'North', session_id: 's' },
        { type: 'message', role: 'assistant', id: 'm2', text: 'In the north.', session_id: 's' },
        { type: 'completion', finalText: 'In the north.', session_id: 's' },
      ),
      { turns: 1, texts: 1, calls: 1, results: 1, unknown: {} },
    ],
    [
      'hermes',
      linesOf({ role: 'session_meta', model: 'gpt-5.5' }, said, {
        role: 'assistant',
        reasoning: 'Hm.',
        content: 'In the north.',
      }),
      { turns: 1, texts: 1, reasoning: 1, unknown: {} },
    ],
    [
      'tanstack-ui',
      JSON.stringify([
        { id: '1', role: 'user', parts: [{ type: 'text', content: 'Where is Oslo?' }] },
        {
          ...{ id: '2', role: 'assistant' },
          parts: [
            { type: 'thinking', content: 'Hm.' },
            { type: 'tool-call', id: 'c', name: 'find', arguments: '{}', output: 'North' },
          ],
        },
      ]),
      { turns: 1, texts: 0, calls: 1, results: 1, reasoning: 1 },
    ],
  ])('%s', (format, text, expected) => {
    const found = read(text)
    expect(found.report).toMatchObject({ format, ...expected })
    expect(textsOf(eventsOf(found), 'user')[0]).toMatch(/^Where is/)
  })

  test('what programs put beside the words of a person is left out', () => {
    const content = [
      '<system-reminder>\nx\n</system-reminder>\n\nThe question',
      '<command-name>/x</command-name><command-args>y</command-args>',
      '<timestamp-now>1</timestamp-now>\n<user_query>\nHello\n</user_query>',
      '<environment_context>\n  <cwd>/ho',
      '<b>bold</b>?',
      '<my-tag> is not found',
    ]
    const message = { role: 'user', content: content.map((text) => ({ type: 'text', text })) }
    expect(textsOf(eventsOf(read(linesOf({ type: 'user', uuid: 'u', message }))), 'user')).toEqual([
      'The question',
      'Hello',
      '<b>bold</b>?',
      '<my-tag> is not found',
    ])
  })

  test('names and lines of others are shown, never obeyed', async () => {
    const folder = project()
    writeFileSync(join(folder, 'wild.jsonl'), linesOf(...CLAUDE, { type: '\u001B[31mred' }, { type: '\u001B[31mred' }))
    const { code, stdout, stderr } = await shell(['import', 'wild.jsonl'], { folder })
    expect(code).toBe(0)
    expect(stdout).toMatch(/^run_[0-9a-f]{32}\n$/)
    expect(stderr).toContain('imported 2 turns, 1 call (claude-code) as run run_')
    expect(stderr).toContain('2 records of unknown kinds left out')
    expect(stderr).not.toContain('\u001B')
  })
})

describe('damaged files', () => {
  const files = LISTED.map(({ file }) => ({ file, text: readFileSync(join(DATA, file), 'utf8') }))
  const damaged = fc.tuple(fc.constantFrom(...files), fc.double({ min: 0, max: 1, noNaN: true }))

  test('a file that is cut off anywhere is read to there, and its log is valid', () => {
    fc.assert(
      fc.property(damaged, ([{ file, text }, share]) => {
        const cut = text.slice(0, Math.floor(text.length * share))
        const found = readFile(cut, { file, at: '2026-01-02T03:04:05.000Z', root: '/work' })
        for (const { events } of found?.runs ?? []) expect(fold(events)?.phase.at).toBe('ended')
        const whole = read(text, file).report
        expect(found?.report.calls ?? 0).toBeLessThanOrEqual(whole.calls)
      }),
      rounds(150),
    )
  })

  test('a line that is broken is passed over, and the others are read', () => {
    const lines = files.filter(({ file }) => file.endsWith('.jsonl'))
    const one = fc.tuple(fc.constantFrom(...lines), fc.nat(), fc.string())
    fc.assert(
      fc.property(one, ([{ file, text }, place, noise]) => {
        const all = text.trimEnd().split('\n')
        const index = place % all.length
        const before = read(text, file).report
        const found = readFile(all.toSpliced(index, 1, `{"${noise.replaceAll(/[\r\n]/g, ' ')}`).join('\n'), {
          ...{ file, at: '2026-01-02T03:04:05.000Z', root: '/work' },
        })
        if (found === null) {
          expect(all.length).toBeLessThan(4)
          return
        }
        expect(found.report.broken).toBe(before.broken + (isRecord(all[index]) ? 1 : 0))
        expect(found.report.calls).toBeGreaterThanOrEqual(before.calls - 4)
      }),
      rounds(150),
    )
  })

  test('any JSON in any place is no failure', () => {
    const key = fc.constantFrom(
      'type',
      'role',
      'message',
      'content',
      'parts',
      'payload',
      'data',
      'input',
      'messages',
      'toolCalls',
      'id',
      'usage',
      ...['toolRequests', 'tool_calls', 'thoughts', 'state', 'info', 'time', 'result', 'response', 'output', 'kind'],
      ...[
        'functionCall',
        'functionResponse',
        'function',
        'source',
        'history',
        'context',
        'session/a',
        'message/a',
        'part/a',
      ],
    )
    const leaf = fc.oneof(
      fc.constantFrom('user', 'assistant', 'message', 'text', 'tool_use', 'tool_result', 'response_item', 'gemini'),
      fc.jsonValue({ maxDepth: 1 }),
    )
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.dictionary(key, tie('tree'), { maxKeys: 5 }),
        fc.array(tie('tree'), { maxLength: 3 }),
      ),
    }))
    const names = fc.constantFrom(...FORMAT_NAMES)
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(key, tree, { maxKeys: 6 }), { minLength: 1, maxLength: 6 }),
        names,
        (records, from) => {
          for (const text of [linesOf(...records), JSON.stringify(records), JSON.stringify(records[0])]) {
            const found = readFile(text, { file: 'x', from, at: '2026-01-02T03:04:05.000Z', root: '/work' })
            for (const { events } of found?.runs ?? []) expect(fold(events)?.phase.at).toBe('ended')
          }
        },
      ),
      rounds(300),
    )
  })
})

function isRecord(line = ''): boolean {
  return line.trim().startsWith('{')
}
