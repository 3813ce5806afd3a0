// A fast loop without a library: kept connections of `node:http`, a body that grows by appending, and whole lines cut out
// of the bytes of a stream.
import { Agent, request } from 'node:http'
import { answered, headOf, Lines } from './replies.js'
import type { Contender, OnDelta, Setting } from '../work.js'
import type { Reply } from './replies.js'
import type { IncomingMessage } from 'node:http'

export function open({ baseUrl, tool }: Setting): Contender {
  const { hostname, port, pathname } = new URL(`${baseUrl}/responses`)
  const agent = new Agent({ keepAlive: true, scheduling: 'lifo' })

  async function run(prompt: string, onDelta?: OnDelta): Promise<string> {
    const head = JSON.stringify(headOf(tool, onDelta !== undefined))
    const body = new GrowingBody(`${head.slice(0, -1)},"input":[`)
    body.add({ role: 'user', content: prompt })
    for (;;) {
      const { text, added } = await answered(await post(body, onDelta), tool)
      if (added.length === 0) return text
      for (const item of added) body.add(item)
    }
  }

  function post(body: GrowingBody, onDelta: OnDelta | undefined): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const bytes = body.bytes()
      const headers = {
        'content-type': 'application/json',
        authorization: 'Bearer none',
        'content-length': bytes.length,
      }
      const outgoing = request({ hostname, port, path: pathname, method: 'POST', agent, headers }, (response) => {
        response.on('error', reject)
        if (response.statusCode !== 200) readText(response, (text) => reject(new Error(text)))
        else if (onDelta === undefined) readText(response, (text) => resolve(JSON.parse(text) as Reply))
        else {
          const lines = new Lines(onDelta)
          readLines(
            response,
            (line) => lines.add(line),
            () => resolve(lines.reply),
          )
        }
      })
      outgoing.on('error', reject)
      // Head and body in one write.
      outgoing.end(bytes)
    })
  }

  return { ask: (prompt) => run(prompt), listen: run }
}

/** Serializes only what a turn adds. */
class GrowingBody {
  #bytes = Buffer.allocUnsafe(4096)
  #isEmpty = true
  #length: number

  constructor(head: string) {
    this.#length = this.#bytes.write(head)
  }

  add(item: object): void {
    const text = `${this.#isEmpty ? '' : ','}${JSON.stringify(item)}`
    this.#isEmpty = false
    const needed = this.#length + Buffer.byteLength(text) + END.length
    if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2))
      this.#bytes.copy(grown, 0, 0, this.#length)
      this.#bytes = grown
    }
    this.#length += this.#bytes.write(text, this.#length)
  }

  /** The request so far; the next item is written over its end. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length + this.#bytes.write(END, this.#length))
  }
}

const END = ']}'

function readText(response: IncomingMessage, done: (text: string) => void): void {
  const pieces: Buffer[] = []
  response.on('data', (piece: Buffer) => pieces.push(piece))
  response.on('end', () => done((pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces)).toString()))
}

/** Calls `onLine` for each line that is not empty, and `done` at the end. */
function readLines(response: IncomingMessage, onLine: (line: string) => void, done: () => void): void {
  let rest: Buffer | undefined
  response.on('data', (piece: Buffer) => {
    const bytes = rest === undefined ? piece : Buffer.concat([rest, piece])
    const end = bytes.lastIndexOf(10) + 1
    rest = end < bytes.length ? bytes.subarray(end) : undefined
    const text = bytes.toString('utf8', 0, end)
    for (let from = 0, to = text.indexOf('\n'); to >= 0; from = to + 1, to = text.indexOf('\n', from)) {
      if (to > from) onLine(text.slice(from, to))
    }
  })
  response.on('end', done)
}
