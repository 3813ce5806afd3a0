// Mastra, on the Responses API by the provider of the AI SDK.
import { INSTRUCTIONS, MODEL } from '../work.js'
import { lookupArguments } from './lookup.js'
import { loaderOf } from './load.js'
import type { Contender, Open } from '../work.js'

interface Agents {
  readonly Agent: new (options: object) => Agent
}

interface Agent {
  readonly generate: (prompt: string, options: object) => Promise<{ readonly text: string }>
  readonly stream: (prompt: string, options: object) => Promise<Stream>
}

interface Stream {
  readonly fullStream: AsyncIterable<{ readonly type: string; readonly payload?: Payload }>
  readonly text: Promise<string>
}

interface Payload {
  readonly text?: string
  readonly argsTextDelta?: string
}

interface Tools {
  readonly createTool: (options: object) => object
}

interface OpenAi {
  readonly createOpenAI: (options: object) => (model: string) => object
}

export async function open(): Promise<Open> {
  process.env['MASTRA_TELEMETRY_DISABLED'] = '1'
  const load = await loaderOf('mastra')
  const { Agent } = (await load('@mastra/core/agent')) as Agents
  const { createTool } = (await load('@mastra/core/tools')) as Tools
  const { createOpenAI } = (await load('@ai-sdk/openai')) as OpenAi
  const inputSchema = await lookupArguments(load)
  return ({ baseUrl, tool: { name, description, handler } }): Contender => {
    const model = createOpenAI({ baseURL: baseUrl, apiKey: 'none' })(MODEL)
    const tools = { lookup: createTool({ id: name, description, inputSchema, execute: handler }) }
    const agent = new Agent({ id: 'bench', name: 'bench', instructions: INSTRUCTIONS, model, tools })
    const options = { maxSteps: 100_000 }
    return {
      ask: async (prompt) => (await agent.generate(prompt, options)).text,
      async listen(prompt, onDelta) {
        const stream = await agent.stream(prompt, options)
        for await (const { type, payload } of stream.fullStream) {
          if (type === 'text-delta') onDelta(payload?.text ?? '')
          else if (type === 'tool-call-delta') onDelta(payload?.argsTextDelta ?? '')
        }
        return stream.text
      },
    }
  }
}
