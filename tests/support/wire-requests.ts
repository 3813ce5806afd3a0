import type { ScriptedProvider } from 'thinharness/testing'

/** An API of the scripted provider, and a request that it accepts. */
export interface WireCase {
  readonly api: 'responses' | 'chat' | 'openrouter' | 'messages'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Readonly<Record<string, unknown>>
}

const SCHEMA = { type: 'object', properties: {} }
const BEARER = { authorization: 'Bearer secret' }
const CHAT = {
  model: 'm',
  messages: [{ role: 'user', content: 'Hi.' }],
  tools: [{ type: 'function', function: { name: 'read', parameters: SCHEMA } }],
}

export const WIRE_CASES: readonly WireCase[] = [
  {
    api: 'responses',
    path: '/responses',
    headers: BEARER,
    body: { model: 'm', input: 'Hi.', tools: [{ type: 'function', name: 'read', parameters: SCHEMA }] },
  },
  { api: 'chat', path: '/chat/completions', headers: BEARER, body: CHAT },
  { api: 'openrouter', path: '/chat/completions', headers: BEARER, body: CHAT },
  {
    api: 'messages',
    path: '/v1/messages',
    headers: { 'x-api-key': 'secret', 'anthropic-version': '2023-06-01' },
    body: {
      model: 'm',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'Hi.' }],
      tools: [{ name: 'read', input_schema: SCHEMA }],
    },
  },
]

/** Sends a request of an API, with other fields in its body. A field that is undefined is left out. */
export function post(
  provider: ScriptedProvider,
  { api, path, headers, body }: WireCase,
  fields: Readonly<Record<string, unknown>> = {},
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(`${provider.url[api]}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ ...body, ...fields }),
    ...(signal && { signal }),
  })
}

/** The chunks of an answer as they arrive; the error instead of the next one when the connection breaks. */
export async function chunksOf(response: Response): Promise<{ chunks: string[]; error: unknown }> {
  const chunks: string[] = []
  try {
    for await (const chunk of response.body ?? []) chunks.push(Buffer.from(chunk).toString('latin1'))
    return { chunks, error: null }
  } catch (error) {
    return { chunks, error }
  }
}

/** The text of a reply of any API, whole or as a stream of events. */
export function textOfReply(answer: string): string {
  if (answer.startsWith('{')) return textIn(JSON.parse(answer) as unknown)
  const data = answer
    .split('\n')
    .flatMap((line) => (/^data: \{/.test(line) ? [JSON.parse(line.slice(6)) as unknown] : []))
  return data.map(deltaIn).join('')
}

interface Readable {
  readonly type?: string
  readonly delta?: string | { readonly text?: string }
  readonly choices?: readonly { readonly delta?: { content?: string }; readonly message?: { content: string } }[]
  readonly content?: readonly { readonly text: string }[]
  readonly output?: readonly { readonly content: readonly { readonly text: string }[] }[]
}

function deltaIn(event: unknown): string {
  const { type, delta, choices } = event as Readable
  if (typeof delta === 'object') return delta.text ?? ''
  if (type === 'response.output_text.delta') return delta ?? ''
  return choices?.[0]?.delta?.content ?? ''
}

function textIn(reply: unknown): string {
  const { choices, content, output } = reply as Readable
  return choices?.[0]?.message?.content ?? (content ?? output?.[0]?.content)?.[0]?.text ?? ''
}
