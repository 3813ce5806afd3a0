// TanStack AI: `chat`, on the Responses API.
import { INSTRUCTIONS, MODEL } from '../work.js'
import { lookupArguments } from './lookup.js'
import { loaderOf } from './load.js'
import type { Contender, Open } from '../work.js'

interface TanStack {
  readonly chat: {
    (options: { stream: false; [option: string]: unknown }): Promise<string>
    (options: object): AsyncIterable<{ readonly type: string; readonly delta?: string }>
  }
  readonly maxIterations: (count: number) => unknown
  readonly toolDefinition: (options: object) => {
    readonly server: (execute: (args: { id: string }) => Promise<string>) => object
  }
}

interface OpenAi {
  readonly createOpenaiChat: (model: string, apiKey: string, options: object) => object
}

export async function open(): Promise<Open> {
  const load = await loaderOf('tanstack')
  const { chat, maxIterations, toolDefinition } = (await load('@tanstack/ai')) as TanStack
  const { createOpenaiChat } = (await load('@tanstack/ai-openai')) as OpenAi
  const inputSchema = await lookupArguments(load)
  return ({ baseUrl, tool: { name, description, handler } }): Contender => {
    const options = {
      adapter: createOpenaiChat(MODEL, 'none', { baseURL: baseUrl }),
      systemPrompts: [INSTRUCTIONS],
      tools: [toolDefinition({ name, description, inputSchema }).server(handler)],
      agentLoopStrategy: maxIterations(Infinity),
    }
    const messagesOf = (content: string): object[] => [{ role: 'user', content }]
    return {
      ask: (prompt) => chat({ ...options, messages: messagesOf(prompt), stream: false }),
      async listen(prompt, onDelta) {
        let text = ''
        for await (const { type, delta = '' } of chat({ ...options, messages: messagesOf(prompt) })) {
          if (type === 'TEXT_MESSAGE_CONTENT') text += delta
          if (type === 'TEXT_MESSAGE_CONTENT' || type === 'TOOL_CALL_ARGS') onDelta(delta)
        }
        return text
      },
    }
  }
}
