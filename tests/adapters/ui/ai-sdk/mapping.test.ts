import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryLog, ToolResult } from 'thinharness'
import type { HarnessOptions, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import { encodeUiChunk, toUIMessages, toUIMessageStream, UI_STREAM_END, UI_STREAM_HEADERS } from 'thinharness/ui'
import type { AnyRunEvent, UiChunk, UiMessage } from 'thinharness/ui'
import { collect, eventsOfRun } from '../../../support/collect.js'
import { harnessOf, told, tool } from '../../../harness/support.js'
import { checkChunks, checkMessages, chunksOf, DIALECTS, messageAfter } from './clients.js'

interface Ran {
  readonly live: readonly AnyRunEvent[]
  readonly stored: readonly AnyRunEvent[]
}

async function ran(model: ScriptedModel, tools: ToolSpec[] = [], more: HarnessOptions<unknown> = {}): Promise<Ran> {
  const log = memoryLog()
  const harness = harnessOf<unknown>({ model, tools, log, ...more })
  const { events: live } = await told(harness.stream('Hi.', { runId: 'run_1' }))
  return { live, stored: await eventsOfRun(log, 'run_1') }
}

function types(chunks: readonly UiChunk[]): string {
  return chunks.map(({ type }) => type).join(' ')
}

function of<Type extends UiChunk['type']>(
  chunks: readonly UiChunk[],
  type: Type,
): readonly Extract<UiChunk, { readonly type: Type }>[] {
  return chunks.filter((chunk): chunk is Extract<UiChunk, { readonly type: Type }> => chunk.type === type)
}

type DataChunk = Extract<UiChunk, { readonly data: unknown }>

function dataOf(chunks: readonly UiChunk[], type: `data-${string}`): readonly DataChunk[] {
  return chunks.filter((chunk): chunk is DataChunk => chunk.type === type)
}

/** The final structured answer. */
function outputOf(chunks: readonly UiChunk[]): unknown {
  return dataOf(chunks, 'data-output').find(({ transient }) => transient !== true)?.data
}

const pay = tool('pay', () => 'paid', { requiresApproval: true })

test('UI-01 a chunk is one data line; the stream ends with [DONE]', () => {
  expect(encodeUiChunk({ type: 'text-delta', id: '2.t0', delta: 'a\n\nb' })).toBe(
    'data: {"type":"text-delta","id":"2.t0","delta":"a\\n\\nb"}\n\n',
  )
  expect(UI_STREAM_END).toBe('data: [DONE]\n\n')
  expect(UI_STREAM_HEADERS).toEqual({ 'x-vercel-ai-ui-message-stream': 'v1' })
})

test('UI-02 UI-03 UI-14 a turn with one call is seven chunks; ids are made of the log', async () => {
  const { stored } = await ran(new ScriptedModel().calls('look', {}, { text: 'Well.' }).says('Done.'), [tool('look')])
  const chunks = chunksOf(stored)
  expect(types(chunks.slice(0, 8))).toBe(
    'start start-step text-start text-delta text-end tool-input-available tool-output-available finish-step',
  )
  expect(chunks[0]).toMatchObject({
    messageId: 'run_1',
    messageMetadata: { runId: 'run_1', startedAt: stored[0]?.at },
  })
  expect(of(chunks, 'start')).toHaveLength(1)
  expect(of(chunks, 'text-start').map(({ id }) => id)).toEqual(['2.t0', '6.t0'])
  expect(chunks.at(-1)).toEqual({ type: 'finish', finishReason: 'stop' })
})

test('a page learns the model, the tokens and the cost only if the host says so', async () => {
  const { stored } = await ran(new ScriptedModel().says('Done.'))
  const metadata = (options: object): unknown =>
    chunksOf(stored, options).flatMap((chunk) => ('messageMetadata' in chunk ? [chunk.messageMetadata] : []))
  const [startedAt, endedAt] = [stored[0]?.at, stored.at(-1)?.at]
  expect(metadata({})).toEqual([
    { runId: 'run_1', startedAt },
    { stopReason: 'end_turn', endedAt },
  ])
  expect(metadata({ usage: true })).toMatchObject([
    { model: 'scripted:scripted-1' },
    { usage: { modelRequests: 1 }, costUsd: null },
  ])
})

test('UI-05 calls are dynamic unless the page knows the tool; titles from dialect 6', async () => {
  const { stored } = await ran(new ScriptedModel().calls('look').says('Done.'), [tool('look')])
  const named = (options: object): unknown => of(chunksOf(stored, options), 'tool-input-available')[0]
  expect(named({ titles: { look: 'Looks' } })).toMatchObject({ dynamic: true, title: 'Looks' })
  expect(named({ titles: { look: 'Looks' }, dialect: 5 })).not.toHaveProperty('title')
  expect(named({ staticTools: ['look'] })).not.toHaveProperty('dynamic')
  expect(of(chunksOf(stored, { dialect: 5 }), 'tool-output-available')[0]).toHaveProperty('dynamic', true)
})

test('UI-08 arguments that are no JSON are an error with the raw text', async () => {
  const { stored } = await ran(new ScriptedModel().calls('look', 'no JSON').says('Done.'), [tool('look')])
  expect(of(chunksOf(stored), 'tool-input-error')).toMatchObject([{ toolCallId: 'call_1', input: 'no JSON' }])
})

test('UI-09 an output is the value of the tool, its text, or the envelope', async () => {
  const tools = [tool('rows', () => [{ id: 1 }]), tool('look', () => 'seen')]
  const { stored } = await ran(new ScriptedModel().callsAll([{ name: 'rows' }, { name: 'look' }]).says('Done.'), tools)
  const outputs = (options: object): unknown[] =>
    of(chunksOf(stored, options), 'tool-output-available').map(({ output }) => output)
  expect(outputs({})).toEqual([[{ id: 1 }], 'seen'])
  expect(outputs({ envelopes: true })).toMatchObject([{ ok: true }, { ok: true, content: 'seen' }])
})

test.each(['tool', 'native', 'prompted'] as const)(
  'UI-11 UI-12 an answer of mode %s is data; one that did not fit is taken back',
  async (outputMode) => {
    const model = new ScriptedModel({ capabilities: { supportsJsonSchemaOutput: true } })
      .replies(outputMode === 'tool' ? { text: 'No call.' } : { reasoning: 'Hm.', text: '{"n":"x"}' })
      .answers({ n: 1 })
    const outputType = z.object({ n: z.number() })
    const { live, stored } = await ran(model, [], { outputType, outputMode })
    for (const events of [live, stored]) {
      const chunks = chunksOf(events)
      expect(of(chunks, 'tool-input-available')).toEqual([])
      expect(of(chunks, 'reset-step')).toHaveLength(1)
      expect(
        of(chunks, 'text-delta')
          .map(({ delta }) => delta)
          .join(''),
      ).toBe(outputMode === 'tool' ? 'No call.' : '')
      expect(outputOf(chunks)).toEqual({
        value: { n: 1 },
        done: true,
      })
      expect(dataOf(chunksOf(events, { dialect: 6 }), 'data-superseded')).toHaveLength(1)
    }
  },
)

test.each([
  ['length', 'length'],
  ['refusal', 'content-filter'],
  ['content_filter', 'content-filter'],
] as const)(
  'UI-13 UI-17 a reply that ended by %s finishes with its reason or an error, which comes last',
  async (finishReason, reason) => {
    const { stored } = await ran(new ScriptedModel().says('And', { finishReason }))
    const [finish, error] = chunksOf(stored).slice(-2)
    if (error?.type === 'error') expect(finish).toEqual({ type: 'finish', finishReason: 'error' })
    else expect(error).toEqual({ type: 'finish', finishReason: reason })
  },
)

test('XL-11 an error has the sentence of its code; errorText widens it', async () => {
  const { stored } = await ran(new ScriptedModel().fails('The key sk-1 is wrong at /etc/x.'))
  const text = JSON.stringify(chunksOf(stored))
  expect(text).not.toContain('sk-1')
  expect(chunksOf(stored).at(-1)).toEqual({
    type: 'error',
    errorText: 'The model could not be reached, or refused the request.',
  })
  expect(chunksOf(stored, { errorText: ({ message }) => message }).at(-1)).toMatchObject({
    errorText: expect.stringContaining('sk-1') as string,
  })
})

test('XL-14 small images are in the stream; of large ones the type and size, or a link', async () => {
  const picture = tool(
    'picture',
    () => new ToolResult({ content: 'Here.', parts: [{ type: 'image', data: 'AAAA', mediaType: 'image/png' }] }),
  )
  const { stored } = await ran(new ScriptedModel().calls('picture').says('Done.'), [picture])
  expect(of(chunksOf(stored), 'file')).toEqual([
    { type: 'file', url: 'data:image/png;base64,AAAA', mediaType: 'image/png' },
  ])
  expect(dataOf(chunksOf(stored, { maxInlineBytes: 2 }), 'data-file')).toMatchObject([
    { data: { mediaType: 'image/png', size: 3 } },
  ])
  const contentUrl = ({ runId, seq, index }: { runId: string; seq: number; index: number }): string =>
    `/content/${runId}/${seq}/${index}`
  expect(of(chunksOf(stored, { maxInlineBytes: 2, contentUrl }), 'file')).toMatchObject([{ url: '/content/run_1/5/0' }])
})

describe('approvals', () => {
  test('UI-06 each dialect has its own form of a request and a pause', async () => {
    const { stored } = await ran(new ScriptedModel().calls('pay', { n: 1 }), [pay])
    const seven = chunksOf(stored)
    expect(of(seven, 'tool-approval-request')).toEqual([
      {
        ...{ type: 'tool-approval-request', approvalId: 'call_1', toolCallId: 'call_1' },
        approvalDescriptor: { path: ['run_1'], editable: true },
      },
    ])
    expect(dataOf(seven, 'data-pending')).toMatchObject([
      { id: 'run_1.pending', data: { items: [{ callId: 'call_1' }] } },
    ])
    expect(seven.at(-1)).toEqual({ type: 'finish', finishReason: 'tool-calls' })
    expect(of(chunksOf(stored, { dialect: 6 }), 'tool-approval-request')).toEqual([
      { type: 'tool-approval-request', approvalId: 'call_1', toolCallId: 'call_1' },
    ])
    const five = chunksOf(stored, { dialect: 5 })
    expect(of(five, 'tool-approval-request')).toEqual([])
    expect(dataOf(five, 'data-approval')).toMatchObject([{ id: 'call_1', data: { toolCallId: 'call_1' } }])
  })

  test('UI-10 UI-24 after an answer the stream continues in the same message, with the arguments that ran', async () => {
    const log = memoryLog()
    const model = new ScriptedModel().calls('pay', { n: 1 }).says('Paid.')
    const harness = harnessOf({ model, tools: [pay], log })
    await harness.run('Hi.', { runId: 'run_1' })
    const { length: after } = await eventsOfRun(log, 'run_1')
    await harness.resume('run_1', [{ callId: 'call_1', approved: true, editedArguments: { n: 2 } }])
    const chunks = chunksOf(await eventsOfRun(log, 'run_1'), { after })
    expect(types(chunks)).toBe(
      'start data-pending tool-input-available tool-approval-response tool-output-available finish-step ' +
        'start-step text-start text-delta text-end finish-step message-metadata finish',
    )
    expect(chunks[0]).toEqual({ type: 'start', messageId: 'run_1' })
    expect(of(chunks, 'tool-input-available')[0]?.input).toEqual({ n: 2 })
  })

  test('UI-20 a call whose arguments are no JSON is not answered for the helper: the client has it as settled', async () => {
    const model = new ScriptedModel().callsAll([{ name: 'pay' }, { name: 'look', arguments: "{'n': 2,}" }])
    const { stored } = await ran(model, [pay, tool('look')])
    const chunks = chunksOf(stored)
    expect(of(chunks, 'tool-input-error')).toMatchObject([{ toolCallId: 'call_2' }])
    expect(of(chunks, 'tool-approval-request').map(({ toolCallId }) => toolCallId)).toEqual(['call_1'])
    await checkMessages(7, toUIMessages(stored))
  })

  test('UI-18 a rejected call is denied; in dialect 5 it is an error', async () => {
    const log = memoryLog()
    const harness = harnessOf({ model: new ScriptedModel().calls('pay').says('No.'), tools: [pay], log })
    await harness.run('Hi.', { runId: 'run_1' })
    await harness.resume('run_1', [{ callId: 'call_1', approved: false, reason: 'Too much.' }])
    const stored = await eventsOfRun(log, 'run_1')
    expect(of(chunksOf(stored), 'tool-output-denied')).toHaveLength(1)
    expect(of(chunksOf(stored), 'tool-approval-response')).toMatchObject([{ approved: false, reason: 'Too much.' }])
    expect(of(chunksOf(stored, { dialect: 6 }), 'tool-output-denied')).toHaveLength(1)
    expect(of(chunksOf(stored, { dialect: 5 }), 'tool-output-error')).toHaveLength(1)
  })
})

describe('child runs', () => {
  const delegate = tool(
    'delegate',
    async (_, { spawn }) => (await spawn({ prompt: 'child', agentName: 'helper', tools: [pay] }).result).text,
    {
      onUnknownOutcome: 'retry',
    },
  )
  test('UI-25 a child run is a data part with its status, at most four a second, and none of its deltas', async () => {
    const model = new ScriptedModel().calls('delegate').says('Child.').says('Done.')
    const { live } = await ran(model, [delegate])
    const chunks = chunksOf(live)
    const runs = dataOf(chunks, 'data-run')
    expect(runs.at(-1)).toMatchObject({
      data: { agent: 'helper', callId: 'call_1', status: 'completed', text: 'Child.' },
    })
    expect(runs.length).toBeLessThanOrEqual(3)
    expect(
      of(chunks, 'text-delta')
        .map(({ delta }) => delta)
        .join(''),
    ).toBe('Done.')
    expect(dataOf(chunksOf(live, { children: 'none' }), 'data-run')).toEqual([])
  })

  test('UI-25 with `message`, the message of a child run is the output of its call until that ends, at most twice a second', async () => {
    const model = new ScriptedModel().calls('delegate').calls('look').says('Child.').says('Done.')
    const look = tool('look', () => 'seen')
    const outer = tool(
      'delegate',
      async (_, { spawn }) => (await spawn({ prompt: 'child', agentName: 'helper', tools: [look] }).result).text,
    )
    const { live } = await ran(model, [outer])
    const start = Date.parse(live[0]?.at ?? '')
    // One event each 200 ms.
    const slow = live.map((event, index) => ({ ...event, at: new Date(start + 200 * index).toISOString() }))
    const outputs = of(chunksOf(slow, { children: 'message' }), 'tool-output-available')
    const [told, final] = [outputs.slice(0, -1), outputs.at(-1)]
    expect(final).toEqual({ type: 'tool-output-available', toolCallId: 'call_1', output: 'Child.', dynamic: true })
    expect(told.length).toBeGreaterThan(1)
    expect(told.length).toBeLessThanOrEqual((2 * 200 * live.length) / 1_000)
    for (const chunk of told) expect(chunk).toMatchObject({ toolCallId: 'call_1', preliminary: true })
    const shown = told.map(({ output }) => output as UiMessage)
    expect(new Set(shown.map(({ id }) => id)).size).toBe(1)
    expect(shown.some(({ parts }) => parts.some((part) => 'toolName' in part && part.toolName === 'look'))).toBe(true)
    expect(of(chunksOf(live, { children: 'message' }), 'tool-output-available').length).toBeLessThan(told.length)
  })

  test('UI-10 arguments of a child run in the background that are edited after a later step are a data part', async () => {
    const log = memoryLog()
    const begin = { prompt: 'child', agentName: 'helper', tools: [pay], background: true } as const
    const leave = tool('leave', (_, { spawn }) => spawn(begin).runId, { onUnknownOutcome: 'retry' })
    const model = new ScriptedModel().always(({ transcript }) => {
      const [prompt] = transcript
      const isChild = JSON.stringify(prompt).includes('child')
      const isAsked = transcript.some((entry) => entry.role === 'tool')
      if (isChild) return isAsked ? 'Paid.' : { calls: [{ name: 'pay', arguments: { n: 1 } }] }
      return isAsked ? 'Well.' : { calls: [{ name: 'leave' }, { name: 'leave' }] }
    })
    const harness = harnessOf({ model, tools: [leave, pay], log })
    let result = await harness.run('Hi.', { runId: 'run_1' })
    expect(result).toMatchObject({ status: 'paused' })
    const [first, second] = result.pending.map(({ callId }) => callId)
    result = await harness.resume('run_1', [{ callId: first ?? '', approved: true }])
    expect(result.pending.map(({ callId }) => callId)).toEqual([second])
    await harness.resume('run_1', [{ callId: second ?? '', approved: true, editedArguments: { n: 2 } }])
    const stored = await eventsOfRun(log, 'run_1')
    for (const dialect of DIALECTS) {
      const chunks = chunksOf(stored, { dialect })
      await checkChunks(dialect, chunks)
      const { parts } = await messageAfter(dialect, chunks)
      const calls = parts.filter((part) => 'toolCallId' in part && part.toolCallId === second)
      expect(calls).toMatchObject([{ input: { n: 1 }, state: 'output-available' }])
      expect(parts).toContainEqual({ type: 'data-input', id: second, data: { toolCallId: second, input: { n: 2 } } })
      expect(toUIMessages(stored, { dialect })[1]?.parts).toContainEqual(
        expect.objectContaining({ type: 'data-input' }),
      )
    }
  })

  test("UI-04 UI-26 a child run's approval is a part of its own, and its call is answered for the helper", async () => {
    const model = new ScriptedModel().calls('delegate').calls('pay')
    const { live } = await ran(model, [delegate])
    const requests = of(chunksOf(live), 'tool-approval-request')
    expect(requests).toMatchObject([
      { toolCallId: 'call_1/1/call_1', approvalDescriptor: { path: ['run_1', expect.any(String) as string] } },
      { toolCallId: 'call_1', isAutomatic: true },
    ])
    const [input] = of(chunksOf(live), 'tool-input-available').filter(({ toolCallId }) => toolCallId.includes('/'))
    expect(input).toMatchObject({ toolName: 'pay', title: 'helper' })
  })
})

test('UI-16 XL-07 a withdrawn attempt is taken back, data parts of child runs are sent again', () => {
  const base = {
    runId: 'run_1',
    at: '2026-01-01T00:00:00.000Z',
    parentRunId: null,
    parentToolCallId: null,
    agentName: null,
  }
  const events = [
    { ...base, kind: 'model_request_started', seq: 1, durable: true, entries: [] },
    { ...base, kind: 'text_delta', seq: 1, durable: false, text: 'Lost', partId: 'a' },
    {
      ...base,
      kind: 'run_started',
      seq: 1,
      durable: true,
      runId: 'child',
      parentRunId: 'run_1',
      parentToolCallId: 'call_0',
      agentName: 'helper',
      version: 2,
    },
    { ...base, kind: 'deltas_withdrawn', seq: 1, durable: false, attempt: 1 },
    { ...base, kind: 'text_delta', seq: 1, durable: false, text: 'Kept', partId: 'a' },
  ] as unknown as readonly AnyRunEvent[]
  expect(types(chunksOf(events).slice(0, 9))).toBe(
    'start start-step text-start text-delta data-run text-end reset-step data-run text-start',
  )
})

test('UI-31 toUIMessageStream gives the chunks of a run as it happens, and fails with a source that broke off', async () => {
  const harness = harnessOf({ model: new ScriptedModel().says('Hello.') })
  const chunks = await collect(toUIMessageStream(harness.stream('Hi.')))
  expect(types(chunks)).toBe('start start-step text-start text-delta text-end finish-step message-metadata finish')
  async function* broken(): AsyncGenerator<AnyRunEvent> {
    yield* []
    throw new Error('The log cannot be read.')
  }
  await expect(collect(toUIMessageStream(broken()))).rejects.toThrow('The log cannot be read.')
})

test.each([5, 6] as const)(
  'UI-19 with settled deltas, nothing of a withdrawn attempt remains in dialect %s',
  (dialect) => {
    const event = (kind: string, seq: number, more: object = {}): AnyRunEvent =>
      ({
        ...{ kind, runId: 'run_1', seq, at: '2026-01-01T00:00:00.000Z', parentRunId: null },
        durable: false,
        ...more,
      }) as never
    const events = [
      event('model_request_started', 2, { durable: true, entries: [] }),
      event('text_delta', 2, { text: 'Lost.', partId: '2.1' }),
      event('deltas_withdrawn', 2),
    ]
    expect(types(chunksOf(events, { dialect }))).toContain('data-superseded')
    expect(JSON.stringify(chunksOf(events, { dialect }))).toContain('Lost.')
    const settled = chunksOf(events, { dialect, deltas: 'settled' })
    expect(types(settled)).not.toContain('data-superseded')
    expect(JSON.stringify(settled)).not.toContain('Lost.')
  },
)
