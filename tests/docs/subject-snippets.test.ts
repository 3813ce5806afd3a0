import { mkdir, writeFile } from 'node:fs/promises'
import { defineTool, Harness, memoryLog } from 'thinharness'
import { Sessions } from 'thinharness/session'
import { ScriptedModel, scriptedProvider } from 'thinharness/testing'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { handlersFor } from '../../docs/snippets/subjects/authentication.js'
import { onButton, onMessage } from '../../docs/snippets/subjects/bot.js'
import { answerInTime } from '../../docs/snippets/subjects/cancelling.js'
import { costSince } from '../../docs/snippets/subjects/cost-since.js'
import { limitedHandlers } from '../../docs/snippets/subjects/daily.js'
import { evaluate } from '../../docs/snippets/subjects/evals.js'
import { lookUpFirst } from '../../docs/snippets/subjects/first-call.js'
import { answer } from '../../docs/snippets/subjects/instructions.js'
import { logged } from '../../docs/snippets/subjects/logging.js'
import { asMarkdown } from '../../docs/snippets/subjects/markdown.js'
import { invoiceOf } from '../../docs/snippets/subjects/results.js'
import { searchHandbook } from '../../docs/snippets/subjects/retrieval.js'
import { thinkHard } from '../../docs/snippets/subjects/settings.js'
import { sqlTool } from '../../docs/snippets/subjects/sql.js'
import { log, removeOldRuns } from '../../docs/snippets/subjects/storage.js'
import { ask, tools as shopTools } from '../../docs/snippets/subjects/users.js'
import { report } from '../../docs/snippets/subjects/workflows.js'
import { inTemporaryFolder } from '../support/folder.js'

inTemporaryFolder()

const lookUp = defineTool({ name: 'look_up', description: 'Looks up.', parameters: {}, handler: () => 'Open at 9.' })

test('docs/cancelling.md: a caller that goes away gets null', async () => {
  const controller = new AbortController()
  const model = new ScriptedModel().replies(() => {
    controller.abort()
    return new Promise(() => undefined)
  })
  await using harness = new Harness({ model })
  expect(await answerInTime(harness, 'Hello?', controller.signal)).toBeNull()
  await using other = new Harness({ model: new ScriptedModel().says('Hi.') })
  expect(await answerInTime(other, 'Hello?', new AbortController().signal)).toBe('Hi.')
})

test('docs/evals.md: the share of right answers', async () => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined)
  const prices = { unknown: { inputPerMillion: 1, outputPerMillion: 1 } }
  await using agent = new Harness({ model: new ScriptedModel().says('At 9.').says('At 9.'), prices })
  await using provider = await scriptedProvider()
  provider.says('{"choice":"yes"}').says('{"choice":"no"}')
  vi.stubEnv('ANTHROPIC_API_KEY', 'test-key')
  vi.stubEnv('ANTHROPIC_BASE_URL', provider.url.messages)
  const cases = [
    { id: 'a', question: 'When do you open?', expected: '9' },
    { id: 'b', question: 'When do you close?', expected: '18' },
  ]
  expect(await evaluate(agent, 'anthropic:claude-haiku-4-5', cases)).toBe(0.5)
})

test('docs/settings.md: the first request has to call the tool, later ones need not', async () => {
  const model = new ScriptedModel().calls('look_up', {}).says('At 9.')
  await using harness = new Harness({ model, tools: [lookUp], use: [lookUpFirst] })
  await harness.run('When do you open?')
  expect(model.requests.map(({ constants }) => constants.settings.toolChoice)).toEqual([{ tool: 'look_up' }, undefined])
})

test('docs/settings.md: a model with options of its own', async () => {
  await using provider = await scriptedProvider()
  provider.says('Proved.')
  vi.stubEnv('OPENAI_API_KEY', 'test-key')
  vi.stubEnv('OPENAI_BASE_URL', provider.url.responses)
  expect(await thinkHard('Prove it.')).toBe('Proved.')
})

test('docs/instructions.md: the prompt of the system is that of the run, and the day is a notice', async () => {
  await mkdir('prompts')
  await writeFile('prompts/support.md', 'Be brief.')
  await using provider = await scriptedProvider()
  provider.says('Guten Tag.')
  vi.stubEnv('ANTHROPIC_API_KEY', 'test-key')
  vi.stubEnv('ANTHROPIC_BASE_URL', provider.url.messages)
  expect(await answer('Hello.', 'Ana')).toBe('Guten Tag.')
})

