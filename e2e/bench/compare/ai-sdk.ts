// The AI SDK: `generateText` and `streamText`, on the Responses API.
import { INSTRUCTIONS, MODEL } from '../work.js'
import { lookupArguments } from './lookup.js'
import { loaderOf } from './load.js'
import type { Contender, Open } from '../work.js'

interface Sdk {
  readonly generateText: (options: object) => Promise<{ readonly text: string }>
  readonly streamText: (options: object) => { readonly fullStream: AsyncIterable<Part>; readonly text: Promise<string> }
  readonly tool: (options: object) => object
  readonly isStepCount: (count: number) => unknown
}

type Part = { readonly type: string; readonly text?: string; readonly delta?: string }

interface OpenAi {
  readonly createOpenAI: (options: object) => (model: string) => object
}

export async function open(): Promise<Open> {
  const load = await loaderOf('ai-sdk')
  const { generateText, streamText, tool, isStepCount } = (await load('ai')) as Sdk
  const { createOpenAI } = (await load('@ai-sdk/openai')) as OpenAi
  const inputSchema = await lookupArguments(load)
  return ({ baseUrl, tool: { description, handler } }): Contender => {
    const options = {
      model: createOpenAI({ baseURL: baseUrl, apiKey: 'none' })(MODEL),
      instructions: INSTRUCTIONS,
      tools: { lookup: tool({ description, inputSchema, execute: handler }) },
      stopWhen: isStepCount(Infinity),
    }
    return {
      ask: async (prompt) => (await generateText({ ...options, prompt })).text,
      async listen(prompt, onDelta) {
        const { fullStream, text } = streamText({ ...options, prompt })
        for await (const { type, text = '', delta = '' } of fullStream) {
          if (type === 'text-delta') onDelta(text)
          else if (type === 'tool-input-delta') onDelta(delta)
        }
        return text
      },
    }
  }
}
