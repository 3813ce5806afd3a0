// LangChain's `createAgent`, on the Responses API.
import { INSTRUCTIONS, MODEL } from '../work.js'
import { lookupArguments } from './lookup.js'
import { loaderOf } from './load.js'
import type { Contender, Open } from '../work.js'

interface LangChain {
  readonly createAgent: (options: object) => Agent
  readonly tool: (handler: (args: { id: string }) => Promise<string>, options: object) => object
}

interface Agent {
  readonly invoke: (input: object, options: object) => Promise<{ readonly messages: readonly Message[] }>
  readonly stream: (input: object, options: object) => Promise<AsyncIterable<readonly [Message, object]>>
}

interface Message {
  readonly type: string
  readonly text: string
  readonly tool_call_chunks?: readonly { readonly args?: string }[]
}

interface OpenAi {
  readonly ChatOpenAI: new (options: object) => object
}

export async function open(): Promise<Open> {
  const load = await loaderOf('langchain')
  const { createAgent, tool } = (await load('langchain')) as LangChain
  const { ChatOpenAI } = (await load('@langchain/openai')) as OpenAi
  const schema = await lookupArguments(load)
  return ({ baseUrl, tool: { name, description, handler } }): Contender => {
    const configuration = { baseURL: baseUrl }
    const model = new ChatOpenAI({ model: MODEL, apiKey: 'none', useResponsesApi: true, configuration })
    const tools = [tool(handler, { name, description, schema })]
    const agent = createAgent({ model, tools, systemPrompt: INSTRUCTIONS })
    const inputOf = (content: string): object => ({ messages: [{ role: 'user', content }] })
    const options = { recursionLimit: 1_000_000 }
    return {
      ask: async (prompt) => (await agent.invoke(inputOf(prompt), options)).messages.at(-1)?.text ?? '',
      async listen(prompt, onDelta) {
        let text = ''
        const stream = await agent.stream(inputOf(prompt), { ...options, streamMode: 'messages' })
        for await (const [message] of stream) {
          if (message.type !== 'ai') continue
          for (const { args } of message.tool_call_chunks ?? []) if (args) onDelta(args)
          if (message.text === '') continue
          text += message.text
          onDelta(message.text)
        }
        return text
      },
    }
  }
}
