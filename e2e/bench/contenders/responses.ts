// The hand-written loops on the Responses API, with a zod schema for the tool: global `fetch`, and an optimized one.
import { Agent, request } from 'node:http'
import { z } from 'zod'
import { INSTRUCTIONS, MODEL } from '../work.js'
import { GrowingBody, readLines, readText } from './careful.js'
import { LookupArguments } from './lookup-arguments.js'
import type { Contender, OnDelta, Setting, Tool } from '../work.js'

/** An item of a reply; the fields of a text and of a call. */
interface Item {
  readonly type: string
  readonly content?: readonly { readonly text: string }[]
  readonly call_id?: string
  readonly arguments?: string
}

export interface Reply {
  readonly status: string
  readonly output: readonly Item[]
}

export function openFetch({ baseUrl, tool }: Setting): Contender {
  async function run(prompt: string, onDelta?: OnDelta): Promise<string> {
    const input: object[] = [{ role: 'user', content: prompt }]
    const isStreamed = onDelta !== undefined
    for (;;) {
      const response = await fetch(`${baseUrl}/responses`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...headOf(tool, isStreamed), input }),
      })
      if (!response.ok) throw new Error(`Status ${response.status}: ${await response.text()}`)
      const reply = isStreamed ? await streamedReply(response, onDelta) : ((await response.json()) as Reply)
      const { text, added } = await answered(reply, tool)
      if (added.length === 0) return text
      input.push(...added)
    }
  }
  return { ask: (prompt) => run(prompt), listen: run }
}

export function openCareful({ baseUrl, tool }: Setting): Contender {
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
      const headers = ['content-type', 'application/json', 'content-length', String(body.length + 2)]
      const options = { hostname, port, path: pathname, method: 'POST', agent, headers: ['host', hostname, ...headers] }
      const outgoing = request(options, (response) => {
        response.on('error', reject)
        if (response.statusCode !== 200) readText(response, (text) => reject(new Error(text)))
        else if (onDelta === undefined) readText(response, (text) => resolve(JSON.parse(text) as Reply))
        else {
          const stream = new Stream(onDelta)
          const done = (): void => resolve(stream.reply)
          readLines(response, (line) => stream.add(line), done)
        }
      })
      outgoing.on('error', reject)
      // Head and body in one write.
      outgoing.cork()
      outgoing.write(body.bytes())
      outgoing.end(']}')
    })
  }

  return { ask: (prompt) => run(prompt), listen: run }
}

const heads = new Map<boolean, object>()

/** Everything but the conversation. */
export function headOf({ name, description }: Tool, isStreamed: boolean): object {
  let head = heads.get(isStreamed)
  if (head === undefined) {
    const { $schema: _, ...parameters } = z.toJSONSchema(LookupArguments)
    const tools = [{ type: 'function', name, description, parameters, strict: true }]
    head = { model: MODEL, instructions: INSTRUCTIONS, tools, ...(isStreamed && { stream: true }) }
    heads.set(isStreamed, head)
  }
  return head
}

/** The text of a reply, and the items that it adds to the conversation if it has calls. */
export async function answered(
  { status, output }: Reply,
  tool: Tool,
): Promise<{ text: string; added: readonly object[] }> {
  if (status !== 'completed') throw new Error(`The reply is ${status}.`)
  const calls = output.filter(({ type }) => type === 'function_call')
  if (calls.length === 0) {
    return { text: output.flatMap(({ content = [] }) => content.map(({ text }) => text)).join(''), added: [] }
  }
  const results = await Promise.all(
    calls.map(async ({ call_id, arguments: text = '' }) => {
      return {
        type: 'function_call_output',
        call_id,
        output: await tool.handler(LookupArguments.parse(JSON.parse(text))),
      }
    }),
  )
  return { text: '', added: [...output, ...results] }
}

async function streamedReply(response: Response, onDelta: OnDelta): Promise<Reply> {
  const stream = new Stream(onDelta)
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of response.body as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) stream.add(line)
  }
  return stream.reply
}

interface StreamEvent {
  readonly type: string
  readonly delta?: string
  readonly response?: Reply
}

/** The final event contains the whole reply. */
class Stream {
  readonly #onDelta: OnDelta
  #reply: Reply | undefined

  constructor(onDelta: OnDelta) {
    this.#onDelta = onDelta
  }

  add(line: string): void {
    if (!line.startsWith('data: ')) return
    const { type, delta = '', response } = JSON.parse(line.slice(6)) as StreamEvent
    if (type === 'response.output_text.delta' || type === 'response.function_call_arguments.delta') this.#onDelta(delta)
    else if (type === 'response.completed') this.#reply = response
  }

  get reply(): Reply {
    if (this.#reply === undefined) throw new Error('The reply was cut.')
    return this.#reply
  }
}
