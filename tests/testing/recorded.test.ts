import { describe, expect, test } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import { WireRefusal } from '#testing/wire/api.js'
import { readChatRequest } from '#testing/wire/chat.js'
import { readMessagesRequest } from '#testing/wire/messages.js'
import { readResponsesRequest } from '#testing/wire/responses.js'
import { bytesOf, providerCases } from '../support/provider-cases.js'
import { post, WIRE_CASES } from '../support/wire-requests.js'

const RECORDED_AS = {
  responses: ['openai-responses'],
  chat: ['openai-chat', 'compat-chat'],
  openrouter: ['openrouter-chat'],
  messages: ['anthropic-messages'],
}

/** Not among the recordings; written as the types of the official clients, and OpenRouter's documentation, have it. */
const UNRECORDED = [
  /refusal/,
  /incomplete_details/,
  /reasoning_summary|summary_text/,
  /reasoning\.(text|encrypted)>/,
  /<tool_use>\.input\./,
]

/** Every place in a JSON value, such as `.choices[].message.content: string`. */
function* placesIn(value: unknown, place = ''): Iterable<string> {
  if (Array.isArray(value)) for (const each of value) yield* placesIn(each, `${place}[]`)
  else if (typeof value === 'object' && value !== null) {
    const tagged = 'type' in value && typeof value.type === 'string' ? `${place}<${value.type}>` : place
    for (const [key, member] of Object.entries(value)) yield* placesIn(member, `${tagged}.${key}`)
  } else yield `${place}: ${value === null ? 'null' : typeof value}`
}

/** The JSON values of an answer: the reply, or the data of its events. */
function valuesIn(answer: string): unknown[] {
  if (answer.startsWith('{')) return [JSON.parse(answer)]
  return answer
    .split('\n')
    .flatMap((line) => (/^data: *\{.*\}\s*$/.test(line) ? [JSON.parse(line.slice(5)) as unknown] : []))
}

function recordedPlaces(apis: readonly string[], stream: boolean): Set<string> {
  const cases = apis.flatMap((api) => providerCases(api)).filter((each) => each.stream === stream)
  const sound = cases.filter((each) => each.response.status === 200 && !each.file.startsWith('mutated'))
  return new Set(sound.flatMap((each) => valuesIn(bytesOf(each).toString()).flatMap((value) => [...placesIn(value)])))
}

/** However a response ended, it is told in the same form. */
function isKnown(place: string, recorded: ReadonlySet<string>): boolean {
  const completed = place.replace('<response.incomplete>', '<response.completed>')
  return recorded.has(place) || recorded.has(completed) || UNRECORDED.some((pattern) => pattern.test(place))
}

describe('a reply has no field that no recorded reply has', () => {
  test.each(WIRE_CASES.flatMap((each) => [true, false].map((stream) => ({ each, stream, api: each.api }))))(
    '$api, streamed: $stream',
    async ({ each, stream }) => {
      await using provider = await scriptedProvider()
      provider
        .callsAll([{ name: 'read', arguments: '{"a":1}' }], { text: 'Look.', reasoning: 'Hm.' })
        .says('Cut', { finishReason: 'length', reasoning: '' })
        .refuses('No.')
      const recorded = recordedPlaces(RECORDED_AS[each.api], stream)
      const strange = new Set<string>()
      for (let count = 0; count < 3; count++) {
        const fields = { stream, stream_options: { include_usage: true }, include: ['reasoning.encrypted_content'] }
        for (const value of valuesIn(await (await post(provider, each, fields)).text())) {
          for (const place of placesIn(value)) if (!isKnown(place, recorded)) strange.add(place)
        }
      }
      expect([...strange]).toEqual([])
    },
  )
})

/** A fake knows neither the seals nor the stored replies of a real provider. */
const OF_ANOTHER_SERVER = /Invalid `(signature|data)`|could not be verified|not found|No tool call found/

test('a request that a provider accepted is not rejected', () => {
  const refusals = Object.entries(RECORDED_AS).flatMap(([api, recorded]) => {
    const cases = recorded.flatMap((name) => providerCases(name)).filter((each) => each.response.status === 200)
    return cases.flatMap(({ file, request }) => {
      const problem = request === null ? null : refusalOf(api, request.body)
      return problem === null || OF_ANOTHER_SERVER.test(problem) ? [] : [`${file}: ${problem}`]
    })
  })
  expect(refusals).toEqual([])
})

function refusalOf(api: string, body: Readonly<Record<string, unknown>>): string | null {
  const request = { headers: { authorization: 'any', 'anthropic-version': '2023-06-01' }, body }
  try {
    if (api === 'messages') readMessagesRequest(request)
    else if (api === 'responses') readResponsesRequest(request, () => undefined)
    else readChatRequest(request)
    return null
  } catch (error) {
    if (error instanceof WireRefusal) return error.message
    throw error
  }
}
