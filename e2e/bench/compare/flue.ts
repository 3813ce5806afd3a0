// Flue, on the Responses API by pi's provider. Each run is a conversation of its own, which Flue keeps in an SQLite database in memory.
// Its tools have Valibot schemas.
import { INSTRUCTIONS, MODEL } from '../work.js'
import { loaderOf } from './load.js'
import type { Contender, OnDelta, Open } from '../work.js'

interface Runtime {
  readonly init: (agent: () => string) => {
    readonly dispatch: (prompt: string) => Promise<object>
    readonly read: (receipt: object, options: object) => Promise<{ readonly text: string }>
  }
  readonly useModel: (model: string) => void
  readonly useTool: (tool: object) => void
}

interface Node {
  readonly start: (options: object) => Promise<object>
}

interface Chunk {
  readonly type: string
  readonly delta?: string
  readonly input?: unknown
}

interface Valibot {
  readonly object: (fields: object) => object
  readonly pipe: (...parts: object[]) => object
  readonly string: () => object
  readonly description: (text: string) => object
}

interface Ai {
  readonly createProvider: (options: object) => object
}

interface Api {
  readonly openAIResponsesApi: () => object
}

const NO_COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

export async function open(): Promise<Open> {
  const load = await loaderOf('flue')
  const { init, useModel, useTool } = (await load('@flue/runtime')) as Runtime
  const { start } = (await load('@flue/runtime/node')) as Node
  const v = (await load('valibot')) as Valibot
  const { createProvider } = (await load('@earendil-works/pi-ai')) as Ai
  const { openAIResponsesApi } = (await load('@earendil-works/pi-ai/api/openai-responses.lazy')) as Api
  const input = v.object({ id: v.pipe(v.string(), v.description('Its id.')) })
  return ({ baseUrl, tool: { name, description, handler } }): Contender => {
    const model = {
      ...{ id: MODEL, name: MODEL, api: 'openai-responses', provider: 'bench', baseUrl, reasoning: false },
      ...{ input: ['text'], cost: NO_COST, contextWindow: 10_000_000, maxTokens: 1000 },
    }
    const auth = { apiKey: { name: 'bench', resolve: () => Promise.resolve({ auth: { apiKey: 'none' } }) } }
    const provider = createProvider({ id: 'bench', baseUrl, models: [model], api: openAIResponsesApi(), auth })
    function Bench(): string {
      useModel(`bench/${MODEL}`)
      useTool({ name, description, input, run: ({ data }: { data: { id: string } }) => handler(data) })
      return INSTRUCTIONS
    }
    const started = start({ agents: [Bench], providers: [provider] })
    async function run(prompt: string, onDelta?: OnDelta): Promise<string> {
      await started
      const agent = init(Bench)
      const onEvent = ({ type, delta = '', input }: Chunk): void => {
        if (type === 'message-delta') onDelta?.(delta)
        else if (type === 'tool-input') onDelta?.(JSON.stringify(input))
      }
      const receipt = await agent.dispatch(prompt)
      return (await agent.read(receipt, onDelta === undefined ? {} : { onEvent })).text
    }
    return { ask: (prompt) => run(prompt), listen: run }
  }
}
