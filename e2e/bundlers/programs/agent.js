import { defineTool, Harness } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'

/** A run with one tool call; the answer is the result of the tool. */
export async function ask(options = {}) {
  const look = defineTool({
    name: 'look',
    description: 'Looks something up.',
    parameters: {
      type: 'object',
      properties: { id: { type: 'string', pattern: '^[0-9]+$' } },
      required: ['id'],
      additionalProperties: false,
    },
    handler: ({ id }) => `Order ${id} is in transit.`,
  })
  const model = new ScriptedModel().calls('look', { id: '1042' }).replies(({ heard }) => heard.outputs[0].content)
  const harness = new Harness({ model, builtinTools: [], tools: [look], ...options })
  const stream = harness.stream('Where is order 1042?')
  let deltas = ''
  for await (const event of stream) if (event.kind === 'text_delta') deltas += event.text
  const { text } = await stream.result
  await harness.close()
  if (text !== deltas) throw new Error(`The stream said ${deltas}, the result ${text}.`)
  return text
}
