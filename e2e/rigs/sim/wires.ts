import type { LogStore, Model, TranscriptEntry } from 'thinharness'
import { anthropic, gemini, openai, openaiCompatible } from 'thinharness/providers'
import { conversationOf } from '#core/state/closing.js'
import { foldLog } from '#run/resume/read-log.js'
import { WireRefusal } from '#testing/wire/api.js'
import type { WireApi, WireBody } from '#testing/wire/api.js'
import { chatApi } from '#testing/wire/chat.js'
import { geminiApi, withTarget } from '#testing/wire/gemini.js'
import { messagesApi } from '#testing/wire/messages.js'
import { responsesApi } from '#testing/wire/responses.js'
import { TOOL_NAMES } from './process.js'

type Fetch = typeof globalThis.fetch

/** A model, and what its API said of the last request: null if it accepted it, undefined if there was none. */
interface Wire {
  readonly name: string
  readonly model: Model
  refusal: string | null | undefined
}

/** A `fetch` that reads requests as an API does, and answers none: only whether a request is valid matters here. */
function wireOf(name: string, makeApi: () => WireApi, makeModel: (fetch: Fetch) => Model): Wire {
  const answer: Fetch = (url, init) => {
    const api = makeApi()
    const body = withTarget(new Request(url).url, JSON.parse(init?.body as string) as WireBody)
    try {
      api.read({ headers: Object.fromEntries(new Headers(init?.headers)), body })
      wire.refusal = null
    } catch (error) {
      if (!(error instanceof WireRefusal)) throw error
      wire.refusal = error.message
    }
    return Promise.resolve(Response.json(api.error(400, wire.refusal ?? 'No answer.'), { status: 400 }))
  }
  const wire: Wire = { name, model: makeModel(answer), refusal: undefined }
  return wire
}

const KEY = { apiKey: 'any', maxRetries: 0 }
const WIRES: readonly Wire[] = [
  wireOf('messages', messagesApi, (fetch) => anthropic('claude-sonnet-5', { fetch, ...KEY })),
  wireOf('responses', responsesApi, (fetch) => openai('gpt-5.5', { fetch, ...KEY })),
  wireOf(
    'gemini',
    () => geminiApi,
    (fetch) => gemini('gemini-3-pro', { fetch, ...KEY }),
  ),
  wireOf(
    'chat',
    () => chatApi('openai'),
    (fetch) => openaiCompatible('m', { fetch, ...KEY, baseUrl: 'http://any.invalid/v1' }),
  ),
]

const CONSTANTS = {
  instructions: '',
  tools: TOOL_NAMES.map((name) => ({ name, description: name, parameters: { type: 'object' } })),
  structuredOutput: null,
  settings: {},
}

/** Continues the conversation of a run with each of the APIs. A strict API rejects a history that is not whole. */
export async function wireProblems(log: LogStore, runId: string): Promise<readonly string[]> {
  const found = await foldLog(log, runId)
  if (found === null) return [`There is no run ${runId}.`]
  const { entries } = conversationOf(found.state)
  const content = [{ type: 'text' as const, text: 'Continue.' }]
  const prompt = { id: 'next', at: new Date(0).toISOString(), role: 'user', content } as const
  const problems: string[] = []
  for (const wire of WIRES) {
    const problem = await problemWith(wire, [...entries, prompt])
    if (problem !== null) problems.push(`${wire.name} rejects the conversation of ${runId}: ${problem}`)
  }
  return problems
}

async function problemWith(wire: Wire, view: readonly TranscriptEntry[]): Promise<string | null> {
  wire.refusal = undefined
  const options = { signal: new AbortController().signal, generation: 0 }
  const error: unknown = await wire.model
    .openSession()
    .turn(view, CONSTANTS, options)
    .then(
      () => 'It answered.',
      (thrown: unknown) => thrown,
    )
  const refusal = refusalOf(wire)
  return refusal === undefined ? String(error) : refusal
}

/** Written by the answer of the API in the meantime. */
function refusalOf({ refusal }: Wire): Wire['refusal'] {
  return refusal
}
