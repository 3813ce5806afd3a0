import { describe, expect, test } from 'vitest'
import { fromMessages } from 'thinharness'
import { AI_SDKS } from './ai-sdk-versions.js'
import { APIS, expectAccepted, inShort, PNG } from './wires.js'

const IMAGE = `data:image/png;base64,${PNG}`
const PDF = `data:application/pdf;base64,JVBERi0xLjQK`

const QUESTION = {
  id: 'm1',
  role: 'user',
  parts: [
    { type: 'text', text: 'What are these?' },
    { type: 'file', mediaType: 'image/png', url: IMAGE, filename: 'dot.png' },
    { type: 'file', mediaType: 'application/pdf', url: PDF, filename: 'a.pdf' },
  ],
}

/** A reply of several steps in the page's form, with calls in every state that has a result. */
const REPLY = {
  id: 'm2',
  role: 'assistant',
  parts: [
    { type: 'step-start' },
    { type: 'reasoning', text: 'I look.', providerMetadata: { anthropic: { signature: 'x' } } },
    { type: 'text', text: 'Let me look.' },
    { type: 'tool-look', toolCallId: 'c1', state: 'output-available', input: { id: 1 }, output: { z: 1, a: 2 } },
    { type: 'tool-look', toolCallId: 'c2', state: 'output-error', input: { id: 2 }, errorText: 'Gone.' },
    { type: 'tool-look', toolCallId: 'c3', state: 'output-error', rawInput: '{"id":', errorText: 'Not JSON.' },
    { type: 'dynamic-tool', toolName: 'grep', toolCallId: 'c4', state: 'output-available', input: {}, output: 'Hi' },
    { type: 'source-url', sourceId: 's1', url: 'https://x.test' },
    { type: 'step-start' },
    { type: 'text', text: 'A dot.' },
  ],
}

const DENIED = { id: 'a1', approved: false, reason: 'Too much.' }

/** Calls that needed an approval, which version 5 does not have. */
const APPROVALS = {
  id: 'm3',
  role: 'assistant',
  parts: [
    { type: 'tool-pay', toolCallId: 'p1', state: 'output-denied', input: {}, approval: DENIED },
    { type: 'tool-pay', toolCallId: 'p2', state: 'approval-responded', input: {}, approval: { ...DENIED, id: 'a2' } },
    {
      type: 'tool-pay',
      toolCallId: 'p3',
      state: 'output-available',
      input: {},
      output: 'Paid.',
      approval: { id: 'a3', approved: true },
    },
  ],
}

const RESULTS = {
  text: { type: 'text', value: 'Plain.' },
  json: { type: 'json', value: [1, { b: null }] },
  failed: { type: 'error-text', value: 'No such thing.' },
  failedJson: { type: 'error-json', value: { code: 404 } },
  rich: {
    type: 'content',
    value: [
      { type: 'text', text: 'The dot:' },
      { type: 'media', data: PNG, mediaType: 'image/png' },
    ],
  },
}

