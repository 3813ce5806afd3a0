// What the loops without a library share: the fields that they read of the Responses API, and the tool.
import { checkedArguments, INSTRUCTIONS, MODEL } from '../work.js'
import type { OnDelta, Tool } from '../work.js'

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

/** Everything of a request but the conversation. */
export function headOf({ name, description, parameters }: Tool, isStreamed: boolean) {
  const tools = [{ type: 'function' as const, name, description, parameters, strict: true }]
  return { model: MODEL, instructions: INSTRUCTIONS, tools, store: false, ...(isStreamed && { stream: true as const }) }
}

/** The text of a reply, and the items that it adds to the conversation if it has calls. */
export async function answered({ status, output }: Reply, { handler }: Tool) {
  if (status !== 'completed') throw new Error(`The reply is ${status}.`)
  const calls = output.filter(({ type }) => type === 'function_call')
  if (calls.length === 0) {
    return { text: output.flatMap(({ content = [] }) => content.map(({ text }) => text)).join(''), added: [] }
  }
  const results = await Promise.all(
    calls.map(async ({ call_id, arguments: text = '' }) => {
      return { type: 'function_call_output', call_id, output: await handler(checkedArguments(text)) }
    }),
  )
  return { text: '', added: [...output, ...results] }
}

interface StreamEvent {
  readonly type: string
  readonly delta?: string
  readonly response?: Reply
}

/** Reads a stream line by line; the final event contains the whole reply. */
export class Lines {
  readonly #onDelta: OnDelta
  #reply: Reply | undefined

  constructor(onDelta: OnDelta) {
    this.#onDelta = onDelta
  }

  add(line: string): void {
    if (line.startsWith('data: ')) this.take(JSON.parse(line.slice(6)) as StreamEvent)
  }

  take({ type, delta = '', response }: StreamEvent): void {
    if (type === 'response.output_text.delta' || type === 'response.function_call_arguments.delta') this.#onDelta(delta)
    else if (type === 'response.completed') this.#reply = response
  }

  get reply(): Reply {
    if (this.#reply === undefined) throw new Error('The reply was cut.')
    return this.#reply
  }
}
