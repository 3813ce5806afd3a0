import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fileLog, Harness } from 'thinharness'
import type { DurableEvent, Model } from 'thinharness'
import { anthropic, gemini, openai, openaiChat } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ProviderApi, ScriptedProvider } from 'thinharness/testing'
import { fold } from '#core/loop/apply.js'
import { closedTranscript } from '#core/state/closing.js'
import { readFile } from '#command/import/read-file.js'
import type { ReadSessionFile } from '#command/import/read-file.js'
import { FORMAT_NAMES } from '#command/import/formats.js'
import type { ImportReport } from '#command/import-command.js'
import { rounds } from '../support/length.js'
import { expectValidRequest } from '../support/request-schemas.js'
import { project, shell } from './shell.js'

const DATA = fileURLToPath(new URL('../data/sessions-of-others/', import.meta.url))

interface Listed {
  readonly file: string
  readonly format: string
  readonly expected: {
    readonly turns: number
    readonly texts: number
    readonly first: string | null
    readonly last: string | null
  }
}

const LISTED = JSON.parse(readFileSync(join(DATA, 'INDEX.json'), 'utf8')) as readonly Listed[]
const CONVERSATIONS = LISTED.filter(({ expected }) => expected.turns + expected.texts > 0)

function read(text: string, file = 'session.jsonl'): ReadSessionFile {
  const found = readFile(text, { file, at: '2026-01-02T03:04:05.000Z', root: '/work' })
  if (found === null) throw new Error('The format is not known.')
  return found
}

function linesOf(...records: readonly unknown[]): string {
  return records.map((record) => JSON.stringify(record)).join('\n')
}

/** The events of the run of a file. */
function eventsOf({ runs }: ReadSessionFile): readonly DurableEvent[] {
  return runs[0]?.events ?? []
}

function textsOf(events: readonly DurableEvent[], role: 'user' | 'assistant'): readonly string[] {
  const state = fold(events)
  return (state === undefined ? [] : closedTranscript(state)).flatMap((entry) => {
    if (entry.role !== role) return []
    const parts = entry.role === 'assistant' ? entry.parts : entry.content
    return typeof parts === 'string' ? [parts] : parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  })
}

describe('files of other agents', () => {
  const folder = project()
  const reports = new Map<string, ImportReport>()
  let provider: ScriptedProvider

  beforeAll(async () => {
    provider = await scriptedProvider()
    provider.always(() => 'It goes on.')
    const files = LISTED.map(({ file }) => join(DATA, file))
    const { code, stdout, stderr } = await shell(['import', '--json', ...files], { folder })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const line of stdout.trimEnd().split('\n')) {
      const report = JSON.parse(line) as ImportReport
      reports.set(report.file.slice(DATA.length), report)
    }
  })
  afterAll(() => provider.close())

  test.each(LISTED)('$file holds what is expected', async ({ file, format, expected }) => {
    const { first, last, ...counts } = expected
    const report = reports.get(file)
    expect(report).toMatchObject({ format, known: false, ...counts })
    const runId = report?.runId ?? null
    expect(runId === null).toBe(counts.turns + counts.texts === 0)
    if (runId === null) return
    const events = await eventsIn(folder, runId)
    const said = textsOf(events, 'user')
    const replies = textsOf(events, 'assistant')
    if (first !== null) expect(said.some((text) => text.startsWith(first))).toBe(true)
    if (last !== null) expect(replies.at(-1)?.startsWith(last)).toBe(true)
    expect(replies).toHaveLength(counts.texts)
    // Each call has its result or is said to have none.
    const completed = events.filter((event) => event.kind === 'tool_call_completed')
    const open = completed.filter(({ errorType }) => errorType === 'NoResult')
    expect(open.length).toBeLessThanOrEqual(report?.callsWithoutResult ?? 0)
  })

  const APIS: readonly (readonly [ProviderApi, (baseUrl: string) => Model])[] = [
    ['messages', (baseUrl) => anthropic('claude-sonnet-5', { apiKey: 'any', baseUrl })],
    ['responses', (baseUrl) => openai('gpt-5.5', { apiKey: 'any', baseUrl })],
    ['chat', (baseUrl) => openaiChat('gpt-5.5', { apiKey: 'any', baseUrl })],
    ['gemini', (baseUrl) => gemini('gemini-3-pro', { apiKey: 'any', baseUrl })],
  ]

  test.each(APIS)('each goes on with a model of %s, in a valid request', async (api, modelOf) => {
    const log = fileLog(join(folder, '.thinharness', 'runs'))
    const harness = new Harness({ model: modelOf(provider.url[api]), log })
    for (const { file } of CONVERSATIONS) {
      const runId = reports.get(file)?.runId ?? ''
      const { text } = await harness.run('And now?', { history: { runId } })
      expect({ file, text }).toEqual({ file, text: 'It goes on.' })
      const body = provider.requests.at(-1)?.body
      if (api === 'messages') expectValidRequest('anthropic-messages', body)
      if (api === 'responses') expectValidRequest('openai-responses', body)
      if (api === 'chat') expectValidRequest('openai-chat', body)
    }
    await harness.close()
  })

  test('one that stopped in the middle is forked there, and goes on without a prompt', async () => {
    const log = fileLog(join(folder, '.thinharness', 'runs'))
    const model = openai('gpt-5.5', { apiKey: 'any', baseUrl: provider.url.responses })
    const harness = new Harness({ model, log })
    const report = reports.get('pi/large-session.jsonl')
    const events = await eventsIn(folder, report?.runId ?? '')
    const turns = events.filter(({ kind }) => kind === 'model_message').length
    const { text } = await harness.fork(events, { afterTurn: turns - 1 })
    expect(text).toBe('It goes on.')
    await harness.close()
  })
})

