// The package over its default transport, with default options and a tool with a zod schema.
import { defineTool, Harness } from 'thinharness'
import { openai } from 'thinharness/providers'
import { z } from 'zod'
import { answerOf, INSTRUCTIONS, MODEL } from '../work.js'
import type { Contender, OnDelta, Setting } from '../work.js'
import type { RunEvent, ToolSpec } from 'thinharness'

export function open(setting: Setting): Contender {
  const harness = newHarness(setting, zodTool(setting))
  return contenderOf(() => harness)
}

/** As a server does that makes a harness for each request. */
export function openHarnessARun(setting: Setting): Contender {
  const tool = zodTool(setting)
  return contenderOf(() => newHarness(setting, tool))
}

/** Only makes the harness. */
export function openNewHarness(setting: Setting): Contender {
  const tool = zodTool(setting)
  const ask = (): Promise<string> => Promise.resolve(newHarness(setting, tool) instanceof Harness ? answerOf(1) : '')
  return { ask, listen: ask }
}

/** The tool has a JSON Schema. */
export function openWithoutZod(setting: Setting): Contender {
  const { name, description, parameters, handler } = setting.tool
  const call = (args: object): Promise<string> => handler(args as { id: string })
  const tool = defineTool({ name, description, parameters, handler: call })
  const harness = newHarness(setting, tool)
  return contenderOf(() => harness)
}

/** The events are read in batches. */
export function openBatches(setting: Setting): Contender {
  const harness = newHarness(setting, zodTool(setting))
  return {
    ...contenderOf(() => harness),
    async listen(prompt, onDelta) {
      const stream = harness.stream(prompt, { deltas: true })
      for await (const events of stream.batches()) for (const event of events) pass(event, onDelta)
      return (await stream.result).text
    },
  }
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

function zodTool({ tool: { name, description, handler } }: Setting): ToolSpec {
  const parameters = z.object({ id: z.string().describe('Its id.') })
  return defineTool({ name, description, parameters, handler })
}

function newHarness({ baseUrl }: Setting, tool: ToolSpec): Harness {
  const limits = { modelRequests: null, toolCalls: null }
  const model = openai(MODEL, { apiKey: 'none', baseUrl })
  return new Harness({ model, instructions: INSTRUCTIONS, builtinTools: [], tools: [tool], limits })
}
