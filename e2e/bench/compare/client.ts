// The official client on the Responses API, by hand, with a zod schema for the tool.
import OpenAI from 'openai'
import { answered, headOf } from '../contenders/responses.js'
import type { Contender, OnDelta, Setting } from '../work.js'
import type { Reply } from '../contenders/responses.js'

type Input = OpenAI.Responses.ResponseInputItem[]

export function open({ baseUrl, tool }: Setting): Contender {
  const client = new OpenAI({ apiKey: 'none', baseURL: baseUrl })
  const head = headOf(tool, false) as OpenAI.Responses.ResponseCreateParamsNonStreaming

  async function run(prompt: string, onDelta?: OnDelta): Promise<string> {
    const input: Input = [{ role: 'user', content: prompt }]
    for (;;) {
      const reply =
        onDelta === undefined ? await client.responses.create({ ...head, input }) : await streamed(input, onDelta)
      const { text, added } = await answered(reply as Reply, tool)
      if (added.length === 0) return text
      input.push(...(added as Input))
    }
  }

  async function streamed(input: Input, onDelta: OnDelta): Promise<Reply> {
    let reply: Reply | undefined
    for await (const event of await client.responses.create({ ...head, input, stream: true })) {
      if (event.type === 'response.output_text.delta' || event.type === 'response.function_call_arguments.delta')
        onDelta(event.delta)
      else if (event.type === 'response.completed') reply = event.response as Reply
    }
    if (reply === undefined) throw new Error('The reply was cut.')
    return reply
  }

  return { ask: (prompt) => run(prompt), listen: run }
}
