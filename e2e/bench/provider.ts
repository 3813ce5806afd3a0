// A provider in a process of its own: it answers as fast as it can, so that the other side is measured. The bytes are those
// of the scripted provider; only the ids of the calls are replaced in each turn.
import { createServer, request } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { scriptedProvider } from 'thinharness/testing'
import { answerOf, readPrompt } from './work.js'
import type { PromptFields } from './work.js'
import type { ServerResponse } from 'node:http'
import type { Reply } from 'thinharness/testing'

/** The fields that are read of a request. */
interface Body {
  /** Of chat completions. */
  readonly messages?: readonly { readonly role: string; readonly content: string }[]
  /** Of the Responses API. */
  readonly input?: readonly { readonly type?: string; readonly output?: string }[]
  readonly tools?: readonly unknown[]
}

type Api = 'chat' | 'responses'
const PATHS = { chat: '/chat/completions', responses: '/responses' } as const

const ID = 'call_00000000'
/** Of calls and responses; those of a run differ, since some libraries tell messages apart by them. */
const IDS = /\b(call|resp)_00000000/g
const EVENTS_A_TICK = 250
const runs = new Map<string, { turns: number; readonly isStreamed: boolean }>()
const replies = new Map<string, Promise<string>>()

const server = createServer((incoming, response) => {
  const pieces: Buffer[] = []
  incoming.on('data', (piece: Buffer) => pieces.push(piece))
  incoming.on('end', () => {
    const api = incoming.url?.endsWith(PATHS.responses) === true ? 'responses' : 'chat'
    answer(pieces, api, response).catch((error: unknown) => response.writeHead(400).end(String(error)))
  })
})
server.keepAliveTimeout = 0
server.listen(0, '127.0.0.1', 2048, () => {
  const address = server.address()
  if (address !== null && typeof address === 'object') console.log(`http://127.0.0.1:${address.port}/v1`)
})
// The process that started this one has ended.
process.stdin.resume().on('end', () => process.exit())

async function answer(pieces: readonly Buffer[], api: Api, response: ServerResponse): Promise<void> {
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
  const text = await replyFor(asked, api, { isLast, isStreamed })
  if (asked.latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, asked.latencyMs))
  const reply = isLast ? text : text.replaceAll(IDS, (_, kind: string) => `${kind}_${String(turn).padStart(8, '0')}`)
  if (isStreamed) return stream(reply, response)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(reply) })
  response.end(reply)
}

/** Each event is an HTTP chunk of its own, as providers send them; many come together. */
async function stream(text: string, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  const events = text.split(/(?<=\n\n)/)
  for (const [index, event] of events.entries()) {
    response.write(event)
    if (index % EVENTS_A_TICK === EVENTS_A_TICK - 1) await setImmediate()
  }
  response.end()
}

/** The whole conversation is checked once a run: all of it was sent, with the results of the tool. */
function checkBody(bytes: Buffer, { turns, calls, resultChars }: PromptFields): void {
  const body = JSON.parse(bytes.toString()) as Body
  const { messages = [], input = [] } = body
  const outputs = [
    ...messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : [])),
    ...input.flatMap(({ type, output = '' }) => (type === 'function_call_output' ? [output] : [])),
  ]
  const results = outputs.filter((output) => output.includes('x'.repeat(resultChars))).length
  const replies = messages.filter(({ role }) => role === 'assistant').length
  const asked = input.filter(({ type }) => type === 'function_call').length
  const expected = (turns - 1) * calls
  if (results !== expected || replies + asked / calls !== turns - 1 || body.tools?.length !== 1) {
    throw new Error(`Expected ${turns - 1} replies, ${expected} results, got ${replies} + ${asked}, ${results}.`)
  }
}

interface ReplyForm {
  readonly isLast: boolean
  readonly isStreamed: boolean
}

function replyFor({ calls, argumentChars, deltas }: PromptFields, api: Api, { isLast, isStreamed }: ReplyForm) {
  const key = `${api} ${isLast ? `answer ${deltas}` : `calls ${calls} ${argumentChars}`} ${isStreamed}`
  let made = replies.get(key)
  if (made === undefined) {
    const each = { name: 'lookup', arguments: { id: 'y'.repeat(argumentChars) } }
    const list = Array.from({ length: calls }, (_, index) => ({ ...each, callId: `${ID}_${index}` }))
    made = rendered(isLast ? { text: answerOf(deltas) } : { calls: list }, api, isStreamed)
    replies.set(key, made)
  }
  return made
}

/** A reply as the scripted provider sends it. */
async function rendered(reply: Reply, api: Api, stream: boolean): Promise<string> {
  const provider = await scriptedProvider({ record: false, chunks: 'whole' })
  provider.always(reply)
  const prompt = [{ role: 'user', content: '' }]
  const body = { model: 'bench', stream, ...(api === 'chat' ? { messages: prompt } : { input: prompt }) }
  const text = await post(`${provider.url[api]}${PATHS[api]}`, JSON.stringify(body))
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