describe.each(AI_SDKS)('`fromMessages` with the AI SDK $version', ({ version, ai, model }) => {
  /** The messages of a run in which the model calls each tool once. */
  async function generated(): Promise<readonly object[]> {
    const inputSchema = ai.jsonSchema({ type: 'object', properties: {} })
    const tools = Object.entries(RESULTS).map(([name, output]) => [
      name,
      ai.tool({ inputSchema, execute: () => 'any', toModelOutput: () => output }),
    ])
    const boom = (): never => {
      throw new Error('Boom.')
    }
    const calls = [...Object.keys(RESULTS), 'boom', 'unknown'].map((toolName) => {
      return { type: 'tool-call', toolCallId: `call_${toolName}`, toolName, input: '{}' }
    })
    const messages = [{ role: 'user', content: 'Try all.' }]
    const result = await ai.generateText({
      model: model([
        [{ type: 'reasoning', text: 'All.' }, { type: 'text', text: 'I try.' }, ...calls],
        [{ type: 'text', text: 'Done.' }],
      ]),
      messages,
      tools: { ...(Object.fromEntries(tools) as object), boom: ai.tool({ inputSchema, execute: boom }) },
      stopWhen: ai.stepCountIs(3),
    })
    return [...messages, ...(result.responseMessages ?? result.response.messages ?? [])]
  }

  test('messages of `convertToModelMessages` become entries', async () => {
    const messages = await ai.convertToModelMessages([QUESTION, REPLY])
    const results = [
      ['c1', 'look', '{"z":1,"a":2}'],
      ['c2', 'look', 'Gone.', 'error'],
      ['c3', 'look', 'Not JSON.', 'error'],
      ['c4', 'grep', 'Hi'],
    ]
    expect(fromMessages(messages).map(inShort)).toEqual([
      ['What are these?', 'image', 'file'],
      ['Let me look.', 'look c1 {"id":1}', 'look c2 {"id":2}', 'look c3 {"id":', 'grep c4 {}'],
      ...results,
      ['A dot.'],
    ])
  })

  test('messages of `generateText` become entries, with every form of a result', async () => {
    const entries = fromMessages(await generated())
    const results = entries.filter(({ role }) => role === 'tool').map(inShort)
    // The versions differ in the place of failed calls.
    expect(Object.fromEntries(results.map(([, name = '', ...content]) => [name, content]))).toMatchObject({
      text: ['Plain.'],
      json: ['[1,{"b":null}]'],
      failed: ['No such thing.', 'error'],
      failedJson: ['{"code":404}', 'error'],
      rich: ['The dot:', 'image'],
      boom: [expect.stringContaining('Boom.'), 'error'],
      unknown: [expect.stringContaining('unknown'), 'error'],
    })
    expect(entries.map(({ role }) => role)).toEqual(['user', 'assistant', ...results.map(() => 'tool'), 'assistant'])
  })

  test.each(APIS)('both are histories that %s accepts', async (api) => {
    await expectAccepted(api, [...(await ai.convertToModelMessages([QUESTION, REPLY])), ...(await generated())])
  })

  test.runIf(version > 5)('answered approvals are carried over; a denial is the result of its call', async () => {
    const messages = await ai.convertToModelMessages([QUESTION, APPROVALS])
    const results = fromMessages(messages).flatMap((entry) => (entry.role === 'tool' ? [inShort(entry)] : []))
    expect(Object.fromEntries(results.map(([id, , ...content]) => [id, content]))).toEqual({
      p1: [expect.stringContaining('Too much.'), 'error'],
      p2: ['The call was denied. Too much.', 'error'],
      p3: ['Paid.'],
    })
    for (const api of APIS) await expectAccepted(api, messages)
  })

  test.runIf(version > 5).each([
    ['waits for an approval', { state: 'approval-requested', approval: { id: 'a1' } }],
    ['was approved and has no result', { state: 'approval-responded', approval: { id: 'a1', approved: true } }],
  ])('a call that %s is refused', async (problem, part) => {
    const reply = { id: 'm2', role: 'assistant', parts: [{ type: 'tool-pay', toolCallId: 'p1', input: {}, ...part }] }
    const messages = await ai.convertToModelMessages([QUESTION, reply])
    expect(() => fromMessages(messages)).toThrow(`tool call \`p1\` ${problem}`)
  })

  test.each([
    [
      'a system message',
      { role: 'system', parts: [{ type: 'text', text: 'Be brief.' }] },
      'pass its text as `instructions`',
    ],
    [
      'a call that the provider executed',
      {
        role: 'assistant',
        parts: [
          {
            type: 'tool-web_search',
            toolCallId: 'c1',
            state: 'output-available',
            input: {},
            output: [],
            providerExecuted: true,
          },
        ],
      },
      'was run by the provider: leave it and its result out',
    ],
    [
      'a file that the model created',
      { role: 'assistant', parts: [{ type: 'file', mediaType: 'image/png', url: IMAGE }] },
      '`file` has no place in a reply',
    ],
  ])('%s is refused with its place', async (_name, message, problem) => {
    const messages = await ai.convertToModelMessages([QUESTION, { id: 'm2', ...message }])
    expect(() => fromMessages(messages)).toThrow(expect.objectContaining({ code: 'invalid_options' }))
    expect(() => fromMessages(messages)).toThrow(/^fromMessages: `messages\[1\]/)
    expect(() => fromMessages(messages)).toThrow(problem)
  })

  test('messages stored as JSON give the same entries', async () => {
    const messages = [...(await ai.convertToModelMessages([QUESTION, REPLY])), ...(await generated())]
    const stored = JSON.parse(JSON.stringify(messages)) as readonly object[]
    const timeless = (list: readonly object[]): unknown => fromMessages(list).map((entry) => ({ ...entry, at: '' }))
    expect(timeless(stored)).toEqual(timeless(messages))
  })
})
