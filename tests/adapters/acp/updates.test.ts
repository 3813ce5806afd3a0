import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fileLog } from 'thinharness'
import { askUser, tasks } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../../harness/support.js'
import { shownCall } from '#adapters/acp/shown-call.js'
import { sessionsOf, temporaryFolder } from '../../session/support.js'
import { editorOf, textsOf } from './support.js'
import type { Told } from './support.js'

/** Updates without what only arrives live. */
function stored(updates: readonly Told[]): readonly unknown[] {
  return updates.filter(
    ({ sessionUpdate }) => sessionUpdate !== 'user_message_chunk' && !sessionUpdate.startsWith('agent_'),
  )
}

test('AC-06 a loaded session sends the whole conversation before the answer, in order, with the ids that it had live', async () => {
  const model = new ScriptedModel()
    .replies({ reasoning: 'Hm.', text: 'I look.', calls: [{ name: 'look', arguments: { id: 'a' } }] })
    .says('Found it.')
    .says('Yes.')
  const look = tool('look', () => 'a lot', { annotations: { readOnly: true } })
  const log = fileLog(temporaryFolder())
  const sessions = sessionsOf({ log, harness: harnessOf({ model, tools: [look] }) })
  const cwd = temporaryFolder()
  const first = await editorOf({ sessions })
  const sessionId = await first.begin({ cwd })
  await first.prompt(sessionId, 'Look.')
  await first.prompt(sessionId, 'Sure?')
  const second = await editorOf({ sessions })
  await second.agent.request('session/load', { sessionId, cwd, mcpServers: [] })
  expect(second.texts('user_message_chunk')).toEqual(['Look.', 'Sure?'])
  for (const kind of ['agent_message_chunk', 'agent_thought_chunk'] as const)
    expect(second.texts(kind)).toEqual(first.texts(kind))
  expect(first.texts('agent_message_chunk')).toEqual(['I look.', 'Found it.', 'Yes.'])
  expect(stored(second.updates)).toEqual(stored(first.updates))
  expect(second.updates.find(({ sessionUpdate }) => sessionUpdate === 'tool_call')).toMatchObject({ kind: 'read' })
  // AC-12: the same ids.
  const ids = (updates: readonly Told[]): string[] => [
    ...new Set(updates.flatMap((update) => ('messageId' in update ? [String(update.messageId)] : []))),
  ]
  const prompts = new Set(
    second.updates.flatMap((u) => (u.sessionUpdate === 'user_message_chunk' ? [u.messageId] : [])),
  )
  expect(ids(second.updates).filter((id) => !prompts.has(id))).toEqual(ids(first.updates))

  const third = await editorOf({ sessions })
  await third.agent.request('session/resume', { sessionId, cwd, mcpServers: [] })
  expect(third.updates).toEqual([])
})