test('docs/logging.md: requests and calls are logged', async () => {
  const lines: string[] = []
  const model = new ScriptedModel().calls('look_up', {}).says('At 9.')
  const logger = { info: (fields: object, message: string) => void lines.push(`${message} ${'ms' in fields}`) }
  await using harness = new Harness({ model, tools: [lookUp], use: [logged(logger)] })
  await harness.run('When do you open?')
  expect(lines).toEqual(['model request true', 'tool call true', 'model request true'])
})

test('docs/results.md: the output has the type of the schema', async () => {
  await using provider = await scriptedProvider()
  provider.says('{"customer":"Ana","cents":3900}')
  vi.stubEnv('OPENAI_API_KEY', 'test-key')
  vi.stubEnv('OPENAI_BASE_URL', provider.url.responses)
  expect(await invoiceOf('Ana pays 39 euros.')).toEqual({ customer: 'Ana', cents: 3900 })
})

test('docs/retrieval.md: passages that are near are the result of the tool', async () => {
  const tool = searchHandbook(
    { nearest: (vector) => Promise.resolve([{ text: `Near ${vector.join()}`, url: '/a' }]) },
    () => Promise.resolve([[1, 2]]),
  )
  const model = new ScriptedModel().calls('search_handbook', { question: 'Holidays?' }).says('30 days (/a).')
  await using harness = new Harness({ model, tools: [tool] })
  const { toolCallRecords } = await harness.run('How many holidays do I have?')
  expect(toolCallRecords[0]?.output).toContain('Near 1,2')
})

test('docs/retrieval.md: a query is run, and an error of the database goes to the model', async () => {
  const query = (text: string): Promise<{ rows: object[] }> =>
    text.includes('order ') ? Promise.reject(new Error('syntax error')) : Promise.resolve({ rows: [{ count: 2 }] })
  const model = new ScriptedModel()
    .calls('query_database', { sql: 'select from order ' })
    .calls('query_database', { sql: 'select count(*) from orders' })
    .says('Two.')
  await using harness = new Harness({ model, tools: [sqlTool({ query })] })
  const { text, toolCallRecords } = await harness.run('How many orders are there?')
  expect([text, toolCallRecords[0]?.output.includes('syntax error'), toolCallRecords[1]?.output]).toEqual([
    'Two.',
    true,
    String.raw`{"ok":true,"content":"{\"rows\":[{\"count\":2}],\"total\":1}","metadata":{}}`,
  ])
})

test('docs/storage.md: without a database runs are files', async () => {
  expect(log.outlives).toBe(true)
  await removeOldRuns()
})

test('docs/users.md: a member may not delete, and the tools know the user', async () => {
  await using provider = await scriptedProvider()
  provider.calls('list_orders', {}).calls('delete_order', { id: '7' })
  provider.says('Sorry.')
  vi.stubEnv('ANTHROPIC_API_KEY', 'test-key')
  vi.stubEnv('ANTHROPIC_BASE_URL', provider.url.messages)
  await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', tools: [...shopTools] })
  expect(await ask(harness, { id: 'ana', role: 'member', spentUsd: 0 }, 'Delete my order.')).toBe('Sorry.')
  const sent = JSON.stringify(provider.requests)
  expect([sent.includes('Orders of ana'), sent.includes('For admins.'), sent.includes('Deleted 7')]).toEqual([
    true,
    true,
    false,
  ])
})

test('docs/users.md: the 21st message of a day is refused, and other users are not', async () => {
  const log = memoryLog()
  const model = new ScriptedModel()
  for (let each = 0; each < 21; each++) model.says('Hi.')
  await using harness = new Harness({ model, log })
  await using sessions = new Sessions({ harness, log })
  const { requests } = limitedHandlers(sessions, log, (request) => request.headers.get('x-user') ?? '')
  const statusOf = async (user: string, threadId: string): Promise<number> => {
    const headers = { 'content-type': 'application/json', 'x-user': user }
    const message = { method: 'POST', headers, body: JSON.stringify({ text: 'Hello?' }) }
    const { status } = await requests(new Request(`http://app.test/threads/${threadId}/messages`, message))
    if (status === 202) await (await sessions.open(threadId)).whenIdle()
    return status
  }
  for (let each = 0; each < 19; each++) await harness.run('Hello?', { metadata: { resourceId: 'ana' } })
  expect([await statusOf('ana', 'a'), await statusOf('ana', 'a'), await statusOf('bob', 'b')]).toEqual([202, 429, 202])
})

