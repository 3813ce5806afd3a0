// The loop that one writes by hand: global `fetch`, and the whole history as JSON in each request.
import { checkedArguments, INSTRUCTIONS, MODEL } from '../work.js'

/** @typedef {{ id: string, type: 'function', function: { name: string, arguments: string } }} Call */
/** @typedef {{ content: string, tool_calls: Call[], finish_reason: string | null }} Reply */

/** @param {import('../work.js').Setting} setting @returns {import('../work.js').Contender} */
export function open({ baseUrl, tool }) {
  const { name, description, parameters } = tool
  const tools = [{ type: 'function', function: { name, description, parameters } }]

  /** @param {string} prompt @param {((text: string) => void) | undefined} onDelta */
  async function run(prompt, onDelta) {
    /** @type {object[]} */
    const messages = [
      { role: 'system', content: INSTRUCTIONS },
      { role: 'user', content: prompt },
    ]
    for (;;) {
      const response = await fetch(`${baseUrl}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: MODEL, messages, tools, ...(onDelta !== undefined && { stream: true }) }),
      })
      if (!response.ok) throw new Error(`Status ${response.status}: ${await response.text()}`)
      const reply = onDelta === undefined ? await wholeReply(response) : await streamedReply(response, onDelta)
      const { content, tool_calls, finish_reason } = reply
      if (finish_reason === null) throw new Error('The reply was cut.')
      if (tool_calls.length === 0) return content
      messages.push({ role: 'assistant', content, tool_calls })
      messages.push(...(await Promise.all(tool_calls.map(result))))
    }
  }

  /** @param {Call} call */
  async function result({ id, function: called }) {
    return { role: 'tool', tool_call_id: id, content: await tool.handler(checkedArguments(called.arguments)) }
  }

  return { ask: (prompt) => run(prompt, undefined), listen: run }
}

/** @param {Response} response @returns {Promise<Reply>} */
async function wholeReply(response) {
  const { choices } = /** @type {{ choices: { message: Reply, finish_reason: string }[] }} */ (await response.json())
  const choice = choices[0]
  if (choice === undefined) throw new Error('Expected a choice.')
  const { content, tool_calls = [] } = choice.message
  return { content, tool_calls, finish_reason: choice.finish_reason }
}

/** @param {Response} response @param {(text: string) => void} onDelta */
async function streamedReply(response, onDelta) {
  /** @type {Reply} */
  const reply = { content: '', tool_calls: [], finish_reason: null }
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of /** @type {AsyncIterable<Uint8Array>} */ (/** @type {unknown} */ (response.body))) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) addLine(reply, line, onDelta)
  }
  return reply
}

/** @param {Reply} reply @param {string} line @param {(text: string) => void} onDelta */
export function addLine(reply, line, onDelta) {
  if (!line.startsWith('data: ') || line === 'data: [DONE]') return
  addChunk(reply, JSON.parse(line.slice(6)), onDelta)
}

/**
 * @typedef {{ index: number, id?: string, function?: { name?: string, arguments?: string } }} CallPiece
 * @typedef {{ delta: { content?: string | null, tool_calls?: CallPiece[] }, finish_reason: string | null }} ChunkChoice
 */

/** @param {Reply} reply @param {{ choices: ChunkChoice[] }} chunk @param {(text: string) => void} onDelta */
export function addChunk(reply, chunk, onDelta) {
  const choice = chunk.choices[0]
  if (choice === undefined) return
  const { delta, finish_reason } = choice
  if (delta.content) {
    reply.content += delta.content
    onDelta(delta.content)
  }
  for (const { index, id, function: piece } of delta.tool_calls ?? []) {
    const call = (reply.tool_calls[index] ??= { id: id ?? '', type: 'function', function: { name: '', arguments: '' } })
    call.function.name += piece?.name ?? ''
    call.function.arguments += piece?.arguments ?? ''
    if (piece?.arguments) onDelta(piece.arguments)
  }
  if (finish_reason !== null) reply.finish_reason = finish_reason
}
