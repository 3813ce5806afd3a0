import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test, vi } from 'vitest'
import { fileLog } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { harnessOf, tool } from '../../harness/support.js'
import { gate, sessionsOf, temporaryFolder } from '../../session/support.js'
import { editorOf, failureOf } from './support.js'

const require = createRequire(import.meta.url)
const packageUrl = (name: string): string => pathToFileURL(require.resolve(name)).href

/** A server of the Model Context Protocol with one tool, which gives the id of its process. */
const SERVER = `
import { McpServer } from '${packageUrl('@modelcontextprotocol/server')}'
import { StdioServerTransport } from '${packageUrl('@modelcontextprotocol/server/stdio')}'
const server = new McpServer({ name: 'own', version: '1.0.0' })
server.registerTool('process_id', { description: 'Gives a number.' }, () => ({
  content: [{ type: 'text', text: String(process.pid) }],
}))
await server.connect(new StdioServerTransport())
`

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('AC-01 the agent speaks version 1, one message a line, and nothing else is written', async () => {
  const sessions = sessionsOf({ harness: harnessOf({ model: new ScriptedModel().says('Hello.') }) })
  const editor = await editorOf({ sessions })
  expect(await editor.prompt(await editor.begin(), 'Hi.')).toEqual({ stopReason: 'end_turn' })
  expect(editor.lines().map((line) => (JSON.parse(line) as { jsonrpc: string }).jsonrpc)).toEqual(
    editor.lines().map(() => '2.0'),
  )
})

describe('AC-02 initialize', () => {
  test('answers version 1 to a newer one, and has only the capabilities that hold', async () => {
    const sessions = sessionsOf({
      harness: harnessOf({ model: new ScriptedModel({ capabilities: { inputs: ['image'] } }) }),
    })
    const { agent } = await editorOf({ sessions, agent: { name: 'desk', title: 'Desk', version: '1.2.3' } })
    expect(await agent.request('initialize', { protocolVersion: 7, clientCapabilities: {} })).toEqual({
      protocolVersion: 1,
      agentInfo: { name: 'desk', title: 'Desk', version: '1.2.3' },
      agentCapabilities: {
        loadSession: false,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        mcpCapabilities: { http: true, sse: true },
      },
    })
  })

  test('a log that outlives the process can list, load and resume sessions', async () => {
    const sessions = sessionsOf({ log: fileLog(temporaryFolder()), harness: harnessOf({ model: new ScriptedModel() }) })
    const { agent } = await editorOf({ sessions })
    const { agentCapabilities } = await agent.request('initialize', { protocolVersion: 1 })
    expect(agentCapabilities).toMatchObject({
      loadSession: true,
      sessionCapabilities: { list: {}, resume: {}, close: {} },
    })
  })
})

test('AC-03 a session is a thread, and its folder the workspace of its runs; two sessions do not mix', async () => {
  const roots: string[] = []
  const where = tool('where', (_args, { root }) => {
    roots.push(root)
    return root
  })
  const model = ScriptedModel.each(() => new ScriptedModel().calls('where').says('Here.'))
  const sessions = sessionsOf({ harness: harnessOf({ model, tools: [where] }) })
  const editor = await editorOf({ sessions })
  const folders = [temporaryFolder(), temporaryFolder()]
  const ids = await Promise.all(folders.map((cwd) => editor.begin({ cwd })))
  await Promise.all(ids.map((id) => editor.prompt(id, 'Where?')))
  expect([...roots].sort()).toEqual([...folders].sort())
  for (const [index, id] of ids.entries()) {
    const mine = editor.updates.filter(({ sessionId }) => sessionId === id)
    expect(mine.filter(({ sessionUpdate }) => sessionUpdate === 'tool_call')).toHaveLength(1)
    const done = mine.find((update) => update.sessionUpdate === 'tool_call_update' && update.status === 'completed')
    expect(done).toMatchObject({ rawOutput: folders[index] })
    expect((await sessions.open(id)).snapshot.runs).toHaveLength(1)
  }
})

test('AC-04 servers of the editor are there for the runs of its session, and end with it', async () => {
  const script = join(temporaryFolder(), 'server.mjs')
  writeFileSync(script, SERVER)
  const pids: number[] = []
  const model = new ScriptedModel().calls('process_id').replies(({ heard }) => {
    pids.push(Number(heard.kind === 'tool_outputs' ? heard.outputs[0]?.content : 0))
    return 'Done.'
  })
  const sessions = sessionsOf({ log: fileLog(temporaryFolder()), harness: harnessOf({ model }) })
  const editor = await editorOf({ sessions })
  const env = [{ name: 'ANSWER', value: 'yes' }]
  const sessionId = await editor.begin({
    mcpServers: [{ name: 'own', command: process.execPath, args: [script], env }],
  })
  expect(await editor.prompt(sessionId, 'Which process?')).toEqual({ stopReason: 'end_turn' })
  const [pid = 0] = pids
  expect(isRunning(pid)).toBe(true)
  await editor.agent.request('session/close', { sessionId })
  await vi.waitFor(() => expect(isRunning(pid)).toBe(false), { timeout: 10_000 })
})

