// A provider in a process of its own: it answers as fast as it can, so that the other side is measured. The bytes are those
// of the scripted provider; only the ids of the calls are replaced in each turn.
import { createServer, request } from 'node:http'
import { once } from 'node:events'
import { scriptedProvider } from 'thinharness/testing'
import { answerOf, readPrompt } from './work.js'
import type { PromptFields } from './work.js'
import type { ServerResponse } from 'node:http'
import type { Reply } from 'thinharness/testing'

/** The fields that are read of a request. */
interface Body {
  readonly input: readonly { readonly type?: string; readonly output?: string }[]
  readonly tools?: readonly { readonly name?: string }[]
}

const ID = 'call_00000000'
/** Of calls and responses; those of a run differ, since some libraries tell messages apart by them. */
const IDS = /\b(call|resp)_00000000/g
/** Events are sent in writes of at least so many bytes, as they come from a provider over a busy line. */
const WRITE_BYTES = 8192
const runs = new Map<string, { turns: number; readonly isStreamed: boolean }>()
const replies = new Map<string, Promise<string>>()

const server = createServer((incoming, response) => {
  const pieces: Buffer[] = []
  incoming.on('data', (piece: Buffer) => pieces.push(piece))
  incoming.on('end', () => {
    answer(pieces, response).catch((error: unknown) => response.writeHead(400).end(String(error)))
  })
})
server.keepAliveTimeout = 0
server.listen(0, '127.0.0.1', 2048, () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') console.log(`http://127.0.0.1:${address.port}/v1`)
})
// The process that started this one has ended.
process.stdin.resume().on('end', () => process.exit())

async function answer(pieces: readonly Buffer[], response: ServerResponse): Promise<void> {
  const start = Buffer.concat(pieces.slice(0, 3)).subarray(0, 4096).toString()
  const asked = readPrompt(start)
  const run = runs.get(asked.run) ?? { turns: 0, isStreamed: Buffer.concat(pieces).includes('"stream":true') }
  runs.set(asked.run, run)
  const turn = (run.turns += 1)
  const isLast = turn === asked.turns
  if (isLast) {
    runs.delete(asked.run)
    checkBody(Buffer.concat(pieces), asked)
  }
  const { isStreamed } = run
  const text = await replyFor(asked, { isLast, isStreamed })
  if (asked.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, asked.latencyMs))
  const reply = isLast ? text : text.replaceAll(IDS, (_, kind: string) => `${kind}_${String(turn).padStart(8, '0')}`)
  if (isStreamed) return stream(reply, response)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(reply) })
  response.end(reply)
}

async function stream(text: string, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  let from = 0
  while (text.length - from > WRITE_BYTES) {
    const end = text.indexOf('\n\n', from + WRITE_BYTES) + 2
    if (end === 1) break
    const hasRoom = response.write(text.slice(from, end))
    from = end
    if (!hasRoom) await once(response, 'drain')
  }
  response.end(text.slice(from))
}

/** The whole conversation is checked once a run: all of it was sent, with the results of the tool. */
function checkBody(bytes: Buffer, { turns, calls, resultChars }: PromptFields): void {
  const body = JSON.parse(bytes.toString()) as Body
  const { input, tools } = body
  const outputs = input.flatMap(({ type, output = '' }) => (type === 'function_call_output' ? [output] : []))
  const results = outputs.filter((output) => output.includes('x'.repeat(resultChars))).length
  const asked = input.filter(({ type }) => type === 'function_call').length
  const expected = (turns - 1) * calls
  if (results !== expected || asked !== expected || tools?.some(({ name }) => name === 'lookup') !== true)
    throw new Error(
      `Expected ${expected} calls and results, got ${asked} and ${results}, with the tools ${JSON.stringify(tools)}.`,
    )
}

interface ReplyForm {
  readonly isLast: boolean
  readonly isStreamed: boolean
}

function replyFor({ calls, argumentChars, deltas }: PromptFields, { isLast, isStreamed }: ReplyForm) {
  const key = `${isLast ? `answer ${deltas}` : `calls ${calls} ${argumentChars}`} ${isStreamed}`
  let made = replies.get(key)
  if (made === undefined) {
    const each = { name: 'lookup', arguments: { id: 'y'.repeat(argumentChars) } }
    const list = Array.from({ length: calls }, (_, index) => ({ ...each, callId: `${ID}_${index}` }))
    made = rendered(isLast ? { text: answerOf(deltas) } : { calls: list }, isStreamed)
    replies.set(key, made)
  }
  return made
}

/** A reply as the scripted provider sends it. */
async function rendered(reply: Reply, stream: boolean): Promise<string> {
  const provider = await scriptedProvider({ record: false, chunks: 'whole' })
  provider.always(reply)
  const body = { model: 'bench', stream, input: [{ role: 'user', content: '' }] }
  const text = await post(`${provider.url.responses}/responses`, JSON.stringify(body))
  await provider.close()
  return text.replaceAll(/\bresp_\w+/g, reply.text === undefined ? 'resp_00000000' : 'resp_answer')
}

function post(url: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: 'POST' }, (incoming) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      incoming.on('end', () => resolve(text))
    })
    outgoing.on('error', reject).end(body)
  })
}
