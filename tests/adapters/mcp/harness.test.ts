import { expect, test } from 'vitest'
import { Harness } from 'thinharness'
import type { RunEvent } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { hostOf, oddServer, toolsOf } from './support.js'

const ASKING = `{
  'tools/list': () => ({ tools: [tool('greet')] }),
  'tools/call': async () => {
    const answer = await ask('elicitation/create', { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } })
    return text('Hello ' + answer.content?.name)
  },
}`

test('a question of a server pauses the run, and the answer goes to the server when it is resumed', async () => {
  await using server = oddServer(ASKING)
  const model = new ScriptedModel().calls('greet', {}).says('Greeted.')
  await using harness = new Harness({ model, builtinTools: [], tools: await toolsOf(server) })

  const paused = await harness.run('Greet.')
  const [item] = paused.pending

  expect(paused.stopReason).toBe('input_required')
  expect(item).toMatchObject({
    kind: 'question',
    toolName: 'greet',
    payload: { kind: 'mcp_elicitation', server: 'odd', message: 'Who?' },
  })
  if (paused.resumeState === null || item === undefined) throw new Error('not paused')
  const answer = { action: 'accept', content: { name: 'Ann' } }
  const result = await harness.resume(paused.resumeState, [{ callId: item.callId, answer }])
  expect(result.text).toBe('Greeted.')
  expect(model.heard.at(-1)).toMatchObject({ kind: 'tool_outputs', outputs: [{ ok: true, content: 'Hello Ann' }] })
})

const FAILING = `{
  'tools/list': () => ({ tools: [tool('fail')] }),
  'tools/call': () => ({ ...text('no such order'), isError: true }),
}`

test('MC-04 error results of a server do not use up retries', async () => {
  await using server = oddServer(FAILING)
  const model = new ScriptedModel().calls('fail', {}).calls('fail', {}).calls('fail', {}).says('Sorry.')
  await using harness = new Harness({ model, builtinTools: [], tools: await toolsOf(server), toolRetries: 0 })

  expect((await harness.run('Try.')).text).toBe('Sorry.')
})

test('MC-15 MC-33 with `retryErrors` error results use up retries and can end the run; the server still serves the next run', async () => {
  await using server = oddServer(FAILING, { retryErrors: true })
  const model = new ScriptedModel().calls('fail', {}).calls('fail', {}).says('Hello.')
  await using harness = new Harness({ model, builtinTools: [], tools: await toolsOf(server), toolRetries: 1 })

  await expect(harness.run('Try.')).rejects.toMatchObject({ code: 'tool_retries_exceeded' })
  expect((await harness.run('Again.')).text).toBe('Hello.')
})

test('MC-05 a run continues when its server dies in a call, and progress of the server is emitted', async () => {
  await using server = oddServer(`{
    'tools/list': () => ({ tools: [tool('work')] }),
    'tools/call': async ({ arguments: { die }, _meta }) => {
      if (die) process.exit(1)
      notify('notifications/progress', { progressToken: _meta.progressToken, progress: 1, message: 'half' })
      await new Promise((resolve) => setTimeout(resolve, 20))
      return text('done')
    },
  }`)
  const model = new ScriptedModel().calls('work', { die: true }).calls('work', {}).says('Done.')
  await using harness = new Harness({ model, builtinTools: [], tools: await toolsOf(server, hostOf()) })
  const stream = harness.stream('Work.')
  const events: RunEvent[] = []

  for await (const event of stream) events.push(event)

  expect((await stream.result).text).toBe('Done.')
  expect(events.filter((event) => event.kind === 'tool_call_completed').map(({ ok }) => ok)).toEqual([false, true])
  expect(events.flatMap((event) => (event.kind === 'tool_progress' ? [event.update] : []))).toEqual([
    { progress: 1, message: 'half' },
  ])
})

test('MC-34 a cancelled run leaves its server usable for the next run', async () => {
  await using server = oddServer(`{
    'tools/list': () => ({ tools: [tool('hang'), tool('work')] }),
    'tools/call': ({ name, _meta }) => {
      if (name === 'work') return text('done')
      notify('notifications/progress', { progressToken: _meta.progressToken, progress: 1 })
    },
  }`)
  const model = new ScriptedModel().calls('hang', {}).calls('work', {}).says('Done.')
  await using harness = new Harness({ model, builtinTools: [], tools: await toolsOf(server) })
  const stream = harness.stream('Hang.')
  for await (const event of stream) if (event.kind === 'tool_progress') break

  expect((await harness.run('Work.')).text).toBe('Done.')
})

const SAMPLING = `{
  'tools/list': () => ({ tools: [tool('sum_up')] }),
  'tools/call': async ({ arguments: { of } }) => text(JSON.stringify(await ask('sampling/createMessage', {
    systemPrompt: 'Be brief.', maxTokens: 50,
    messages: [{ role: 'user', content: { type: 'text', text: 'Sum up: ' + of } }],
  }))),
}`

/** Answers a server's request in one run, calls its tool in the other. */
function summing(...calls: readonly string[]): ScriptedModel {
  return ScriptedModel.each(({ transcript }) =>
    JSON.stringify(transcript[0]).includes('Sum up')
      ? new ScriptedModel().says('In short.')
      : transcript.some(({ role }) => role === 'tool')
        ? new ScriptedModel().says('Done.')
        : new ScriptedModel().callsAll(calls.map((of) => ({ name: 'sum_up', arguments: { of } }))).says('Done.'),
  )
}

test.each([
  ['accept', 'In short.', 1],
  ['decline', 'The request was refused.', 0],
] as const)(
  'with `sampling: ask` a person reads the request to the model, and decides: %s',
  async (action, told, children) => {
    await using server = oddServer(SAMPLING, { sampling: 'ask' })
    await using harness = new Harness({ model: summing('the news'), builtinTools: [], mcpServers: [server] })

    const paused = await harness.run('Go.')
    const [item] = paused.pending

    expect(paused.usage.children.modelRequests).toBe(0)
    expect(item).toMatchObject({
      kind: 'question',
      toolName: 'sum_up',
      payload: {
        kind: 'mcp_sampling',
        server: 'odd',
        instructions: 'Be brief.',
        messages: [{ role: 'user', content: [{ type: 'text', text: 'Sum up: the news' }] }],
        maxOutputTokens: 50,
      },
    })
    if (paused.resumeState === null || item === undefined) throw new Error('not paused')
    const result = await harness.resume(paused.resumeState, [{ callId: item.callId, answer: { action } }])
    expect(result.text).toBe('Done.')
    expect(result.usage.children.modelRequests).toBe(children)
    expect(
      result.transcript.flatMap((entry) => (entry.role === 'tool' ? [JSON.stringify(entry.content)] : [])),
    ).toEqual([expect.stringContaining(told)])
  },
)

test('calls of one reply that each ask the model are answered one after the other', async () => {
  await using server = oddServer(SAMPLING, { sampling: true })
  await using harness = new Harness({ model: summing('a', 'b', 'c'), builtinTools: [], mcpServers: [server] })

  const { text, transcript, usage } = await harness.run('Go.')

  expect(text).toBe('Done.')
  expect(usage.children.modelRequests).toBe(3)
  expect(transcript.flatMap((entry) => (entry.role === 'tool' ? [JSON.stringify(entry.content)] : []))).toEqual(
    [1, 2, 3].map(() => expect.stringContaining('In short.') as unknown),
  )
})
