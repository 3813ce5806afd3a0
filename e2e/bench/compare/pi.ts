// pi's agent, on the Responses API, with a JSON Schema for the tool. An agent keeps its conversation, so that each run has one of its own.
import { INSTRUCTIONS, MODEL } from '../work.js'
import { loaderOf } from './load.js'
import type { Contender, OnDelta, Open } from '../work.js'

interface Core {
  readonly Agent: new (options: object) => Agent
}

interface Agent {
  readonly prompt: (text: string) => Promise<void>
  readonly subscribe: (listener: (event: AgentEvent) => void) => void
  readonly state: {
    readonly messages: readonly { readonly content: readonly { readonly text?: string }[] }[]
    readonly errorMessage?: string
  }
}

interface AgentEvent {
  readonly type: string
  readonly assistantMessageEvent?: { readonly type: string; readonly delta?: string }
}

interface Ai {
  readonly createModels: () => Models
}

interface Models {
  readonly setProvider: (provider: object) => void
  streamSimple(...args: unknown[]): unknown
}

interface Provider {
  readonly openaiProvider: () => object
}

const NO_COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

export async function open(): Promise<Open> {
  const load = await loaderOf('pi')
  const { Agent } = (await load('@earendil-works/pi-agent-core')) as Core
  const { createModels } = (await load('@earendil-works/pi-ai')) as Ai
  const { openaiProvider } = (await load('@earendil-works/pi-ai/providers/openai')) as Provider
  return ({ baseUrl, tool: { name, description, parameters, handler } }): Contender => {
    process.env['OPENAI_API_KEY'] = 'none'
    const models = createModels()
    models.setProvider(openaiProvider())
    const model = {
      ...{ id: MODEL, name: MODEL, api: 'openai-responses', provider: 'openai', baseUrl, reasoning: false },
      ...{ input: ['text'], cost: NO_COST, contextWindow: 1_000_000, maxTokens: 1000 },
    }
    const execute = async (_id: string, args: { id: string }): Promise<object> => {
      return { content: [{ type: 'text', text: await handler(args) }], details: {} }
    }
    const tools = [{ name, label: name, description, parameters, execute }]
    const streamFn = models.streamSimple.bind(models)

    async function run(prompt: string, onDelta?: OnDelta): Promise<string> {
      const agent = new Agent({ initialState: { systemPrompt: INSTRUCTIONS, model, tools }, streamFn })
      if (onDelta !== undefined) {
        agent.subscribe(({ assistantMessageEvent: event }) => {
          if (event?.type === 'text_delta' || event?.type === 'toolcall_delta') onDelta(event.delta ?? '')
        })
      }
      await agent.prompt(prompt)
      const { messages, errorMessage } = agent.state
      if (errorMessage !== undefined) throw new Error(errorMessage)
      return (
        messages
          .at(-1)
          ?.content.map(({ text = '' }) => text)
          .join('') ?? ''
      )
    }

    return { ask: (prompt) => run(prompt), listen: run }
  }
}
