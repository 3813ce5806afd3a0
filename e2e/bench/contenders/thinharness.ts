// The package over its default transport, with default options and a tool with a zod schema.
import { defineTool, Harness } from 'thinharness'
import { openai } from 'thinharness/providers'
import { answerOf, INSTRUCTIONS, MODEL } from '../work.js'
import type { Contender, OnDelta, Open, Setting } from '../work.js'
import type { RunEvent, ToolSpec } from 'thinharness'

/** Opens a contender by what makes its harness. */
type Opened = (newHarness: () => Harness) => Contender

export const open: Opened = (newHarness) => {
  const harness = newHarness()
  return contenderOf(() => harness)
}

/** As a server does that makes a harness for each request. */
export const openHarnessARun: Opened = (newHarness) => contenderOf(newHarness)

/** Only makes the harness. */
export const openNewHarness: Opened = (newHarness) => {
  const ask = (): Promise<string> => Promise.resolve(newHarness() instanceof Harness ? answerOf(1) : '')
  return { ask, listen: ask }
}

/** The events are read in batches. */
export const openBatches: Opened = (newHarness) => {
  const harness = newHarness()
  return {
    ...contenderOf(() => harness),
    async listen(prompt, onDelta) {
      const stream = harness.stream(prompt, { deltas: true })
      for await (const events of stream.batches()) for (const event of events) pass(event, onDelta)
      return (await stream.result).text
    },
  }
}

/** The tool has a zod schema. */
export async function withZod(opened: Opened): Promise<Open> {
  const { z } = await import('zod')
  const parameters = z.object({ id: z.string().describe('Its id.') })
  return ({ baseUrl, tool: { name, description, handler } }) => {
    return opened(makerOf(baseUrl, defineTool({ name, description, parameters, handler })))
  }
}

/** The tool has a JSON Schema. */
export function withoutZod(opened: Opened): Open {
  return ({ baseUrl, tool: { name, description, parameters, handler } }) => {
    const call = (args: object): Promise<string> => handler(args as { id: string })
    return opened(makerOf(baseUrl, defineTool({ name, description, parameters, handler: call })))
  }
}

function makerOf(baseUrl: Setting['baseUrl'], tool: ToolSpec): () => Harness {
  const limits = { modelRequests: null, toolCalls: null }
  const model = openai(MODEL, { apiKey: 'none', baseUrl })
  return () => new Harness({ model, instructions: INSTRUCTIONS, builtinTools: [], tools: [tool], limits })
}

function contenderOf(harness: () => Harness): Contender {
  return {
    ask: async (prompt) => (await harness().run(prompt)).text,
    async listen(prompt, onDelta) {
      const stream = harness().stream(prompt, { deltas: true })
      for await (const event of stream) pass(event, onDelta)
      return (await stream.result).text
    },
  }
}

function pass(event: RunEvent, onDelta: OnDelta): void {
  if (event.kind === 'text_delta' || event.kind === 'tool_input_delta') onDelta(event.text)
}
