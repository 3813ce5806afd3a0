import { expect, test, vi } from 'vitest'
import { Harness, defineTool } from 'thinharness'
import { anthropic, openai, openaiCompatible } from 'thinharness/providers'
import { ScriptedModel } from 'thinharness/testing'
import type { Model } from 'thinharness'

const hashed: string[] = []
vi.mock(import('#util/platform/sha256.js'), async (load) => {
  const { sha256, ...others } = await load()
  const counting = (text: string): string => {
    hashed.push(text)
    return sha256(text)
  }
  return { ...others, sha256: counting }
})

const priced: string[] = []
vi.mock(import('@pydantic/genai-prices'), async (load) => {
  const table = await load()
  const calcPrice: typeof table.calcPrice = (usage, model, options) => {
    priced.push(model)
    return table.calcPrice(usage, model, options)
  }
  return { ...table, calcPrice }
})

const look = defineTool({
  name: 'look',
  description: 'Looks something up.',
  parameters: { type: 'object', properties: {}, additionalProperties: false },
  handler: () => 'Found.',
})

test('the configuration of a harness is hashed by its first run only', async () => {
  using model = new ScriptedModel().says('One.').says('Two.')
  const harness = new Harness({ model, tools: [look], instructions: 'Hash me once.' })
  await harness.run('First.')
  expect(hashed.some((text) => text.includes('Hash me once.'))).toBe(true)
  hashed.length = 0
  await harness.run('Second.')
  expect(hashed).toEqual([])
})

test('runs that begin together look up the price of their model once', async () => {
  using model = new ScriptedModel({ provider: 'openai', id: 'gpt-no-kept-price' }).always('Done.')
  const harness = new Harness({ model })
  await Promise.all(Array.from({ length: 50 }, () => harness.run('Go.')))
  const lookups = priced.filter((name) => name === 'gpt-no-kept-price')
  expect(lookups.length).toBeGreaterThan(0)
  // Two, if a minute begins in between.
  expect(lookups.length).toBeLessThanOrEqual(2)
})

test('a run with many tools does not search its list of them for each', async () => {
  using model = new ScriptedModel().says('Done.')
  const tools = Array.from({ length: 300 }, (_, index) => ({ ...look, name: `look_${index}` }))
  const harness = new Harness({ model, tools })
  let searches = 0
  const { indexOf, includes, find } = Array.prototype
  const spies = (['indexOf', 'includes', 'find'] as const).map((name) => {
    const original = { indexOf, includes, find }[name] as (...given: unknown[]) => unknown
    return vi.spyOn(Array.prototype, name).mockImplementation(function (this: unknown[], ...given: unknown[]) {
      if (this.length >= 300) searches += 1
      return original.apply(this, given)
    } as never)
  })
  try {
    await harness.run('Go.')
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
  expect(searches).toBeLessThan(30)
})

test.each<[string, object, (fetch: typeof globalThis.fetch) => Model]>([
  [
    'Responses',
    { id: 'r', status: 'completed', output: [{ type: 'message', content: [{ type: 'output_text', text: 'Done.' }] }] },
    (fetch) => openai('m', { apiKey: 'k', fetch }),
  ],
  [
    'chat completions',
    { id: 'c', choices: [{ message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' }] },
    (fetch) => openaiCompatible('m', { baseUrl: 'http://127.0.0.1:9', fetch }),
  ],
  [
    'Messages',
    { id: 'm', type: 'message', content: [{ type: 'text', text: 'Done.' }], stop_reason: 'end_turn' },
    (fetch) => anthropic('m', { apiKey: 'k', fetch }),
  ],
])('the tools of a harness are encoded for its first run only (%s)', async (_api, reply, make) => {
  const bodies: string[] = []
  const fetch: typeof globalThis.fetch = (_url, init) => {
    bodies.push(String(init?.body as unknown))
    return Promise.resolve(new Response(JSON.stringify(reply), { headers: { 'content-type': 'application/json' } }))
  }
  const model = make(fetch)
  const tools = [{ ...look, description: 'Encode me once.' }]
  const harness = new Harness({ model, tools, builtinTools: [] })
  expect((await harness.run('First.')).text).toBe('Done.')
  const { stringify } = JSON
  const encoded: string[] = []
  const spy = vi.spyOn(JSON, 'stringify').mockImplementation((...given: Parameters<typeof stringify>) => {
    const text = stringify(...given)
    if (text.includes('Encode me once.')) encoded.push(text)
    return text
  })
  try {
    await harness.run('Second.')
    await new Harness({ model, tools, builtinTools: [] }).run('Third.')
  } finally {
    spy.mockRestore()
  }
  expect(encoded).toEqual([])
  // A changed tool is told.
  await new Harness({ model, tools: [{ ...look, description: 'Another one.' }], builtinTools: [] }).run('Fourth.')
  const told = bodies.map((body) => [body.includes('Encode me once.'), body.includes('Another one.')])
  expect(told).toEqual([...Array.from({ length: 3 }, () => [true, false]), [false, true]])
})