test('docs/prices.md: the cost of a customer since a day', async () => {
  const log = memoryLog()
  const prices = { unknown: { inputPerMillion: 1e6, outputPerMillion: 1e6 } }
  await using harness = new Harness({ model: new ScriptedModel().says('Hi.'), log, prices })
  const { usage } = await harness.run('Hello?', { labels: { customer: 'acme' } })
  expect(usage.costUsd).toBeGreaterThan(0)
  expect(await costSince(log, 'acme', new Date(Date.now() - 60_000))).toBe(usage.costUsd)
  expect(await costSince(log, 'acme', new Date(Date.now() + 60_000))).toBe(0)
  expect(await costSince(log, 'other', new Date(0))).toBe(0)
})

test('docs/conversations.md: a conversation as Markdown', async () => {
  await using harness = new Harness({ model: new ScriptedModel().says('At 9.') })
  await using sessions = new Sessions({ harness, log: memoryLog() })
  const chat = await sessions.open('one')
  const { done } = await chat.send('When do you open?')
  await done
  const text = await asMarkdown(sessions, 'one')
  expect(text.replaceAll(/, \S+Z/g, '')).toBe('**User**\n\nWhen do you open?\n\n**Agent**\n\nAt 9.\n')
})

test('docs/workflows.md: a workflow that is started again repeats no step that has ended', async () => {
  const log = memoryLog()
  const models = [
    new ScriptedModel().says('A fact.').says('A critic.'),
    new ScriptedModel().says('Draft.').says('Better.'),
    new ScriptedModel().answers(false).answers(true),
  ] as const
  const [search, write, reviewer] = models
  const review = new Harness({ model: reviewer, log, outputType: z.boolean() })
  const agents = { search: new Harness({ model: search, log }), write: new Harness({ model: write, log }), review }
  expect(await report('r1', 'tea', agents)).toBe('Better.')
  expect(await report('r1', 'tea', agents)).toBe('Better.')
  expect(models.map(({ requests }) => requests.length)).toEqual([2, 2, 2])
})

test('docs/bots.md: an answer is posted, an approval has a button, and a webhook that is delivered twice sends nothing twice', async () => {
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    parameters: {},
    requiresApproval: true,
    handler: () => 'Paid.',
  })
  const model = new ScriptedModel().says('Hi.').calls('pay', {}).says('Done.')
  await using harness = new Harness({ model, tools: [pay] })
  await using sessions = new Sessions({ harness })
  const posted: (readonly [string, readonly string[]])[] = []
  const post = (text: string, buttons: readonly string[] = []) => Promise.resolve(void posted.push([text, buttons]))
  const message = { team: 't', channel: 'c', user: 'ana', id: 'm1', text: 'Hello.' }
  await onMessage(sessions, message, post)
  await onMessage(sessions, { ...message, id: 'm2', text: 'Pay.' }, post)
  expect(posted).toEqual([
    ['Hi.', []],
    ['May pay run? {}', ['call_1']],
  ])
  await onButton(sessions, message, { callId: 'call_1', approved: true })
  await onMessage(sessions, { ...message, id: 'm2' }, () => Promise.resolve())
  expect(model.requests).toHaveLength(3)
})

test('docs/authentication.md: nobody gets in without a token, and only admins answer', async () => {
  await using harness = new Harness({ model: new ScriptedModel() })
  await using sessions = new Sessions({ harness })
  const { requests } = handlersFor(sessions, (token) =>
    Promise.resolve(token === 'secret' ? { userId: 'ana', isAdmin: false } : null),
  )
  const ask = (path: string, token: string, init: RequestInit = {}) =>
    requests(
      new Request(`http://localhost/api/${path}`, {
        ...init,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      }),
    )
  expect((await ask('threads', 'wrong')).status).toBe(401)
  expect((await ask('threads', 'secret')).status).toBe(200)
  const body = JSON.stringify({ answers: [{ callId: 'x', approved: true }] })
  expect((await ask('threads/one/answers', 'secret', { method: 'POST', body })).status).toBe(403)
})
