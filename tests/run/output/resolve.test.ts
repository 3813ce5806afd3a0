import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { toolCallsOf } from 'thinharness'
import type { FinishReason, ModelTurn } from 'thinharness'
import type { OutputFormat } from '#core/state/output-format.js'
import { resolveTurn } from '#core/state/resolve-turn.js'
import type { ReceivedTurn, Resolution } from '#core/state/resolve-turn.js'
import { CONTEXT, formatOf } from './support.js'
import { USAGE } from '../../core/state/support.js'

type Parts = ModelTurn['entry']['parts']

function turn(parts: Parts, finishReason?: FinishReason, nativeFinishReason: string | null = null): ModelTurn {
  const calls = parts.filter((part) => part.type === 'tool_call')
  const finish = finishReason ?? (calls.length > 0 ? 'tool_calls' : 'stop')
  return {
    entry: { role: 'assistant', parts, provider: 'p', model: 'm', finishReason: finish, usage: USAGE },
    nativeFinishReason,
  }
}

function says(text: string, finishReason?: FinishReason, nativeFinishReason?: string): ModelTurn {
  return turn([{ type: 'text', text }], finishReason, nativeFinishReason ?? null)
}

function calls(...made: readonly [name: string, args: string][]): ModelTurn {
  return turn(
    made.map(([name, args], index) => ({ type: 'tool_call', callId: `c${index + 1}`, name, arguments: args })),
  )
}

const schema = z.object({ n: z.number() })
const native = formatOf(schema, 'native', { supportsJsonSchemaOutput: true })
const tool = formatOf(schema, 'tool', {})
const prompted = formatOf(schema, 'prompted', {})
const text = formatOf(z.string(), 'auto', {})

const CONTINUE: Resolution = { kind: 'continue' }
const final = (mode: string | null, output?: number): Resolution => ({
  kind: 'final',
  mode,
  callId: mode === 'tool' ? 'c1' : null,
  ...(output !== undefined && { output: { n: output } }),
})
const FAILED = 'Validation of the structured output failed.'
const ONLY_JSON = 'Return only valid JSON for the schema, without any other text.'
const AGAIN = 'Call `final_result` again with valid arguments.'
const TWICE = 'The model called `final_result` more than once in a reply.'

async function resolution(asked: ModelTurn, output: OutputFormat | null): Promise<Resolution> {
  return (await resolveTurn(received(asked), output, CONTEXT)).resolution
}

function received(turn: ModelTurn): ReceivedTurn {
  return { turn, calls: toolCallsOf(turn.entry.parts) }
}