test('AC-12 ids of messages are the run and a number in it, and the updates of a call follow its course', async () => {
  const model = new ScriptedModel()
    .calls('look', { path: 'a.txt' })
    .says('Done.', { usage: { inputTokens: 120, outputTokens: 5 } })
  const look = tool('look', async (_args, { progress }) => {
    progress('half way')
    progress({ percent: 90 })
    await Promise.resolve()
    return 'text'
  })
  Object.assign(model.capabilities, { contextTokens: 1000 })
  const sessions = sessionsOf({ harness: harnessOf({ model, tools: [look] }) })
  const editor = await editorOf({ sessions })
  const cwd = temporaryFolder()
  const sessionId = await editor.begin({ cwd })
  await editor.prompt(sessionId, 'Look into it, please.')
  const runId = (await sessions.open(sessionId)).snapshot.runs[0]?.runId ?? ''
  const calls = editor.updates.filter(({ sessionUpdate }) => sessionUpdate.startsWith('tool_call'))
  expect(calls).toMatchObject([
    {
      ...{ sessionUpdate: 'tool_call', toolCallId: 'call_1', title: 'look a.txt', name: 'look', status: 'pending' },
      ...{ rawInput: { path: 'a.txt' }, locations: [{ path: join(cwd, 'a.txt') }] },
    },
    { sessionUpdate: 'tool_call_update', status: 'in_progress' },
    { content: [{ type: 'content', content: { type: 'text', text: 'half way' } }] },
    { _meta: { thinharness: { progress: { percent: 90 } } } },
    { status: 'completed', rawOutput: 'text', content: [{ type: 'content', content: { type: 'text', text: 'text' } }] },
  ])
  const message = editor.updates.find(({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk')
  expect(message).toMatchObject({ messageId: expect.stringMatching(new RegExp(`^${runId}:\\d`)) as string })
  expect(editor.updates.find(({ sessionUpdate }) => sessionUpdate === 'session_info_update')).toMatchObject({
    title: 'Look into it, please.',
  })
  expect(editor.updates.findLast(({ sessionUpdate }) => sessionUpdate === 'usage_update')).toMatchObject({
    ...{ used: 120, size: 1000 },
  })
})

test('AC-10 kinds and places of calls; changes are shown as differences', async () => {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'a.txt'), 'one\n')
  const model = new ScriptedModel()
    .calls('read', { path: 'a.txt' })
    .calls('edit', { edits: [{ path: 'a.txt', old_string: 'one', new_string: 'two' }] })
    .says('Done.')
  const sessions = sessionsOf({ harness: harnessOf({ model, builtinTools: ['read', 'edit'] }) })
  const editor = await editorOf({ sessions })
  await editor.prompt(await editor.begin({ cwd }), 'Edit.')
  expect(editor.updates.filter(({ sessionUpdate }) => sessionUpdate === 'tool_call')).toMatchObject([
    { title: 'read a.txt', kind: 'read', locations: [{ path: join(cwd, 'a.txt') }] },
    { title: 'edit a.txt', kind: 'edit', locations: [{ path: join(cwd, 'a.txt') }] },
  ])
  const changed = editor.updates.findLast(({ sessionUpdate }) => sessionUpdate === 'tool_call_update')
  expect(changed).toMatchObject({
    status: 'completed',
    content: [{ type: 'diff', path: join(cwd, 'a.txt'), oldText: 'one', newText: 'two' }, { type: 'content' }],
  })
})

describe('AC-10 AC-11 a call as it is shown', () => {
  const root = '/work space'
  const annotations = {}
  const show = (name: string, args: object | string, facts?: Parameters<typeof shownCall>[2]['facts']) =>
    shownCall(name, typeof args === 'string' ? args : JSON.stringify(args), { root, facts })

  test.each([
    ['bash', { command: 'ls' }, 'execute'],
    ['fetch_url', { url: 'https://example.com' }, 'fetch'],
    ['search', { pattern: 'x' }, 'search'],
    ['write', { path: 'a', content: '' }, 'edit'],
    ['other', {}, 'other'],
  ])('%s', (name, args, kind) => expect(show(name, args).kind).toBe(kind))

  test('kinds of other tools come from their annotations and their reach', () => {
    const kindOf = (given: object): string =>
      show('mine', {}, { name: 'mine', annotations, reach: null, ...given }).kind
    expect(kindOf({ annotations: { readOnly: true } })).toBe('read')
    expect(kindOf({ reach: { programs: ['git'] } })).toBe('execute')
    expect(kindOf({ annotations: { readOnly: true }, reach: { hosts: ['*'] } })).toBe('fetch')
    expect(kindOf({ reach: { writes: ['.'] } })).toBe('edit')
    expect(kindOf({})).toBe('other')
  })

  test('titles are one line of at most 80 characters', () => {
    expect(show('bash', { command: 'echo a\n\u001b[31mecho b\u2028c' }).title).toBe('bash echo a [31mecho b c')
    const { title } = show('x'.repeat(300), { path: 'a' })
    expect(title).toHaveLength(80)
    expect(show('bash', { command: 'x'.repeat(200) }).title).toBe('bash')
  })

  test('places are in the workspace only, and each is there once', () => {
    const { locations } = show('mine', { path: '../secret', file: '/etc/passwd', file_path: 'a/b', filename: './a/b' })
    expect(locations).toEqual([{ path: '/work space/a/b' }])
    expect(show('mine', '{broken').rawInput).toBe('{broken')
  })
})

describe('AC-13 text that does not count', () => {
  const failing = (): ScriptedModel =>
    new ScriptedModel()
      .replies(({ options }) => {
        options.onDelta?.({ kind: 'text_delta', text: 'Wro' })
        options.onRetry?.({ attempt: 1, delayMs: 0, reason: 'The connection was cut.', status: null, withdrawn: true })
        return 'Right.'
      })
      .says('More.')

  test('begins anew under another id, with a line that says so', async () => {
    const sessions = sessionsOf({ harness: harnessOf({ model: failing() }) })
    const editor = await editorOf({ sessions })
    await editor.prompt(await editor.begin(), 'Hi.')
    const texts = editor.texts('agent_message_chunk')
    expect(texts).toEqual(['Wro', 'The reply begins anew.\nRight.'])
  })

  test('is not reported with `deltas: settled`', async () => {
    const sessions = sessionsOf({ harness: harnessOf({ model: failing() }) })
    const editor = await editorOf({ sessions, deltas: 'settled' })
    await editor.prompt(await editor.begin(), 'Hi.')
    expect(editor.texts('agent_message_chunk')).toEqual(['Right.'])
  })
})

test('tasks are the plan of a session, warnings are notices, and messages of others are reported', async () => {
  const model = new ScriptedModel()
    .calls('task_write', { tasks: [{ content: 'Build', status: 'in_progress', activeForm: 'Building' }] })
    .says('Built.')
    .says('Hello, too.')
  const sessions = sessionsOf({ harness: harnessOf({ model, use: [tasks()] }) })
  const editor = await editorOf({ sessions })
  const sessionId = await editor.begin()
  await editor.prompt(sessionId, 'Build.')
  expect(editor.updates.find(({ sessionUpdate }) => sessionUpdate === 'plan')).toMatchObject({
    entries: [{ content: 'Build', status: 'in_progress', priority: 'medium' }],
  })
  expect(editor.texts('user_message_chunk')).toEqual([])
  const chat = await sessions.open(sessionId)
  await (
    await chat.send('Hello from a page.')
  ).done
  await editor.until(
    (update) =>
      textsOf([update], 'agent_message_chunk').includes('too.') || update.sessionUpdate === 'agent_message_chunk',
  )
  expect(editor.texts('user_message_chunk')).toEqual(['Hello from a page.'])
  await chat.rename('Greetings')
  await editor.until((update) => update.sessionUpdate === 'session_info_update' && update.title === 'Greetings')
})

test('modes and models can be chosen, and changes of others are reported', async () => {
  const plan = new ScriptedModel().says('Planned.')
  const build = new ScriptedModel().says('Built.')
  const modes = { plan: harnessOf({ model: plan, tools: [askUser()] }), build: harnessOf({ model: build }) }
  const sessions = sessionsOf({ modes, resolveModel: () => build })
  const editor = await editorOf({ sessions, models: ['openai:a', 'openai:b'] })
  const {
    sessionId,
    modes: shown,
    configOptions,
  } = await editor.agent.request('session/new', {
    ...{ cwd: temporaryFolder(), mcpServers: [] },
  })
  expect(shown).toEqual({
    currentModeId: 'plan',
    availableModes: [
      { id: 'plan', name: 'Plan' },
      { id: 'build', name: 'Build' },
    ],
  })
  expect(configOptions).toMatchObject([{ id: 'model', category: 'model', currentValue: 'openai:a' }])
  await editor.agent.request('session/set_mode', { sessionId, modeId: 'build' })
  await editor.until((update) => update.sessionUpdate === 'current_mode_update' && update.currentModeId === 'build')
  await expect(editor.agent.request('session/set_mode', { sessionId, modeId: 'fly' })).rejects.toThrow('no mode `fly`')
  const changed = await editor.agent.request('session/set_config_option', {
    ...{ sessionId, configId: 'model', value: 'openai:b' },
  })
  expect(changed.configOptions).toMatchObject([{ currentValue: 'openai:b' }])
  await editor.prompt(sessionId, 'Go.')
  expect(editor.texts('agent_message_chunk')).toEqual(['Built.'])
})

test('a prompt can have files, links and images', async () => {
  const model = new ScriptedModel({ capabilities: { inputs: ['image'] } }).says('Seen.')
  const editor = await editorOf({ sessions: sessionsOf({ harness: harnessOf({ model }) }) })
  const sessionId = await editor.begin()
  await editor.agent.request('session/prompt', {
    sessionId,
    prompt: [
      { type: 'text', text: 'Look.' },
      { type: 'resource', resource: { uri: 'file:///a.ts', text: 'let a' } },
      { type: 'resource_link', name: 'b.ts', uri: 'file:///b.ts' },
      { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
    ],
  })
  expect(model.requests[0]?.entries[0]).toMatchObject({
    content: [
      { type: 'text', text: 'Look.' },
      { type: 'text', text: '<resource uri="file:///a.ts">\nlet a\n</resource>' },
      { type: 'text', text: '[b.ts](file:///b.ts)' },
      { type: 'image', mediaType: 'image/png' },
    ],
  })
})
