import { defineTool, Harness } from 'thinharness'
import type { LogStore, Model } from 'thinharness'
import { anthropic, openai, openaiCompatible } from 'thinharness/providers'
import { Renderer } from '../../src/testing/rendering.js'
import { WireRefusal } from '../../src/testing/wire/api.js'
import type { WireApi, WireBody } from '../../src/testing/wire/api.js'
import { chatApi } from '../../src/testing/wire/chat.js'
import { messagesApi } from '../../src/testing/wire/messages.js'
import { responsesApi } from '../../src/testing/wire/responses.js'
import { TOOL_NAMES } from './process.js'

type Fetch = typeof globalThis.fetch

/** A `fetch` that answers as an API does: with status 400 and the API's own message if a request is not valid. */
function fetchOf(makeApi: () => WireApi): Fetch {
  const renderer = new Renderer()
  return (_url, init) => {
    const api = makeApi()
    const body = JSON.parse(init?.body as string) as WireBody
    const headers = Object.fromEntries(new Headers(init?.headers))
    try {
      const conversation = api.read({ headers, body })
      const streamed = body['stream'] === true
      const { events } = renderer.render('Ok.', { api, conversation, model: String(body['model']), streamed })
      const type = streamed ? 'text/event-stream' : 'application/json'
      return Promise.resolve(new Response(events.join(''), { headers: { 'content-type': type } }))
    } catch (error) {
      if (!(error instanceof WireRefusal)) throw error
      return Promise.resolve(Response.json(api.error(error.status, error.message), { status: error.status }))
    }
  }
}

const MODELS: Readonly<Record<string, Model>> = {
  messages: anthropic('claude-sonnet-5', { fetch: fetchOf(() => messagesApi), apiKey: 'any', maxRetries: 0 }),
  responses: openai('gpt-5.5', { fetch: fetchOf(responsesApi), apiKey: 'any', maxRetries: 0 }),
  chat: openaiCompatible('m', {
    fetch: fetchOf(() => chatApi('openai')),
    baseUrl: 'http://any.invalid/v1',
    maxRetries: 0,
  }),
}

const tools = TOOL_NAMES.map((name) =>
  defineTool({ name, description: name, parameters: { type: 'object' }, handler: () => 'ok' }),
)
const HARNESSES = Object.entries(MODELS).map(
  ([wire, model]) => [wire, new Harness({ model, tools, builtinTools: [] })] as const,
)

/**
 * Continues the conversation of a run with one of the APIs: `number` says which. A strict API rejects a history that is not
 * whole.
 */
export async function wireProblems(log: LogStore, runId: string, number: number): Promise<readonly string[]> {
  const chosen = HARNESSES[number % HARNESSES.length]
  if (chosen === undefined) return []
  const [wire, harness] = chosen
  return harness.run('Continue.', { log, history: { runId } }).then(
    () => [],
    (error: unknown) => [`${wire} rejects the conversation of ${runId}: ${String(error)}`],
  )
}
