import { describe, expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import type { ModelDelta } from 'thinharness'
import { gemini } from 'thinharness/providers'
import { textOf, toolCallsOf } from '#contracts/entry.js'
import type { AssistantPart } from '#contracts/entry.js'
import { errorFromBody } from '#providers/http/provider-errors.js'
import { EventReader } from '#providers/http/sse-reader.js'
import type { DecodedReply } from '#providers/http/wire-format.js'
import type { JsonObject } from '#util/json.js'
import {
  answerOf,
  atRandom,
  byteByByte,
  bytesOf,
  expectAnswer,
  fetchOf,
  providerCases,
  whole,
} from '../../support/provider-cases.js'
import type { Cut, ProviderCase } from '../../support/provider-cases.js'
import { assistant, callIdFor, contentsOf, format, user } from './support.js'

const cases = providerCases('google-generate-content')
const CUTS: readonly (readonly [string, Cut])[] = [
  ['whole', whole],
  ['byte by byte', byteByByte],
  ['cut at random', atRandom(7)],
]

interface Told {
  readonly reply: DecodedReply
  readonly deltas: readonly ModelDelta[]
}

function told(each: ProviderCase, cut: Cut): Told {
  const deltas: ModelDelta[] = []
  const options = { callIdFor, onDelta: (delta: ModelDelta) => void deltas.push(delta) }
  if (each.response.status >= 400) throw errorFromBody(each.response.status, each.response.headers, each.response.body)
  if (!each.stream) return { reply: format().decode(each.response.body, options), deltas }
  const reader = new EventReader()
  const fold = format().fold(options)
  for (const piece of cut(bytesOf(each))) for (const chunk of reader.push(piece)) fold.add(chunk)
  for (const chunk of reader.end()) fold.add(chunk)
  return { reply: fold.end(), deltas }
}

const isSigned = ({ native }: AssistantPart): boolean =>
  (native?.data as JsonObject | undefined)?.['thoughtSignature'] !== undefined

function expectParts({ expect: wanted }: ProviderCase, { reply }: Told): void {
  const { parts } = reply
  expect(textOf(parts)).toBe(wanted.text)
  expect(reply.nativeFinishReason).toBe(wanted.finishRaw)
  expect(reply.finishReason).toBe(wanted.finish)
  expect(toolCallsOf(parts).map(({ name, arguments: text }) => ({ name, text }))).toEqual(
    wanted.toolCalls.map(({ name, arguments: args }) => ({ name, text: JSON.stringify(args) })),
  )
  const others = parts.filter(({ type }) => type === 'opaque' || type === 'hosted')
  const natives = others
    .map((part) => part.native?.data)
    .filter((data) => !('groundingMetadata' in (data as JsonObject)))
  expect(natives).toEqual(wanted.otherBlocks)
  const thoughts = parts.filter((part) => part.type === 'reasoning')
  expect(thoughts.map((part) => ({ text: part.text, hasSignature: isSigned(part) }))).toEqual(wanted.reasoning)
}

function expectDeltas({ reply, deltas }: Told): void {
  const joined = (kind: ModelDelta['kind'], callId?: string): string =>
    deltas.flatMap((delta) => (delta.kind === kind && delta.callId === callId ? [delta.text] : [])).join('')
  expect(joined('text_delta')).toBe(textOf(reply.parts))
  const thoughts = reply.parts.filter((part) => part.type === 'reasoning')
  expect(joined('reasoning_delta')).toBe(thoughts.map(({ text }) => text).join(''))
  for (const { callId, arguments: text } of toolCallsOf(reply.parts))
    expect(joined('tool_input_delta', callId)).toBe(text)
}

/** The parts of a recorded reply, without those that say nothing, text joined as far as it is not signed. */
function recordedParts({ response }: ProviderCase): JsonObject[] {
  const bodies =
    response.sse === undefined
      ? [response.body]
      : response.sse
          .split('\n')
          .flatMap((line) => (line.startsWith('data:') ? [JSON.parse(line.slice(5)) as unknown] : []))
  const parts: JsonObject[] = []
  for (const body of bodies as { candidates?: { content?: { parts?: JsonObject[] } }[] }[])
    for (const part of body.candidates?.[0]?.content?.parts ?? []) {
      const last = parts.at(-1)
      if (part['text'] === '' && Object.keys(part).length === 1) continue
      const isPlain = [part, last].every(
        (each) => typeof each?.['text'] === 'string' && each['thoughtSignature'] === undefined,
      )
      if (last !== undefined && isPlain && last['thought'] === part['thought'])
        parts[parts.length - 1] = { ...last, text: `${last['text'] as string}${part['text'] as string}` }
      else parts.push(part)
    }
  return parts
}

const good = cases.filter(({ expect: { error } }) => error === null).map((each) => [each.file, each] as const)
const bad = cases.filter(({ expect: { error } }) => error !== null).map((each) => [each.file, each] as const)

describe('recorded replies', () => {
  test('there are replies with calls, thoughts, signatures, searches and blocked prompts, streamed and not', () => {
    expect(good.length).toBeGreaterThan(15)
    expect(new Set(cases.map(({ stream }) => stream)).size).toBe(2)
  })

  test.each(good)('%s is decoded as recorded, however it is split', (_file, each) => {
    const answers = CUTS.map(([, cut]) => told(each, cut))
    for (const answer of answers) {
      expectParts(each, answer)
      if (each.stream) expectDeltas(answer)
      expect(answer).toEqual(answers[0])
    }
  })

  test.each(bad)('%s is an error', (_file, each) => {
    expect(() => told(each, whole)).toThrow(HarnessError)
  })

  test.each(cases.flatMap((each) => CUTS.map(([name, cut]) => [each.file, name, each, cut] as const)))(
    '%s leaves the model as recorded, %s',
    async (_file, _name, each, cut) => {
      const model = gemini('gemini-3-pro', { apiKey: 'k', fetch: fetchOf(each, cut), maxRetries: 0 })
      expectAnswer(each, await answerOf(model, each))
    },
  )

  test.each(good)('%s is sent back as it came, signatures byte for byte', (_file, each) => {
    const { reply } = told(each, whole)
    // The second generation needs no signature of ours; calls that came without an id go back without one.
    const hasCallIds = each.expect.toolCalls.some(({ id }) => id !== null)
    const wire = format({ id: 'gemini-2.5-pro', hasCallIds })
    const [, content] = contentsOf(wire, [user('Go on.'), assistant(reply.parts)])
    const wanted = recordedParts(each).map((part) => {
      const { functionCall } = part
      return functionCall === undefined
        ? part
        : { ...part, functionCall: { args: {}, ...(functionCall as JsonObject) } }
    })
    expect(content?.['parts'] ?? []).toEqual(wanted)
  })
})