async function eventsIn(folder: string, runId: string): Promise<readonly DurableEvent[]> {
  const events: DurableEvent[] = []
  for await (const event of fileLog(join(folder, '.thinharness', 'runs')).read({ kind: 'run', id: runId }))
    events.push(event)
  return events
}

const CLAUDE = [
  {
    type: 'user',
    sessionId: 's',
    cwd: '/home',
    timestamp: '2026-01-01T00:00:00Z',
    message: { role: 'user', content: 'Fix it' },
  },
  {
    ...{ type: 'assistant', sessionId: 's', timestamp: '2026-01-01T00:00:02Z' },
    message: {
      ...{ id: 'msg_1', role: 'assistant', model: 'claude-sonnet-5' },
      content: [{ type: 'tool_use', id: 'task_1', name: 'Task', input: { prompt: 'Look around' } }],
      usage: { input_tokens: 5, cache_read_input_tokens: 90, cache_creation_input_tokens: 5, output_tokens: 7 },
    },
  },
  {
    ...{ type: 'user', sessionId: 's', isSidechain: true, agentId: 'a1', timestamp: '2026-01-01T00:00:03Z' },
    message: { role: 'user', content: 'Look around' },
  },
  {
    ...{ type: 'assistant', sessionId: 's', isSidechain: true, agentId: 'a1', timestamp: '2026-01-01T00:00:04Z' },
    message: { role: 'assistant', content: [{ type: 'text', text: 'Seen.' }] },
  },
  {
    ...{ type: 'user', sessionId: 's', timestamp: '2026-01-01T00:00:09Z' },
    message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'task_1', content: 'Seen.' }] },
  },
]

