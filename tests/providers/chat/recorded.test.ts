import { describe, expect, test } from 'vitest'
import { HarnessError } from 'thinharness'
import { textOf, toolCallsOf } from '#contracts/entry.js'
import type { AssistantPart } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import { atRandom, byteByByte, bytesOf, providerCases, whole } from '../../support/provider-cases.js'
import type { Cut, ProviderCase } from '../../support/provider-cases.js'
import { decode, hearBytes } from './wire.js'
import type { Heard } from './wire.js'

const cases = ['openai-chat', 'openrouter-chat', 'compat-chat']
  .flatMap(providerCases)
  .filter(({ response }) => response.status === 200)
const cuts: readonly (readonly [string, Cut])[] = [
  ['whole', whole],
  ['byte by byte', byteByByte],
  ['cut at random', atRandom(11)],
]

describe('PR-20 PR-22 RF-03 recorded chat replies are decoded as expected', () => {
  describe.each(cuts)('%s', (_name, cut) => {
    test.each(cases.map((each) => [each.file, each] as const))('%s', (_file, each) => {
      if (each.expect.error !== null) return expectFailure(each, cut)
      const { reply, deltas } = heard(each, cut)
      const { usage, toolCalls } = each.expect

      expect(textOf(reply.parts)).toBe(each.expect.text)
      expect(toolCallsOf(reply.parts).map(({ callId, name, arguments: text }) => [callId, name, text])).toEqual(
        toolCalls.map(({ id, name, argumentsRaw }) => [id, name, argumentsRaw]),
      )
      expect(reasoningIn(reply.parts)).toBe(reasoningOf(each))
      expect(refusalIn(reply.parts)).toBe(each.expect.refusal)
      expect(othersIn(reply.parts)).toEqual(each.expect.otherBlocks)
      expect(finishesOf(each)).toContain(reply.finishReason)
      expect(reply.nativeFinishReason ?? '').toBe(each.expect.finishRaw ?? '')
      const { hostedCalls: _, ...counts } = reply.usage
      expect(counts).toEqual({
        inputTokens: usage?.['inputTotal'] ?? null,
        outputTokens: usage?.['output'] ?? null,
        cacheReadTokens: usage?.['cacheRead'] ?? null,
        cacheWriteTokens: usage?.['cacheWrite'] ?? null,
        reasoningTokens: usage?.['reasoning'] ?? null,
      })
      if (each.stream) {
        expect(told(deltas, 'text_delta')).toBe(each.expect.text)
        expect(told(deltas, 'reasoning_delta')).toBe(reasoningOf(each))
      }
    })
  })
})

function heard(each: ProviderCase, cut: Cut): Heard {
  if (each.stream) return hearBytes(cut(bytesOf(each)))
  return { reply: decode(each.response.body), deltas: [] }
}

function expectFailure(each: ProviderCase, cut: Cut): void {
  const { message, retryable } = each.expect.error ?? {}
  let failure: unknown
  try {
    heard(each, cut)
  } catch (error) {
    failure = error
  }
  expect(failure).toBeInstanceOf(HarnessError)
  expect(failure).toMatchObject({ code: 'provider_error', ...(retryable !== undefined && { retryable }) })
  if (typeof message === 'string') expect((failure as HarnessError).message).toContain(message)
}

function finishesOf({ expect: { finish, finishAccept } }: ProviderCase): readonly (string | null)[] {
  return finishAccept ?? [finish]
}

function told(deltas: Heard['deltas'], kind: string): string {
  return deltas.flatMap((delta) => (delta.kind === kind ? [delta.text] : [])).join('')
}

function reasoningIn(parts: readonly AssistantPart[]): string {
  return parts.flatMap((part) => (part.type === 'reasoning' ? [part.text] : [])).join('')
}

function reasoningOf({ expect: { reasoning } }: ProviderCase): string {
  return (reasoning as readonly { readonly text?: string | null }[]).map(({ text }) => text ?? '').join('')
}

/** Fields of the message that opaque parts hold. */
function fieldsIn(parts: readonly AssistantPart[]): (readonly [string, unknown])[] {
  return parts.flatMap((part) => {
    const data = part.type === 'opaque' ? part.native?.data : undefined
    return isObject(data) && isObject(data['value']) ? Object.entries(data['value']) : []
  })
}

function refusalIn(parts: readonly AssistantPart[]): unknown {
  return fieldsIn(parts).find(([name]) => name === 'refusal')?.[1] ?? null
}

function othersIn(parts: readonly AssistantPart[]): unknown[] {
  return fieldsIn(parts).flatMap(([name]) => (name === 'refusal' ? [] : [{ type: `message.${name}` }]))
}
