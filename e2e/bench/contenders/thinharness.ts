// The package, over its default transport.
import { defineTool, Harness } from 'thinharness'
import { INSTRUCTIONS, MODEL } from '../work.js'
import type { Contender, OnDelta, Open, Setting } from '../work.js'
import type { RunEvent } from 'thinharness'

export function open(setting: Setting): Contender {
  return contenderOf(openHarness(setting))
}

/** A model whose price is known, as those of users are: the costs of runs are counted by default. */
const PRICED_MODEL = 'gpt-5-mini'

/** The Responses API, a tool with a zod schema, and default options. */
export async function openResponses(): Promise<Open> {
  const { LookupArguments } = await import('./lookup-arguments.js')
  return ({ baseUrl, tool: { name, description, handler } }) => {
    process.env['OPENAI_BASE_URL'] = baseUrl
    process.env['OPENAI_API_KEY'] = 'none'
    const tool = defineTool({ name, description, parameters: LookupArguments, handler })
    const limits = { modelRequests: null }
    return contenderOf(
      new Harness({ model: `openai:${PRICED_MODEL}`, instructions: INSTRUCTIONS, tools: [tool], limits }),
    )
  }
}

function contenderOf(harness: Harness): Contender {
  return {
    async ask(prompt) {
      const { text } = await harness.run(prompt)
      return text
    },
    async listen(prompt, onDelta) {
      const stream = harness.stream(prompt, { deltas: true })
      for await (const event of stream) pass(event, onDelta)
      const { text } = await stream.result
      return text
    },
  }
}

/** The same, with the events read in batches. */
export function openBatches(setting: Setting): Contender {
  const harness = openHarness(setting)
  return {
    ...open(setting),
    async listen(prompt, onDelta) {
      const stream = harness.stream(prompt, { deltas: true })
      for await (const events of stream.batches()) {
        for (const event of events) pass(event, onDelta)
      }
      const { text } = await stream.result
      return text
    },
  }
}

function pass(event: RunEvent, onDelta: OnDelta): void {
  if (event.kind === 'text_delta' || event.kind === 'tool_input_delta') onDelta(event.text)
}

function openHarness({ baseUrl, tool }: Setting): Harness {
  const { name, description, parameters, handler } = tool
  return new Harness({
    model: `local:${MODEL}@${baseUrl}`,
    instructions: INSTRUCTIONS,
    builtinTools: [],
    tools: [defineTool({ name, description, parameters, handler: (args) => handler(args as { id: string }) })],
    limits: { modelRequests: null },
  })
}
