// The official client, by hand.
import OpenAI from 'openai'
import { checkedArguments, INSTRUCTIONS, MODEL } from '../work.js'
import { addChunk } from './fetch.js'
import type { Contender, OnDelta, Setting } from '../work.js'
import type { Call, Reply } from './fetch.js'

type Message = OpenAI.Chat.ChatCompletionMessageParam

export function open({ baseUrl, tool }: Setting): Contender {
  const { name, description, parameters } = tool
  const client = new OpenAI({ apiKey: 'none', baseURL: baseUrl })
  const tools = [{ type: 'function' as const, function: { name, description, parameters } }]

  async function run(prompt: string, onDelta?: OnDelta): Promise<string> {
    const messages: Message[] = [
      { role: 'system', content: INSTRUCTIONS },
      { role: 'user', content: prompt },
    ]
    for (;;) {
      const reply = onDelta === undefined ? await whole(messages) : await streamed(messages, onDelta)
      const { content, tool_calls, finish_reason } = reply
      if (finish_reason === null) throw new Error('The reply was cut.')
      if (tool_calls.length === 0) return content
      messages.push({ role: 'assistant', content, tool_calls })
      messages.push(...(await Promise.all(tool_calls.map(result))))
    }
  }

  async function whole(messages: Message[]): Promise<Reply> {
    const { choices } = await client.chat.completions.create({ model: MODEL, messages, tools })
    const choice = choices[0]
    if (choice === undefined) throw new Error('Expected a choice.')
    const calls = (choice.message.tool_calls ?? []) as Call[]
    return { content: choice.message.content ?? '', tool_calls: calls, finish_reason: choice.finish_reason }
  }

  async function streamed(messages: Message[], onDelta: OnDelta): Promise<Reply> {
    const reply: Reply = { content: '', tool_calls: [], finish_reason: null }
    const stream = await client.chat.completions.create({ model: MODEL, messages, tools, stream: true })
    for await (const chunk of stream) addChunk(reply, chunk, onDelta)
    return reply
  }

  async function result({ id, function: called }: Call): Promise<Message> {
    return { role: 'tool', tool_call_id: id, content: await tool.handler(checkedArguments(called.arguments)) }
  }

  return { ask: (prompt) => run(prompt), listen: run }
}
