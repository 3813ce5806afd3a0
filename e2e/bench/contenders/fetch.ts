// The loop that one writes by hand: global `fetch`, and the whole history as JSON in each request.
import { checkedArguments, INSTRUCTIONS, MODEL } from '../work.js'
import type { Contender, OnDelta, Setting } from '../work.js'

export interface Call {
  readonly id: string
  readonly type: 'function'
  readonly function: { name: string; arguments: string }
}

/** A reply, or the part of it that has arrived. */
export interface Reply {
  content: string
  readonly tool_calls: Call[]
  finish_reason: string | null
}

/** A reply that is not streamed, as it is sent. */
export interface WholeReply {
  readonly choices: readonly {
    readonly message: { readonly content: string; readonly tool_calls?: Call[] }
    readonly finish_reason: string
  }[]
}

export function open({ baseUrl, tool }: Setting): Contender {
  const { name, description, parameters } = tool
  const tools = [{ type: 'function', function: { name, description, parameters } }]

  async function run(prompt: string, onDelta?: OnDelta): Promise<string> {
    const messages: object[] = [
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
      const reply =
        onDelta === undefined ? replyIn((await response.json()) as WholeReply) : await streamedReply(response, onDelta)
      const { content, tool_calls, finish_reason } = reply
      if (finish_reason === null) throw new Error('The reply was cut.')
      if (tool_calls.length === 0) return content
      messages.push({ role: 'assistant', content, tool_calls })
      messages.push(...(await Promise.all(tool_calls.map(result))))
    }
  }

  async function result({ id, function: called }: Call) {
    return { role: 'tool', tool_call_id: id, content: await tool.handler(checkedArguments(called.arguments)) }
  }

  return { ask: (prompt) => run(prompt), listen: run }
}

export function replyIn({ choices }: WholeReply): Reply {
  const choice = choices[0]
  if (choice === undefined) throw new Error('Expected a choice.')
  const { content, tool_calls = [] } = choice.message
  return { content, tool_calls, finish_reason: choice.finish_reason }
}

async function streamedReply(response: Response, onDelta: OnDelta): Promise<Reply> {
  const reply: Reply = { content: '', tool_calls: [], finish_reason: null }
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of response.body as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) addLine(reply, line, onDelta)
  }
  return reply
}

export function addLine(reply: Reply, line: string, onDelta: OnDelta): void {
  if (!line.startsWith('data: ') || line === 'data: [DONE]') return
  addChunk(reply, JSON.parse(line.slice(6)) as Chunk, onDelta)
}

/** The fields that are read of one event of a stream. */
interface Chunk {
  readonly choices: readonly {
    readonly delta: { readonly content?: string | null; readonly tool_calls?: readonly CallPiece[] }
    readonly finish_reason: string | null
  }[]
}

interface CallPiece {
  readonly index: number
  readonly id?: string
  readonly function?: { readonly name?: string; readonly arguments?: string }
}

export function addChunk(reply: Reply, chunk: Chunk, onDelta: OnDelta): void {
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
