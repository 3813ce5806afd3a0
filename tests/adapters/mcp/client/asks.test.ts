import { expect, test } from 'vitest'
import { ScriptedModel } from 'thinharness/testing'
import { sampleWith } from '#adapters/mcp/index.js'
import { answering, call, contextOf, hostOf, oddServer, Paused, textOf, toolNamed } from '../support.js'

const SCHEMA = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }

const ASKING = `{
  'tools/list': () => ({ tools: [tool('hello'), tool('slow')] }),
  'tools/call': async ({ name, arguments: args }) => {
    state.calls = (state.calls ?? 0) + 1
    if (name === 'slow') { await new Promise((resolve) => setTimeout(resolve, 200)); return text('slow') }
    const first = await ask('elicitation/create', { message: 'Who are you?', requestedSchema: ${JSON.stringify(SCHEMA)} })
    if (!args.twice) return text(JSON.stringify(first) + ' in call ' + state.calls)
    const second = await ask('elicitation/create', { message: 'And who else?', requestedSchema: ${JSON.stringify(SCHEMA)} })
    return text(JSON.stringify([first, second]))
  },
}`

const ann = { action: 'accept', content: { name: 'Ann' } }
const bob = { action: 'accept', content: { name: 'Bob' } }

test('a question in a call suspends it, and the repeated call gets the answer', async () => {
  const server = oddServer(ASKING)
  const paused: unknown = await call(server, 'hello').catch((error: unknown) => error)

  expect(paused).toBeInstanceOf(Paused)
  expect((paused as Paused).payload).toEqual({
    kind: 'mcp_elicitation',
    server: 'odd',
    message: 'Who are you?',
    schema: SCHEMA,
    url: null,
  })
  const answers = { [(paused as Paused).key]: ann }
  expect(await textOf(call(server, 'hello', {}, answering(answers)))).toBe(`${JSON.stringify(ann)} in call 2`)
  await server.close()
})

test('a call that asks twice is suspended twice, and each answer goes to its own question', async () => {
  const server = oddServer(ASKING)
  const twice = { twice: true }

  const pausedWith = async (answers: Record<string, unknown>): Promise<Paused> =>
    (await call(server, 'hello', twice, answering(answers)).catch((error: unknown) => error)) as Paused
  const first = await pausedWith({})
  expect(first.payload).toMatchObject({ message: 'Who are you?' })
  const second = await pausedWith({ [first.key]: ann })
  expect(second.payload).toMatchObject({ message: 'And who else?' })
  const answers = { [first.key]: ann, [second.key]: bob }
  expect(await textOf(call(server, 'hello', twice, answering(answers)))).toBe(JSON.stringify([ann, bob]))
  await server.close()
})

test('in a new process the answer goes to its question', async () => {
  const before = oddServer(ASKING)
  const paused = (await call(before, 'hello').catch((error: unknown) => error)) as Paused
  await before.close()
  const server = oddServer(ASKING)

  expect(await textOf(call(server, 'hello', {}, answering({ [paused.key]: { action: 'decline' } })))).toBe(
    '{"action":"decline"} in call 1',
  )
  await server.close()
})

test('with several calls open, the one that stays open is the one that asks', async () => {
  const server = oddServer(ASKING)
  const slow = call(server, 'slow', {}, { idempotencyKey: 'slow' })
  const asking = call(server, 'hello', {}, { idempotencyKey: 'asking' })

  await expect(asking).rejects.toBeInstanceOf(Paused)
  expect(await textOf(slow)).toBe('slow')
  await server.close()
})

test('two calls that ask at once are both suspended', async () => {
  const server = oddServer(ASKING)
  const calls = ['a', 'b'].map((idempotencyKey) => call(server, 'hello', {}, { idempotencyKey }))

  const ended = await Promise.allSettled(calls)

  expect(ended.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  await server.close()
})

test('a host that can answer at once is asked while the call waits', async () => {
  const server = oddServer(ASKING)
  const heard: unknown[] = []
  const host = hostOf({
    elicit: async (question, { sourceId, runId, callId }) => {
      heard.push({ question, sourceId, runId, callId })
      return { action: 'accept', content: { name: 'Eve' } }
    },
  })
  const hello = await toolNamed(server, 'hello', host)

  expect(await textOf(hello.call({}, contextOf()))).toBe('{"action":"accept","content":{"name":"Eve"}} in call 1')
  expect(heard).toEqual([
    {
      question: { message: 'Who are you?', schema: SCHEMA, url: null },
      sourceId: 'odd',
      runId: 'run_1',
      callId: 'call_1',
    },
  ])
  await server.close()
})

const SAMPLING = `{
  'tools/list': () => ({ tools: [tool('think')] }),
  'tools/call': async () => text(JSON.stringify(await ask('sampling/createMessage', {
    systemPrompt: 'Be brief.', maxTokens: 50, temperature: 0,
    messages: [
      { role: 'user', content: { type: 'text', text: 'Hi' } },
      { role: 'assistant', content: { type: 'text', text: 'Yes?' } },
      { role: 'user', content: { type: 'text', text: 'What is 2+2?' } },
    ],
  }))),
}`

test('a server that may ask for a reply gets one of the model, within its budget', async () => {
  const model = new ScriptedModel().says('4')
  const server = oddServer(SAMPLING, { sampling: sampleWith(model, { maxRequests: 1, maxOutputTokens: 20 }) })

  expect(JSON.parse(await textOf(call(server, 'think')))).toEqual({
    role: 'assistant',
    content: { type: 'text', text: '4' },
    model: 'scripted-1',
    stopReason: 'endTurn',
  })
  expect(model.requests[0]).toMatchObject({
    transcriptLength: 3,
    constants: { instructions: 'Be brief.', tools: [], settings: { maxOutputTokens: 20, temperature: 0 } },
  })
  expect(await textOf(call(server, 'think'))).toContain('`odd` may not send more sampling requests: the limit is 1.')
  await server.close()
})

test('a server may ask for a reply only if that is enabled, and the host decides if it is configured to', async () => {
  const silent = oddServer(SAMPLING)
  const refused = oddServer(SAMPLING, { sampling: async () => null })
  const hosted = oddServer(SAMPLING, { sampling: true })
  const host = hostOf({
    sample: async ({ messages }) => ({ text: `${messages.length} messages`, model: 'm', stopReason: 'end_turn' }),
  })
  const think = await toolNamed(hosted, 'think', host)

  expect(await textOf(call(silent, 'think'))).toContain('-32601')
  expect(await textOf(call(refused, 'think'))).toContain('The request was refused.')
  expect(await textOf(think.call({}, contextOf()))).toContain('3 messages')
  await Promise.all([silent.close(), refused.close(), hosted.close()])
})

test('a server receives the folders of its host, or those that are configured for it', async () => {
  const handlers = `{ 'tools/list': () => ({ tools: [tool('roots')] }), 'tools/call': async () => text(JSON.stringify(await ask('roots/list', {}))) }`
  const hosted = oddServer(handlers)
  const named = oddServer(handlers, { roots: ['/srv/data'] })
  const roots = await toolNamed(hosted, 'roots', hostOf({ roots: ['/work/a b'] }))

  expect(await textOf(roots.call({}, contextOf()))).toBe('{"roots":[{"uri":"file:///work/a%20b","name":"a b"}]}')
  expect(await textOf(call(named, 'roots'))).toBe('{"roots":[{"uri":"file:///srv/data","name":"data"}]}')
  await Promise.all([hosted.close(), named.close()])
})