describe('the meaning of a complete reply', () => {
  test.each<[string, ModelTurn, OutputFormat | null, Resolution]>([
    ['SO-01 without a schema text is final', says('Done.'), null, final(null)],
    [
      'SO-01 without a schema calls continue, even next to text',
      turn([...says('Hm.').entry.parts, ...calls(['a', '{}']).entry.parts]),
      null,
      CONTINUE,
    ],
    [
      'SO-01 without a schema a call of final_result is an ordinary call',
      calls(['final_result', '{}']),
      null,
      CONTINUE,
    ],
    ['SO-02 tool mode: valid arguments are the answer', calls(['final_result', '{"n":1}']), tool, final('tool', 1)],
    [
      'SO-02 tool mode: invalid arguments are corrected in their call',
      calls(['final_result', '{"n":"one"}']),
      tool,
      {
        kind: 'retry_tool_output',
        callId: 'c1',
        message: `${FAILED}\n\n- n: Invalid input: expected number, received string\n\n${AGAIN}`,
      },
    ],
    ['SO-02 tool mode: other calls continue', calls(['a', '{}'], ['b', '{}']), tool, CONTINUE],
    [
      'SO-02 SO-21 tool mode: an answer next to a call continues',
      calls(['a', '{}'], ['final_result', '{"n":1}']),
      tool,
      CONTINUE,
    ],
    [
      'SO-23 tool mode: two answers are unexpected',
      calls(['final_result', '{"n":1}'], ['final_result', '{"n":1}']),
      tool,
      { kind: 'unexpected', message: TWICE },
    ],
    [
      'SO-02 SO-14 tool mode: text alone is corrected by a message',
      says('One.'),
      tool,
      { kind: 'retry_user_message', message: `${FAILED}\n\nCall \`final_result\` with the final answer.` },
    ],
    ['SO-03 prompted mode: valid text is the answer', says(' {"n":1}\n'), prompted, final('prompted', 1)],
    [
      'SO-03 prompted mode: invalid text is corrected by a message',
      says('{"n":"one"}'),
      prompted,
      {
        kind: 'retry_user_message',
        message: `${FAILED}\n\n- n: Invalid input: expected number, received string\n\n${ONLY_JSON}`,
      },
    ],
    ['SO-03 prompted mode: calls continue', calls(['a', '{}']), prompted, CONTINUE],
    [
      'SO-03 prompted mode: a call named final_result continues',
      calls(['final_result', '{"n":1}']),
      prompted,
      CONTINUE,
    ],
    ['SO-04 native mode: valid text is the answer', says('{"n":1}'), native, final('native', 1)],
    ['SO-04 native mode: calls continue', calls(['a', '{}']), native, CONTINUE],
    ['SO-06 text mode: text is the answer', says('Done.'), text, final('text')],
    ['SO-06 text mode: calls continue', calls(['a', '{}']), text, CONTINUE],
    [
      'SO-09 a JSON code fence around the whole text is removed',
      says('```json\n{"n":1}\n```'),
      prompted,
      final('prompted', 1),
    ],
    [
      'SO-09 a code fence without a language, with CRLF, is removed',
      says('```\r\n{"n":1}\r\n```'),
      prompted,
      final('prompted', 1),
    ],
  ])('%s', async (_name, asked, output, expected) => {
    expect(await resolution(asked, output)).toEqual(expected)
  })

  test('SO-04 native mode asks for a retry if the text is not JSON', async () => {
    expect(await resolution(says('One.'), native)).toEqual({
      kind: 'retry_user_message',
      message: expect.stringMatching(
        /^Validation of the structured output failed\.\n\nThe answer is not JSON: .+\n\nReturn only valid JSON/s,
      ) as string,
    })
  })

  test('SO-09 a fence inside a text is not a fence around it', async () => {
    expect((await resolution(says('Here:\n```json\n{"n":1}\n```'), prompted)).kind).toBe('retry_user_message')
  })

  test.each<[FinishReason, string]>([
    ['length', 'The reply was cut off at the output limit (`word`).'],
    ['refusal', 'The model refused to answer (`word`).'],
    ['content_filter', "The provider's content filter stopped the reply (`word`)."],
    ['cancelled', 'The reply was cancelled (`word`).'],
    ['error', 'The provider ended the reply with an error (`word`).'],
  ])('a reply that ended by %s is never an answer, in any mode', async (finishReason, message) => {
    const outputs = [null, text, native, prompted, tool]
    const asked = says('{"n":1}', finishReason, 'word')
    expect(await Promise.all(outputs.map((output) => resolution(asked, output)))).toEqual(
      outputs.map(() => ({ kind: 'unexpected', message })),
    )
  })

  test.each<[string, ModelTurn, 'pause' | 'empty']>([
    ['the provider paused', says('Hm.', 'pause'), 'pause'],
    ['there is nothing', turn([]), 'empty'],
    ['there is an empty text', says(''), 'empty'],
    ['there are only thoughts', turn([{ type: 'reasoning', text: 'Hm.' }]), 'empty'],
  ])('it is requested again if %s', async (_name, asked, reason) => {
    expect(await resolution(asked, null)).toEqual({ kind: 'ask_again', reason })
    expect(await resolution(asked, native)).toEqual({ kind: 'ask_again', reason })
  })

  test('a reply of an unknown block is not empty', async () => {
    expect(await resolution(turn([{ type: 'opaque' }]), null)).toEqual(final(null))
  })

  test('an answer whose arguments were cut off is corrected, even if they parse', async () => {
    const { entry } = calls(['final_result', '{"n":1}'])
    const cut: ModelTurn = { entry: { ...entry, finishReason: 'length' } }
    expect(await resolution(cut, tool)).toEqual({
      kind: 'retry_tool_output',
      callId: 'c1',
      message: `${FAILED}\n\nThe reply was cut off at the output limit.\n\n${AGAIN}`,
    })
  })

  test('SO-07 the value is the parsed one, and the resolution holds the JSON', async () => {
    const parsing = z.object({ at: z.string().transform((raw) => new Date(raw)) })
    const output = formatOf(parsing, 'prompted', {})
    const at = '2026-01-01T00:00:00.000Z'
    expect(await resolveTurn(received(says(JSON.stringify({ at }))), output, CONTEXT)).toEqual({
      resolution: { kind: 'final', mode: 'prompted', callId: null, output: { at } },
      value: { at: new Date(at) },
    })
  })
})
