// The official client, by hand.
import OpenAI from 'openai'
import { answered, headOf, Lines } from './replies.js'
import type { Contender, OnDelta, Setting } from '../work.js'
import type { Reply } from './replies.js'

type Input = OpenAI.Responses.ResponseInputItem[]

export function open({ baseUrl, tool }: Setting): Contender {
  const client = new OpenAI({ apiKey: 'none', baseURL: baseUrl })
  const head = headOf(tool, false)

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
    const lines = new Lines(onDelta)
    const events = await client.responses.create({ ...head, input, stream: true })
    for await (const event of events) lines.take(event as Parameters<Lines['take']>[0])
    return lines.reply
  }

  return { ask: (prompt) => run(prompt), listen: run }
}