describe('a session becomes a run', () => {
  test('with the times, the model and the usage of the file', () => {
    const { report, runs } = read(linesOf(...CLAUDE))
    expect(report).toMatchObject({ format: 'claude-code', turns: 2, texts: 1, calls: 1, results: 1, sidechain: 2 })
    const events = eventsOf({ report, runs })
    expect(events[0]).toMatchObject({
      ...{
        kind: 'run_started',
        at: '2026-01-01T00:00:00.000Z',
        root: '/home',
        prompt: 'Fix it',
        provider: 'anthropic',
      },
      ...{ metadata: { imported: { format: 'claude-code', session: 's' } }, labels: { imported: 'claude-code' } },
    })
    const state = fold(events)
    expect(state?.usage).toMatchObject({
      modelRequests: 1,
      inputTokens: 100,
      cacheReadTokens: 90,
      outputTokens: 7,
      costUsd: null,
    })
    expect(events.find(({ kind }) => kind === 'tool_call_completed')).toMatchObject({ durationMs: 7000, ok: true })
    // It stopped before the answer: a person can go on with it.
    expect(events.at(-1)).toMatchObject({ kind: 'run_failed', stopReason: 'cancelled' })
  })

  test('those of its subagents are runs below the calls that started them', () => {
    const { runs, report } = read(linesOf(...CLAUDE))
    expect(runs.map(({ runId }) => runId)).toEqual([report.runId, ...report.childRunIds])
    expect(runs[1]?.events[0]).toMatchObject({
      ...{ parentRunId: report.runId, parentToolCallId: 'task_1', agentName: 'a1', prompt: 'Look around' },
    })
  })

  test('costs that the file has are kept, and those that it does not have are unknown', () => {
    const message = {
      role: 'assistant',
      provider: 'openai',
      model: 'gpt-5.5',
      content: [{ type: 'text', text: 'Yes.' }],
    }
    const usage = { input: 10, output: 2, cacheRead: 4, cacheWrite: 0, cost: { total: 0.0025 } }
    const session = { type: 'session', id: 's', cwd: '/home' }
    const user = { type: 'message', message: { role: 'user', content: 'Really?' } }
    const known = fold(eventsOf(read(linesOf(session, user, { type: 'message', message: { ...message, usage } }))))
    expect(known?.usage).toMatchObject({ costUsd: 0.0025, inputTokens: 14, cacheReadTokens: 4 })
    expect(fold(eventsOf(read(linesOf(session, user, { type: 'message', message }))))?.usage.costUsd).toBeNull()
  })

  test('calls and results without ids are paired in their order, a late result is put to its call', () => {
    const call = (name: string, id?: string): object => ({ type: 'tool_use', name, input: {}, ...(id && { id }) })
    const result = (content: string, id?: string): object => ({
      type: 'tool_result',
      content,
      ...(id && { tool_use_id: id }),
    })
    const message = (role: string, ...content: readonly object[]): object => ({ role, message: { content } })
    const events = eventsOf(
      read(
        linesOf(
          message('user', { type: 'text', text: 'Go' }),
          message('assistant', call('a'), call('b'), call('c', 'c1')),
          message('user', result('third', 'c1'), result('first')),
          message('assistant', { type: 'text', text: 'Wait.' }),
          message('user', result('second')),
        ),
      ),
    )
    const results = events.flatMap((event) =>
      event.kind === 'tool_call_completed' ? [[event.toolName, event.output]] : [],
    )
    expect(results.map(([name, output = '']) => [name, (JSON.parse(output) as { content: string }).content])).toEqual([
      ['a', 'first'],
      ['b', 'second'],
      ['c', 'third'],
    ])
  })

  test('a call without a result is said to have none, and arguments that are no object are their input', () => {
    const item = { type: 'custom_tool_call', call_id: 'c', name: 'apply patch', input: '*** Begin' }
    const events = eventsOf(
      read(JSON.stringify([{ role: 'user', content: 'Go' }, item, { role: 'user', content: 'Well?' }])),
    )
    const [started, ended] = events.filter(({ kind }) => kind.startsWith('tool_call'))
    expect(started).toMatchObject({ toolName: 'apply_patch', arguments: '{"input":"*** Begin"}' })
    expect(ended).toMatchObject({ ok: false, errorType: 'NoResult' })
  })
})

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
  ])('%s', (format, text, expected) => {
    const found = read(text)
    expect(found.report).toMatchObject({ format, ...expected })
    expect(textsOf(eventsOf(found), 'user')[0]).toMatch(/^Where is/)
  })

  test('what programs put beside the words of a person is left out', () => {
    const content = [
      '<system-reminder>\nx\n</system-reminder>',
      '<command-name>/x</command-name>',
      '<user_query>\nHello\n</user_query>',
      '<b>bold</b>?',
    ]
    const message = { role: 'user', content: content.map((text) => ({ type: 'text', text })) }
    expect(textsOf(eventsOf(read(linesOf({ type: 'user', uuid: 'u', message }))), 'user')).toEqual([
      'Hello',
      '<b>bold</b>?',
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

describe('the command', () => {
  test('what it imported is listed, inspected, forked and continued, and is imported once', async () => {
    const folder = project()
    writeFileSync(
      join(folder, 'session.json'),
      JSON.stringify([
        { role: 'user', content: 'first' },
        { role: 'assistant', content: 'One.' },
        { role: 'user', content: 'second' },
        { role: 'assistant', content: 'Two.' },
      ]),
    )
    const { stdout } = await shell(['import', 'session.json'], { folder })
    const runId = stdout.trim()
    expect((await shell(['list'], { folder })).stdout).toContain(runId)
    expect((await shell(['inspect', runId], { folder })).stdout).toContain('turn 2: Two.')
    const forked = await shell(['fork', runId, '--at', '1', '--prompt', 'other'], { folder })
    expect(forked).toMatchObject({ code: 0, stdout: 'Answer to: first other\n' })
    const on = await shell(['run', 'third', '--resume-from', runId], { folder })
    expect(on).toMatchObject({ code: 0, stdout: 'Answer to: first second third\n' })
    const again = await shell(['import', 'session.json'], { folder })
    expect(again).toMatchObject({ code: 0, stdout: `${runId}\n` })
    expect(again.stderr).toContain('was imported before')
  })

  test('refuses what it does not know, and reads the other files', async () => {
    const folder = project()
    writeFileSync(join(folder, 'notes.txt'), 'Dear diary')
    writeFileSync(join(folder, 'good.jsonl'), linesOf(...CLAUDE))
    const { code, stdout, stderr } = await shell(['import', 'notes.txt', 'nowhere.jsonl', 'good.jsonl'], { folder })
    expect({ code, lines: stdout.split('\n').length }).toEqual({ code: 5, lines: 2 })
    expect(stderr).toContain('`notes.txt` is no session of a known format. Name it with `--from`: codex, copilot,')
    const wrong = await shell(['import', 'good.jsonl', '--from', 'claude'], { folder })
    expect(wrong).toMatchObject({ code: 2, stdout: '' })
    expect(wrong.stderr).toContain('There is no format `claude`.')
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
