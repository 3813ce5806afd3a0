import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { callTool, defineTool, Harness, memoryLog } from 'thinharness'
import type { ToolContext } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel, scriptedProvider } from 'thinharness/testing'
import type { ScriptedProvider } from 'thinharness/testing'
import { expect, test, vi } from 'vitest'
import { NO_TOKENS } from '#contracts/entry.js'
import { expireApprovals } from '../../docs/snippets/conversations/expire.js'
import { continueAll } from '../../docs/snippets/conversations/startup.js'
import { chooseSlot } from '../../docs/snippets/tools/question.js'
import { fileTicket } from '../../docs/snippets/tools/decide.js'
import { now } from '../../docs/snippets/tools/minimal.js'
import { chart } from '../../docs/snippets/tools/result.js'
import { inTemporaryFolder } from '../support/folder.js'

const SNIPPETS = fileURLToPath(new URL('../../docs/snippets/', import.meta.url))

inTemporaryFolder()

/** How a snippet is run: unchanged, in a folder with these files, with a scripted provider. */
interface Program {
  readonly files?: Readonly<Record<string, string>>
  readonly script: (provider: ScriptedProvider) => void
  readonly prints: string
}

const PROGRAMS: Readonly<Record<string, Program>> = {
  'conversations/chat.ts': {
    files: { 'notes/a.md': 'Rent is due on 2026-12-01.\n' },
    script: (provider) => provider.says('On December 1.').says('The notes do not say.'),
    prints: 'started On December 1.\nqueued The notes do not say.\n',
  },
  'replay/replay.ts': {
    script: (provider) => provider.calls('lookup_order', { id: '1042' }).says('It is in transit.'),
    prints: 'The results are equal.\n',
  },
  'replay/fork.ts': {
    script: (provider) =>
      provider
        .calls('lookup_order', { id: '1042' })
        .says('It is in transit.')
        .calls('lookup_order', { id: '1042' })
        .says('Lost.'),
    prints: 'Lost.\n',
  },
  'replay/recorded.ts': {
    script: (provider) =>
      provider
        .calls('lookup_order', { id: '1042' })
        .says('It is in transit.')
        .calls('lookup_order', { id: '1042' })
        .says('In transit.'),
    prints: 'In transit. (0 calls were not in the recording)\n',
  },
  'programs/hundred.ts': {
    script: (provider) => provider.calls('check_all', { last: 100 }).says('These are open.'),
    prints: `{"ok":true,"content":"{\\"open\\":33,\\"refused\\":[13]}","metadata":{}}
2 requests, 101 calls, 101 steps
`,
  },
  'steering/steer.ts': {
    files: { 'notes/a.md': 'We ship in May.\n' },
    script: (provider) => provider.calls('list', {}).says('May is the deadline.'),
    prints: 'May is the deadline.\n0 messages arrived too late.\n',
  },
  'events/streaming.ts': {
    files: { 'notes/meeting.md': 'We ship in May.\n' },
    script: (provider) =>
      provider
        .calls('read', { path: 'meeting.md' }, { usage: { inputTokens: 100, outputTokens: 10 } })
        .calls('read', { path: 'missing.md' }, { usage: { inputTokens: 200, outputTokens: 10 } })
        .says('To ship in May.', { usage: { inputTokens: 300, outputTokens: 5 } }),
    prints: `→ read {"path":"meeting.md"}
← done
→ read {"path":"missing.md"}
← file not found: missing.md
To ship in May.
600 tokens in, 25 out
`,
  },
  'dependencies/run.ts': {
    script: (provider) => provider.calls('order_status', { id: '1042' }).says('It is in transit.'),
    prints: 'It is in transit.\n',
  },
  'dependencies/try.ts': { script: () => undefined, prints: 'bob has no order 1042.\n' },
  'skills/skills.ts': {
    files: {
      'project/skills/release/SKILL.md':
        '---\nname: release\ndescription: How to release a version.\n---\n\n1. Run `scripts/check.sh`.\n',
    },
    script: (provider) => provider.calls('skill_read', { skill_name: 'release' }).says('Version 2.1 is out.'),
    prints: 'Version 2.1 is out.\n',
  },
  'fetching/fetch.ts': {
    script: (provider) =>
      provider.calls('fetch_url', { url: 'https://example.com/' }).says('Only nodejs.org is allowed.'),
    prints: 'Only nodejs.org is allowed.\n',
  },
  'tools/call.ts': {
    script: () => undefined,
    prints: `true {"shards":2,"job":"outside_a_run:call_1"}
false Invalid arguments: \`reindex\` was not run.
- shards: Invalid input: expected number, received string ("many")
Received: shards = "many"
Correct this and call \`reindex\` again with one JSON object of all its fields: shards.
`,
  },
}

test.each(Object.entries(PROGRAMS))('%s prints the documented output', async (name, { files = {}, script, prints }) => {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
  }
  await using provider = await scriptedProvider()
  script(provider)
  const printed = listen()
  useProvider(provider)

  await import(join(SNIPPETS, name))

  expect(printed()).toBe(prints)
})

test('docs/debugging.md: debug.ts describes the harness and prints the cost; the log and the trace are where the page says', async () => {
  await mkdir('notes')
  await using provider = await scriptedProvider()
  provider.calls('list', {}).says('Rent.')
  const printed = listen()
  useProvider(provider)

  await import('../../docs/snippets/debugging/debug.js')

  const [, runId, cost] = /^(run_\w+): 2 requests, (.*) \$\nRent\.$/m.exec(printed()) ?? []
  expect(printed()).toContain('tool      read: package')
  expect(Number(cost)).toBeGreaterThanOrEqual(0)
  const lines = (await readFile(`runs/${String(runId)}.jsonl`, 'utf8')).trim().split('\n')
  const events = lines.map((line) => JSON.parse(line) as { kind: string; output?: string; entry?: { usage: object } })
  expect(events.find(({ kind }) => kind === 'tool_call_completed')?.output).toContain('"ok":true')
  expect(events.find(({ kind }) => kind === 'model_message')?.entry?.usage).toHaveProperty('inputTokens')
  expect(readdirSync('traces', { recursive: true }).filter((name) => String(name).endsWith('.jsonl'))).toHaveLength(1)
})

