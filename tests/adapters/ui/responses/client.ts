import OpenAI from 'openai'
import type { Response as OpenAIResponse, ResponseStreamEvent } from 'openai/resources/responses/responses'
import type { AnyRunEvent } from 'thinharness/ui'
import { encodeResponse, RESPONSES_END } from '#adapters/ui/responses/event.js'
import type { OpenResponse, ResponseEvent } from '#adapters/ui/responses/event.js'
import { responsesProjection } from '#adapters/ui/responses/responses-projection.js'
import type { ResponsesOptions } from '#adapters/ui/responses/responses-projection.js'

export const URL_OF = 'http://localhost/v1'

/** The official client over a handler. */
export function openAiOf(handler: (request: Request) => Promise<Response>): OpenAI {
  return new OpenAI({
    ...{ apiKey: 'none', baseURL: URL_OF, maxRetries: 0 },
    fetch: (url, init) => handler(new Request(url, init)),
  })
}

/** What the official client has after a stream: it adds up the events, and ends with the response of the last. */
export async function readBy(events: readonly ResponseEvent[]): Promise<OpenAIResponse> {
  const body = events.map(encodeResponse).join('') + RESPONSES_END
  const client = openAiOf(() =>
    Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } })),
  )
  return client.responses.stream({ model: 'm', input: 'x' }).finalResponse()
}

export interface Reading {
  readonly events: readonly ResponseEvent[]
  readonly response: OpenResponse
}

/** A reading of a run's events. */
export function readingOf(events: readonly AnyRunEvent[], options: ResponsesOptions = {}): Reading {
  const projection = responsesProjection(options)
  const told = [...events.flatMap((event) => [...projection.next(event)]), ...projection.end()]
  const { response } = projection
  if (response === null) throw new Error('The run has no such stretch.')
  return { events: told, response }
}

export function typesOf(events: readonly (ResponseEvent | ResponseStreamEvent)[]): string {
  return events.map(({ type }) => type.replace('response.', '')).join(' ')
}
