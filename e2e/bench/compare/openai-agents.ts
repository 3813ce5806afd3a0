// OpenAI Agents, on the Responses API. Its tracing is off: it would be sent to OpenAI.
import { INSTRUCTIONS, MODEL } from '../work.js'
import { lookupArguments } from './lookup.js'
import { loaderOf } from './load.js'
import type { Contender, Open } from '../work.js'

interface Agents {
  readonly Agent: new (options: object) => object
  readonly run: {
    (agent: object, prompt: string, options: { maxTurns: number; stream: true }): Promise<Stream>
    (agent: object, prompt: string, options: { maxTurns: number }): Promise<Result>
  }
  readonly tool: (options: object) => object
  readonly setTracingDisabled: (disabled: boolean) => void
}

interface Result {
  readonly finalOutput?: string
}

interface Stream extends Result, AsyncIterable<StreamEvent> {
  readonly completed: Promise<void>
}

interface StreamEvent {
  readonly type: string
  readonly data?: {
    readonly type: string
    readonly delta?: string
    readonly event?: { readonly type: string; readonly delta?: string }
  }
}

export async function open(): Promise<Open> {
  const load = await loaderOf('openai-agents')
  const { Agent, run, tool, setTracingDisabled } = (await load('@openai/agents')) as Agents
  const parameters = await lookupArguments(load)
  setTracingDisabled(true)
  return ({ baseUrl, tool: { name, description, handler } }): Contender => {
    process.env['OPENAI_BASE_URL'] = baseUrl
    process.env['OPENAI_API_KEY'] = 'none'
    const tools = [tool({ name, description, parameters, execute: handler })]
    const agent = new Agent({ name: 'bench', instructions: INSTRUCTIONS, model: MODEL, tools })
    const maxTurns = 100_000
    return {
      ask: async (prompt) => (await run(agent, prompt, { maxTurns })).finalOutput ?? '',
      async listen(prompt, onDelta) {
        const stream = await run(agent, prompt, { maxTurns, stream: true })
        for await (const { type, data } of stream) {
          if (type !== 'raw_model_stream_event') continue
          if (data?.type === 'output_text_delta') onDelta(data.delta ?? '')
          else if (data?.event?.type === 'response.function_call_arguments.delta') onDelta(data.event.delta ?? '')
        }
        await stream.completed
        return stream.finalOutput ?? ''
      },
    }
  }
}