test('docs/conversations.md: what was interrupted continues, with its queue; an approval that waits is refused after a day', async () => {
  const log = memoryLog()
  const model = new ScriptedModel().calls('pay').says('Refused.')
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: {},
    requiresApproval: true,
    handler: () => 'Paid.',
  })
  await using harness = new Harness({ model, tools: [pay] })
  await using sessions = new Sessions({ log, harness })
  const chat = await sessions.create({ threadId: 'one' })
  await chat.send('Pay.')
  await chat.whenIdle()
  vi.useFakeTimers({ now: Date.now() + 25 * 3600_000, toFake: ['Date'] })
  try {
    await continueAll(sessions)
    expect(await expireApprovals(sessions)).toMatchObject([{ item: { threadId: 'one' }, status: 'accepted' }])
    await chat.whenIdle()
  } finally {
    vi.useRealTimers()
  }
  expect(chat.phase).toBe('idle')
})

test('every snippet that is a program is run', () => {
  const programs = [
    'conversations',
    'dependencies',
    'events',
    'fetching',
    'programs',
    'replay',
    'skills',
    'steering',
    'tools',
  ].flatMap((page) => readdirSync(join(SNIPPETS, page)).map((file) => `${page}/${file}`))
  const tools = [
    'conversations/expire.ts',
    'conversations/startup.ts',
    'dependencies/shop.ts',
    'tools/lookup-order.ts',
    'replay/fixture.ts',
    'programs/program.ts',
    'programs/call-tool.ts',
    'tools/minimal.ts',
    'tools/result.ts',
    'tools/bounds.ts',
    'tools/protect.ts',
    'tools/question.ts',
    'tools/decide.ts',
    'tools/hundreds.ts',
  ]
  expect(programs.sort()).toEqual([...Object.keys(PROGRAMS), ...tools].sort())
})

test('arguments are validated by a plain JSON Schema', async () => {
  const result = await callTool(now, { zone: 'Europe/Berlin' })
  expect(result.ok).toBe(true)
  expect(result.content).toMatch(/\d?\d:\d\d:\d\d (CET|CEST|GMT\+\d)/)
  expect(await callTool(now, {})).toMatchObject({ ok: false, metadata: { retry: true } })
})

test.each([
  ['2026-Q3', { ok: true, content: 'The chart for 2026-Q3.', metadata: { byte_count: 3 } }],
  ['2026-Q4', { ok: false, content: 'There is no chart for 2026-Q4.', metadata: { error_type: 'NotFound' } }],
  ['Q3', { ok: false, content: '`Q3` is not a quarter. Write it as 2026-Q3.', metadata: { retry: true } }],
])('a handler that returns a ToolResult: %s', async (quarter, expected) => {
  await writeFile('2026-Q3.png', Buffer.from([1, 2, 3]))
  expect(await callTool(chart, { quarter }, { root: process.cwd() })).toMatchObject(expected)
})

test('a tool that has a model decide returns its choice', async () => {
  const decide = (({ choices }: { readonly choices: readonly string[] }) =>
    Promise.resolve({ choice: choices[0], usage: NO_TOKENS, costUsd: null })) as ToolContext['decide']
  expect(await callTool(fileTicket, { text: 'My card was charged twice.' }, { decide })).toMatchObject({
    ok: true,
    content: 'Filed for billing.',
  })
})

test('a tool that asks a question pauses the run, and continues with the answer', async () => {
  const model = new ScriptedModel().calls('choose_slot', { days: ['Monday', 'Friday'] }).says('Friday it is.')
  await using harness = new Harness({ model, builtinTools: [], tools: [chooseSlot] })

  const paused = await harness.run('When shall we deliver?')
  expect(paused).toMatchObject({
    stopReason: 'input_required',
    pending: [{ kind: 'question', callId: 'call_1', payload: { days: ['Monday', 'Friday'] } }],
  })
  const state = paused.resumeState
  if (state === null) throw new Error('Expected a state to resume from.')
  await expect(harness.resume(state, [{ callId: 'call_1', answer: { day: 'Sunday' } }])).rejects.toMatchObject({
    code: 'invalid_answer',
  })
  const result = await harness.resume(state, [{ callId: 'call_1', answer: { day: 'Friday' } }])
  expect([result.text, result.toolCallRecords[0]?.output]).toMatchObject([
    'Friday it is.',
    expect.stringContaining('Friday'),
  ])
})

/** Captures everything printed from now on. */
function listen(): () => string {
  let text = ''
  vi.spyOn(console, 'log').mockImplementation((...values: unknown[]) => void (text += `${values.join(' ')}\n`))
  vi.spyOn(process.stdout, 'write').mockImplementation((piece) => {
    text += String(piece)
    return true
  })
  return () => text
}

/** Points every provider at the scripted one. */
function useProvider({ url }: ScriptedProvider): void {
  vi.stubEnv('ANTHROPIC_API_KEY', 'test-key')
  vi.stubEnv('ANTHROPIC_BASE_URL', url.messages)
  vi.stubEnv('OPENAI_API_KEY', 'test-key')
  vi.stubEnv('OPENAI_BASE_URL', url.responses)
  vi.stubEnv('THINHARNESS_LOCAL_URL', url.chat)
}
