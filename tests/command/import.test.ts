import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fileLog, Harness } from 'thinharness'
import type { DurableEvent, Model } from 'thinharness'
import { anthropic, gemini, openai, openaiChat } from 'thinharness/providers'
import { scriptedProvider } from 'thinharness/testing'
import type { ProviderApi, ScriptedProvider } from 'thinharness/testing'
import { fold } from '#core/loop/apply.js'
import type { ImportReport } from '#command/import-command.js'
import { expectValidRequest } from '../support/request-schemas.js'
import { CLAUDE, DATA, eventsOf, linesOf, LISTED, read, textsOf } from './import-support.js'
import { project, shell } from './shell.js'

const CONVERSATIONS = LISTED.filter(({ expected }) => expected.turns + expected.texts > 0)

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

  test('a request begins with the message that it answers, not with the reply before it', () => {
    const message = (role: string, content: string, timestamp: number): object => ({ role, content, timestamp })
    const events = eventsOf(
      read(
        JSON.stringify([
          message('user', 'one', 1_767_225_600_000),
          message('assistant', 'One.', 1_767_225_601_000),
          message('user', 'two', 1_767_229_200_000),
          message('assistant', 'Two.', 1_767_229_201_000),
        ]),
      ),
    )
    const times = events.filter(({ kind }) => kind.startsWith('model_')).map(({ at }) => at.slice(11, 19))
    expect(times).toEqual(['00:00:00', '00:00:01', '01:00:00', '01:00:01'])
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
