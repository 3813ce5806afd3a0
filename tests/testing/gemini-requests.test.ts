import { describe, expect, test } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'

const SAID = { role: 'user', parts: [{ text: 'Hi.' }] }
const SIGNED = { functionCall: { name: 'read', args: {} }, thoughtSignature: 'skip_thought_signature_validator' }
const CALL = { role: 'model', parts: [SIGNED] }
const RESULT = { functionResponse: { name: 'read', response: { output: 'A' } } }
const ANSWER = { role: 'user', parts: [RESULT] }
const READ = { name: 'read', parametersJsonSchema: { type: 'object', properties: {} } }

function send(url: string, body: object, model = 'gemini-3-pro', method = 'generateContent'): Promise<Response> {
  const headers = { 'x-goog-api-key': 'secret-1' }
  return fetch(`${url}/models/${model}:${method}`, { method: 'POST', headers, body: JSON.stringify(body) })
}

async function refusalOf(body: object, model?: string): Promise<{ status: number; message: string }> {
  const provider = await scriptedProvider()
  try {
    const response = await send(provider.url.gemini, body, model)
    const { error } = (await response.json()) as { error: { message: string } }
    return { status: response.status, message: error.message }
  } finally {
    await provider.close()
  }
}

describe('the scripted Gemini API rejects', () => {
  test.each<[string, object, string]>([
    ['no contents', { contents: [] }, 'contents is not specified'],
    ['contents of another type', { contents: 'Hi.' }, "Invalid value at 'contents'"],
    ['a content without parts', { contents: [{ role: 'user', parts: [] }] }, 'parts must not be empty'],
    ['an unknown role', { contents: [{ ...SAID, role: 'assistant' }] }, 'Please use a valid role: user, model.'],
    ['a call without a result', { contents: [SAID, CALL, SAID] }, 'number of function response parts'],
    ['a call without a result at the end', { contents: [SAID, CALL] }, 'number of function response parts'],
    ['a result without a call', { contents: [SAID, ANSWER] }, 'immediately after a function call turn'],
    [
      'a result twice',
      { contents: [SAID, CALL, { role: 'user', parts: [RESULT, RESULT] }] },
      'number of function response',
    ],
    [
      'a result of another function',
      { contents: [SAID, CALL, { role: 'user', parts: [{ functionResponse: { name: 'write', response: {} } }] }] },
      '`write` does not answer the call',
    ],
    [
      'a call after a reply',
      { contents: [SAID, { role: 'model', parts: [{ text: 'a' }] }, CALL, ANSWER] },
      'user turn',
    ],
    [
      'a call without a signature',
      { contents: [SAID, { role: 'model', parts: [{ functionCall: SIGNED.functionCall }] }, ANSWER] },
      'missing a thought_signature',
    ],
    [
      'a signature that was changed',
      { contents: [SAID, { role: 'model', parts: [{ ...SIGNED, thoughtSignature: 'Eqw' }] }, ANSWER] },
      'Thought signature is not valid',
    ],
    [
      'a bad name of a function',
      { contents: [SAID], tools: [{ functionDeclarations: [{ name: '1 a' }] }] },
      'Invalid function name',
    ],
    ['a function twice', { contents: [SAID], tools: [{ functionDeclarations: [READ, READ] }] }, 'Duplicate function'],
    [
      'a function whose parameters are no object',
      { contents: [SAID], tools: [{ functionDeclarations: [{ ...READ, parametersJsonSchema: { type: 'array' } }] }] },
      'should be of type OBJECT',
    ],
    [
      'a choice of a function that is not there',
      {
        contents: [SAID],
        tools: [{ functionDeclarations: [READ] }],
        toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['write'] } },
      },
      'a name that is not declared',
    ],
    [
      'a call that is forced while the reply must be JSON',
      {
        contents: [SAID],
        toolConfig: { functionCallingConfig: { mode: 'ANY' } },
        generationConfig: { responseMimeType: 'application/json' },
      },
      'Forced function calling',
    ],
  ])('%s', async (_name, body, message) => {
    const refusal = await refusalOf(body)
    expect(refusal.status).toBe(400)
    expect(refusal.message).toContain(message)
  })

  test('signatures are not asked for before the last message of a person, nor by the second generation', async () => {
    const unsigned = { role: 'model', parts: [{ functionCall: SIGNED.functionCall }] }
    const later = { role: 'model', parts: [{ text: 'a' }] }
    await using provider = await scriptedProvider()
    provider.says('One.').says('Two.')
    const past = await send(provider.url.gemini, { contents: [SAID, unsigned, ANSWER, later, SAID] })
    const second = await send(provider.url.gemini, { contents: [SAID, unsigned, ANSWER] }, 'gemini-2.5-pro')
    expect([past.status, second.status]).toEqual([200, 200])
    expect(provider.requests.map(({ headers }) => 'x-goog-api-key' in headers)).toEqual([false, false])
  })
})

test('a load server answers whole and streamed by the path', async () => {
  await using provider = await scriptedProvider({ record: false })
  provider.always('One two.')
  const whole = await send(provider.url.gemini, { contents: [SAID] })
  expect(await whole.json()).toMatchObject({ candidates: [{ content: { parts: [{ text: 'One two.' }] } }] })
  const stream = await send(provider.url.gemini, { contents: [SAID] }, 'gemini-3-pro', 'streamGenerateContent?alt=sse')
  expect(await stream.text()).toMatch(/^data: \{.*\}\n\n/)
})