test('AC-04 servers of the editor that cannot be had are a notice, and the session works', async () => {
  const model = new ScriptedModel().says('Hello.')
  const editor = await editorOf({
    sessions: sessionsOf({ harness: harnessOf({ model }) }),
    capabilities: { session: { notices: {} } },
  })
  const missing = join(temporaryFolder(), 'no-such-program')
  const id = await editor.begin({
    mcpServers: [
      { name: 'gone', command: missing, args: [], env: [] },
      { type: 'http', name: 'broken', url: 'not an address', headers: [] },
    ],
  })
  expect(await editor.prompt(id, 'Hi.')).toEqual({ stopReason: 'end_turn' })
  const notices = editor.updates.filter(({ sessionUpdate }) => sessionUpdate === 'notice')
  expect(notices.map((update) => 'title' in update && update.title)).toEqual([
    expect.stringContaining('`broken`'),
    expect.stringContaining('gone'),
  ])
})

describe('AC-05 problems are reported', () => {
  test('a relative folder, a refused one, an unknown session, an unknown method', async () => {
    const refused = temporaryFolder()
    const sessions = sessionsOf({ harness: harnessOf({ model: new ScriptedModel() }) })
    const editor = await editorOf({ sessions, allowRoot: (root) => root !== refused })
    const { agent } = editor
    expect(await failureOf(editor.begin({ cwd: 'src' }))).toMatchObject({
      code: -32_602,
      message: 'Expected `cwd` to be an absolute path, got `src`.',
    })
    expect(await failureOf(editor.begin({ cwd: refused }))).toMatchObject({ code: -32_602 })
    expect(await failureOf(editor.prompt('nobody', 'Hi.'))).toEqual({
      code: -32_602,
      message: 'There is no session `nobody`.',
      data: { sessionId: 'nobody' },
    })
    expect(
      await failureOf(agent.request('session/load', { sessionId: 'nobody', cwd: refused, mcpServers: [] })),
    ).toMatchObject({ code: -32_602 })
    expect(await failureOf(agent.request('session/fly', {}))).toMatchObject({ code: -32_601 })
  })

  test('options of `serveAcp`', async () => {
    const sessions = sessionsOf({ harness: harnessOf({ model: new ScriptedModel() }) })
    await expect(editorOf({ sessions, deltas: 'often' as never })).rejects.toThrow('Expected `deltas` of `serveAcp`')
    const harness = harnessOf({ model: new ScriptedModel() })
    await expect(editorOf({ sessions: harness as never })).rejects.toThrow('`Sessions` of `thinharness/session`')
  })
})

test('AC-08 the sessions of a folder, newest first, by pages', async () => {
  const model = ScriptedModel.each(() => new ScriptedModel().says('Yes.'))
  const sessions = sessionsOf({ log: fileLog(temporaryFolder()), harness: harnessOf({ model }) })
  const editor = await editorOf({ sessions })
  const cwd = temporaryFolder()
  const first = await editor.begin({ cwd })
  await editor.prompt(first, `Look into ${'this '.repeat(40)}`)
  const second = await editor.begin({ cwd })
  await editor.begin()
  const { sessions: listed, nextCursor } = await editor.agent.request('session/list', { cwd })
  expect(listed.map(({ sessionId }) => sessionId)).toEqual([second, first])
  expect(listed[1]).toMatchObject({ cwd, title: expect.stringMatching(/^Look into this .*…$/) as string })
  expect(listed[0]?.title).toBeUndefined()
  expect(nextCursor).toBeUndefined()
  for (let count = 0; count < 49; count += 1) await sessions.create({ metadata: { cwd } })
  const page = await editor.agent.request('session/list', { cwd })
  expect(page.sessions).toHaveLength(50)
  const rest = await editor.agent.request('session/list', { cwd, cursor: page.nextCursor ?? '' })
  expect(rest.sessions.map(({ sessionId }) => sessionId)).toEqual([first])
  expect(await failureOf(editor.agent.request('session/list', { cwd, cursor: 'x' }))).toMatchObject({ code: -32_602 })
})

test('AC-09 a session that is closed stops its prompt and is forgotten, but its log is not', async () => {
  const asked = gate()
  const model = new ScriptedModel()
    .replies(() => {
      asked.open()
      return new Promise(() => undefined)
    })
    .says('Again.')
  const sessions = sessionsOf({ log: fileLog(temporaryFolder()), harness: harnessOf({ model }) })
  const editor = await editorOf({ sessions })
  const cwd = temporaryFolder()
  const sessionId = await editor.begin({ cwd })
  const prompted = editor.prompt(sessionId, 'Hi.')
  await asked.opened
  await editor.agent.request('session/close', { sessionId })
  expect(await prompted).toEqual({ stopReason: 'cancelled' })
  expect(await failureOf(editor.prompt(sessionId, 'Hi.'))).toMatchObject({ code: -32_602 })
  await editor.agent.request('session/resume', { sessionId, cwd, mcpServers: [] })
  expect(await editor.prompt(sessionId, 'Hi.')).toEqual({ stopReason: 'end_turn' })
})
