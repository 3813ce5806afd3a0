// A loop without a library that knows what things cost: kept connections of `node:http`, a body that grows by appending,
// and whole lines cut out of the bytes of a stream.
import { Agent, request } from 'node:http'
import { checkedArguments, INSTRUCTIONS, MODEL } from '../work.js'
import { addLine } from './fetch.js'

/** @typedef {import('./fetch.js').Reply} Reply */

/** @param {import('../work.js').Setting} setting @returns {import('../work.js').Contender} */
export function open({ baseUrl, tool }) {
  const { name, description, parameters } = tool
  const tools = [{ type: 'function', function: { name, description, parameters } }]
  const { hostname, port, pathname } = new URL(`${baseUrl}/chat/completions`)
  const agent = new Agent({ keepAlive: true, scheduling: 'lifo' })

  /** @param {string} prompt @param {((text: string) => void) | undefined} onDelta */
  async function run(prompt, onDelta) {
    const head = JSON.stringify({ model: MODEL, tools, ...(onDelta !== undefined && { stream: true }) })
    const body = new GrowingBody(`${head.slice(0, -1)},"messages":[`)
    body.add({ role: 'system', content: INSTRUCTIONS })
    body.add({ role: 'user', content: prompt })
    for (;;) {
      const reply = onDelta === undefined ? wholeReply(await post(body)) : await post(body, onDelta)
      const { content, tool_calls, finish_reason } = /** @type {Reply} */ (reply)
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

  /** @param {GrowingBody} body @param {(text: string) => void} [onDelta] @returns {Promise<string | Reply>} */
  function post(body, onDelta) {
    return new Promise((resolve, reject) => {
      const headers = ['content-type', 'application/json', 'content-length', String(body.length + 2)]
      const options = { hostname, port, path: pathname, method: 'POST', agent, headers: ['host', hostname, ...headers] }
      const outgoing = request(options, (response) => {
        response.on('error', reject)
        if (response.statusCode === 200 && onDelta !== undefined) readEvents(response, onDelta, resolve)
        else readText(response, response.statusCode === 200 ? resolve : reject)
      })
      outgoing.on('error', reject)
      outgoing.write(body.bytes())
      outgoing.end(']}')
    })
  }

  return { ask: (prompt) => run(prompt, undefined), listen: run }
}

/** Serializes only what a turn adds. */
class GrowingBody {
  #bytes = Buffer.allocUnsafe(4096)
  #isEmpty = true
  length

  /** @param {string} head */
  constructor(head) {
    this.length = this.#bytes.write(head)
  }

  /** @param {object} message */
  add(message) {
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

  bytes() {
    return this.#bytes.subarray(0, this.length)
  }
}

/** @param {import('node:http').IncomingMessage} response @param {(text: string) => void} done */
function readText(response, done) {
  /** @type {Buffer[]} */
  const pieces = []
  response.on('data', (piece) => pieces.push(piece))
  response.on('end', () => done((pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces)).toString()))
}

/** @param {string | Reply} text @returns {Reply} */
function wholeReply(text) {
  const choice = JSON.parse(/** @type {string} */ (text)).choices[0]
  return {
    content: choice.message.content,
    tool_calls: choice.message.tool_calls ?? [],
    finish_reason: choice.finish_reason,
  }
}

/**
 * @param {import('node:http').IncomingMessage} response
 * @param {(text: string) => void} onDelta
 * @param {(reply: Reply) => void} done
 */
function readEvents(response, onDelta, done) {
  /** @type {Reply} */
  const reply = { content: '', tool_calls: [], finish_reason: null }
  /** @type {Buffer[]} */
  let waiting = []
  const read = (isEnd = false) => {
    const bytes = waiting.length === 1 && waiting[0] ? waiting[0] : Buffer.concat(waiting)
    const end = isEnd ? bytes.length : bytes.lastIndexOf(10) + 1
    const text = bytes.toString('utf8', 0, end)
    waiting = end === bytes.length ? [] : [bytes.subarray(end)]
    for (let from = 0, to = text.indexOf('\n'); to >= 0; from = to + 1, to = text.indexOf('\n', from)) {
      if (to > from) addLine(reply, text.slice(from, to), onDelta)
    }
  }
  // All chunks of one read of the socket come before the next microtask.
  let isPlanned = false
  response.on('data', (/** @type {Buffer} */ piece) => {
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
    done(reply)
  })
}
