// Strands, on the Responses API. An agent keeps its conversation, so that each run has one of its own. Its window of 40 messages is off:
// the whole conversation is sent, as the others do.
import { INSTRUCTIONS, MODEL } from '../work.js'
import { lookupArguments } from './lookup.js'
import { loaderOf } from './load.js'
import type { Contender, Open } from '../work.js'

interface Strands {
  readonly Agent: new (options: object) => Agent
  readonly NullConversationManager: new () => object
  readonly tool: (options: object) => object
}

interface Agent {
  readonly invoke: (prompt: string) => Promise<Result>
  readonly stream: (prompt: string) => AsyncGenerator<StreamEvent, Result>
}

interface Result {
  readonly lastMessage: { readonly content: readonly { readonly text?: string }[] }
}

interface StreamEvent {
  readonly type: string
  readonly event?: {
    readonly type: string
    readonly delta?: { readonly type: string; readonly text?: string; readonly input?: string }
  }
}

interface Models {
  readonly OpenAIModel: new (options: object) => object
}

export async function open(): Promise<Open> {
  const load = await loaderOf('strands')
  const { Agent, NullConversationManager, tool } = (await load('@strands-agents/sdk')) as Strands
  const { OpenAIModel } = (await load('@strands-agents/sdk/models/openai')) as Models
  const inputSchema = await lookupArguments(load)
  return ({ baseUrl, tool: { name, description, handler } }): Contender => {
    const clientConfig = { baseURL: baseUrl }
    const model = new OpenAIModel({ api: 'responses', modelId: MODEL, apiKey: 'none', clientConfig })
    const tools = [tool({ name, description, inputSchema, callback: handler })]
    const newAgent = (): Agent => {
      const conversationManager = new NullConversationManager()
      return new Agent({ model, tools, systemPrompt: INSTRUCTIONS, printer: false, conversationManager })
    }
    return {
      ask: async (prompt) => textOf(await newAgent().invoke(prompt)),
      async listen(prompt, onDelta) {
        const stream = newAgent().stream(prompt)
        for (;;) {
          const { done, value } = await stream.next()
          if (done === true) return textOf(value)
          const delta = value.type === 'modelStreamUpdateEvent' ? value.event?.delta : undefined
          if (delta !== undefined) onDelta(delta.text ?? delta.input ?? '')
        }
      },
    }
  }
}

function textOf({ lastMessage }: Result): string {
  return lastMessage.content.map(({ text = '' }) => text).join('')
}
