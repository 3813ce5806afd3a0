// A fast loop without a library: kept connections of `node:http`, a body that grows by appending, and whole lines cut out
// of the bytes of a stream.
import { Agent, request } from 'node:http'
import { checkedArguments, INSTRUCTIONS, MODEL } from '../work.js'
import { addLine, replyIn } from './fetch.js'
import type { Contender, OnDelta, Setting } from '../work.js'
import type { Reply, WholeReply } from './fetch.js'
import type { IncomingMessage } from 'node:http'

export function open({ baseUrl, tool }: Setting): Contender {
  const { name, description, parameters } = tool
  const tools = [{ type: 'function', function: { name, description, parameters } }]
  const { hostname, port, pathname } = new URL(`${baseUrl}/chat/completions`)
  const agent = new Agent({ keepAlive: true, scheduling: 'lifo' })

  async function run(prompt: string, onDelta?: OnDelta): Promise<string> {
    const head = JSON.stringify({ model: MODEL, tools, ...(onDelta !== undefined && { stream: true }) })
    const body = new GrowingBody(`${head.slice(0, -1)},"messages":[`)
    body.add({ role: 'system', content: INSTRUCTIONS })
    body.add({ role: 'user', content: prompt })
    for (;;) {
      const { content, tool_calls, finish_reason } = await post(body, onDelta)
      if (finish_reason === null) throw new Error('The reply was cut.')
      if (tool_calls.length === 0) return content
      body.add({ role: 'assistant', content, tool_calls })
      const results = await Promise.all(
        tool_calls.map((call) => tool.handler(checkedArguments(call.function.arguments))),
      )
      for (const [index, content] of results.entries()) {
        body.add({ role: 'tool', tool_call_id: tool_calls[index]?.id, content })
      }
    }
  }

  function post(body: GrowingBody, onDelta: OnDelta | undefined): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const headers = ['content-type', 'application/json', 'content-length', String(body.length + 2)]
      const options = { hostname, port, path: pathname, method: 'POST', agent, headers: ['host', hostname, ...headers] }
      const outgoing = request(options, (response) => {
        response.on('error', reject)
        if (response.statusCode !== 200) readText(response, (text) => reject(new Error(text)))
        else if (onDelta === undefined) readText(response, (text) => resolve(wholeReply(text)))
        else {
          const reply: Reply = { content: '', tool_calls: [], finish_reason: null }
          readLines(
            response,
            (line) => addLine(reply, line, onDelta),
            () => resolve(reply),
          )
        }
      })
      outgoing.on('error', reject)
      outgoing.write(body.bytes())
      outgoing.end(']}')
    })
  }

  return { ask: (prompt) => run(prompt), listen: run }
}

/** Serializes only what a turn adds. */
export class GrowingBody {
  #bytes = Buffer.allocUnsafe(4096)
  #isEmpty = true
  length: number

  constructor(head: string) {
    this.length = this.#bytes.write(head)
  }

  add(message: object): void {
    const text = `${this.#isEmpty ? '' : ','}${JSON.stringify(message)}`
    this.#isEmpty = false
    const needed = this.length + Buffer.byteLength(text)
    if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2))
      this.#bytes.copy(grown)
      this.#bytes = grown
    }
    this.length += this.#bytes.write(text, this.length)
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.length)
  }
}

export function readText(response: IncomingMessage, done: (text: string) => void): void {
  const pieces: Buffer[] = []
  response.on('data', (piece: Buffer) => pieces.push(piece))
  response.on('end', () => done((pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces)).toString()))
}

function wholeReply(text: string): Reply {
  return replyIn(JSON.parse(text) as WholeReply)
}

/** Calls `onLine` for each line that is not empty, and `done` at the end. */
export function readLines(response: IncomingMessage, onLine: (line: string) => void, done: () => void): void {
  let waiting: Buffer[] = []
  const read = (isEnd = false) => {
    const bytes = waiting.length === 1 && waiting[0] ? waiting[0] : Buffer.concat(waiting)
    const end = isEnd ? bytes.length : bytes.lastIndexOf(10) + 1
    const text = bytes.toString('utf8', 0, end)
    waiting = end === bytes.length ? [] : [bytes.subarray(end)]
    for (let from = 0, to = text.indexOf('\n'); to >= 0; from = to + 1, to = text.indexOf('\n', from)) {
      if (to > from) onLine(text.slice(from, to))
    }
  }
  // All chunks of one read of the socket come before the next microtask.
  let isPlanned = false
  response.on('data', (piece: Buffer) => {
    waiting.push(piece)
    if (isPlanned) return
    isPlanned = true
    queueMicrotask(() => {
      isPlanned = false
      read()
    })
  })
  response.on('end', () => {
    read(true)
    done()
  })
}
