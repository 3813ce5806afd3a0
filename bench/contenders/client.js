// The official client, by hand.
import OpenAI from 'openai'
import { checkedArguments, INSTRUCTIONS, MODEL } from '../work.js'
import { addChunk } from './fetch.js'

/** @typedef {import('openai').default.Chat.ChatCompletionMessageParam} Message */

/** @param {import('../work.js').Setting} setting @returns {import('../work.js').Contender} */
export function open({ baseUrl, tool }) {
  const { name, description, parameters } = tool
  const client = new OpenAI({ apiKey: 'none', baseURL: baseUrl })
  const tools = [{ type: /** @type {const} */ ('function'), function: { name, description, parameters } }]

  /** @param {string} prompt @param {((text: string) => void) | undefined} onDelta */
  async function run(prompt, onDelta) {
    /** @type {Message[]} */
    const messages = [
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

  /** @param {Message[]} messages */
  async function whole(messages) {
    const { choices } = await client.chat.completions.create({ model: MODEL, messages, tools })
    const choice = choices[0]
    if (choice === undefined) throw new Error('Expected a choice.')
    const calls = /** @type {import('./fetch.js').Call[]} */ (choice.message.tool_calls ?? [])
    return { content: choice.message.content ?? '', tool_calls: calls, finish_reason: choice.finish_reason }
  }

  /** @param {Message[]} messages @param {(text: string) => void} onDelta */
  async function streamed(messages, onDelta) {
    /** @type {import('./fetch.js').Reply} */
    const reply = { content: '', tool_calls: [], finish_reason: null }
    const stream = await client.chat.completions.create({ model: MODEL, messages, tools, stream: true })
    for await (const chunk of stream) addChunk(reply, chunk, onDelta)
    return reply
  }

  /** @param {import('./fetch.js').Call} call @returns {Promise<Message>} */
  async function result({ id, function: called }) {
    return { role: 'tool', tool_call_id: id, content: await tool.handler(checkedArguments(called.arguments)) }
  }

  return { ask: (prompt) => run(prompt, undefined), listen: run }
}
