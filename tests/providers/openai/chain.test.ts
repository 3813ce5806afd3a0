import { expect, test } from 'vitest'
import { defineTool, Harness } from 'thinharness'
import { openai } from 'thinharness/providers'
import { call, eventsOf, message, response } from './replies.js'

const REPLIES = [response([call('call_1', '{}')]), response([message('Done.')])]
const NOT_FOUND = {
  message: "Previous response with id 'resp_1' not found.",
  type: 'invalid_request_error',
  param: 'previous_response_id',
  code: 'previous_response_not_found',
}

interface Body {
  readonly stream?: boolean
  readonly previous_response_id?: string
  readonly input: readonly { readonly type?: string; readonly role?: string }[]
}

/** A server that forgets each response, and the bodies that it received. */
function forgetful(): { readonly fetch: typeof globalThis.fetch; readonly bodies: Body[] } {
  const bodies: Body[] = []
  const replies = [...REPLIES]
  const fetch: typeof globalThis.fetch = async (url, init) => {
    const body = (await new Request(url, init).json()) as Body
    bodies.push(body)
    if (body.previous_response_id !== undefined) return Response.json({ error: NOT_FOUND }, { status: 400 })
    const reply = replies.shift()!
    if (body.stream !== true) return Response.json(reply)
    const events = eventsOf(reply).map((event) => `data: ${JSON.stringify(event)}\n\n`)
    return new Response(events.join(''), { headers: { 'content-type': 'text/event-stream' } })
  }
  return { fetch, bodies }
}

test.each([false, true])(
  'PR-31 a chain whose response the server no longer has is sent whole, once, and reported (streamed: %s)',
  async (deltas) => {
    const { fetch, bodies } = forgetful()
    const lookup = defineTool({
      name: 'lookup',
      description: 'Looks it up.',
      parameters: { type: 'object' },
      handler: () => 'found',
    })
    const model = openai('gpt-5.5', { apiKey: 'k', fetch, chain: true, maxRetries: 0 })
    const run = new Harness({ model, tools: [lookup], builtinTools: [] }).stream('Go.', { deltas })
    const retries: string[] = []
    for await (const event of run) if (event.kind === 'transport_retry') retries.push(event.reason)

    expect((await run.result).text).toBe('Done.')
    expect(
      bodies.map(({ input, previous_response_id: id }) => [id, input.map(({ type, role }) => role ?? type)]),
    ).toEqual([
      [undefined, ['user']],
      [expect.any(String), ['function_call_output']],
      [undefined, ['user', 'function_call', 'function_call_output']],
    ])
    expect(retries).toEqual([expect.stringContaining('not found')])
  },
)

test('PR-31 a response id of the caller that the server does not have is an error', async () => {
  const { fetch, bodies } = forgetful()
  const extraBody = { previous_response_id: 'resp_0' }
  const model = openai('gpt-5.5', { apiKey: 'k', fetch, chain: true, maxRetries: 0, extraBody })

  await expect(new Harness({ model, builtinTools: [] }).run('Go.')).rejects.toMatchObject({ status: 400 })
  expect(bodies).toHaveLength(1)
})
