import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type { AssistantPart, ToolEntry, TranscriptEntry, UserEntry } from '#contracts/entry.js'
import type { RequestConstants } from 'thinharness'
import type { DecodedReply, Transport, WireChunk, WireFormat, TransportRequest } from '#providers/http/wire-format.js'
import { errorFromBody } from '#providers/http/provider-errors.js'
import type { JsonObject } from '#util/json.js'

/** A small API of the tests' own: a reply is `{ id, text?, call?: { id, args }, error? }`, an event is one of its fields. */
export const echoFormat: WireFormat = {
  path: '/echo',
  conversationField: 'messages',
  head: ({ tools, settings: { temperature } }) => ({
    model: 'm',
    tools: tools.map((tool) => tool.name),
    ...(temperature !== undefined && { temperature }),
  }),
  opening: ({ instructions }) => (instructions === '' ? [] : [{ system: instructions }]),
  encode: (entries) => entries.map(encodeEntry),
  tail: ({ streamed, previousResponseId }) => ({
    ...(streamed && { stream: true }),
    ...(previousResponseId !== null && { previous: previousResponseId }),
  }),
  fold({ onDelta }) {
    let text = ''
    const fields: Record<string, unknown> = {}
    return {
      add({ data }: WireChunk) {
        const event = data as EchoReply
        if (event.text !== undefined) onDelta?.({ kind: 'text_delta', text: event.text })
        if (event.call !== undefined) {
          onDelta?.({ kind: 'tool_input_delta', text: event.call.args, callId: event.call.id })
        }
        text += event.text ?? ''
        Object.assign(fields, event)
      },
      end: () => decodeEcho({ ...fields, ...(text !== '' && { text }) }),
    }
  },
  decode: decodeEcho,
}

interface EchoReply {
  readonly id?: string
  readonly text?: string
  readonly call?: { readonly id: string; readonly args: string }
  readonly error?: object
}

function decodeEcho(reply: unknown): DecodedReply {
  const { id, text, call, error } = reply as EchoReply
  if (error !== undefined) throw errorFromBody(200, {}, { error })
  const parts: AssistantPart[] = []
  if (text !== undefined) parts.push({ type: 'text', text })
  if (call !== undefined) parts.push({ type: 'tool_call', callId: call.id, name: 'tool', arguments: call.args })
  return {
    parts,
    finishReason: call === undefined ? 'stop' : 'tool_calls',
    nativeFinishReason: null,
    usage: UNREPORTED_USAGE,
    responseId: id ?? null,
    responseModel: null,
    raw: reply,
  }
}

function encodeEntry(entry: TranscriptEntry): JsonObject {
  switch (entry.role) {
    case 'user':
      return { user: entry.content.map((part) => (part.type === 'text' ? part.text : part.type)).join('') }
    case 'assistant':
      return { assistant: entry.parts.map((part) => (part.type === 'tool_call' ? part.callId : part.type)) }
    case 'tool':
      return { tool: entry.callId }
  }
}

const AT = '2026-01-01T00:00:00.000Z'
let count = 0
const stamp = (): { id: string; at: string } => ({ id: `e${++count}`, at: AT })

export const user = (text: string): UserEntry => ({ role: 'user', ...stamp(), content: [{ type: 'text', text }] })
export const result = (callId: string): ToolEntry => ({
  role: 'tool',
  ...stamp(),
  callId,
  name: 'tool',
  content: '{}',
  isError: false,
})
export function assistant(...parts: AssistantPart[]): TranscriptEntry {
  return {
    role: 'assistant',
    ...stamp(),
    parts,
    provider: 'echo',
    model: 'm',
    finishReason: 'stop',
    usage: UNREPORTED_USAGE,
  }
}
export const call = (callId: string): AssistantPart => ({ type: 'tool_call', callId, name: 'tool', arguments: '{}' })

export const constants = (more: Partial<RequestConstants> = {}): RequestConstants => ({
  instructions: 'Be brief.',
  tools: [],
  structuredOutput: null,
  settings: {},
  ...more,
})

/** A transport that answers from a list: a whole reply, the batches of a stream, or an error to be thrown after them. */
export class EchoTransport implements Transport {
  readonly bodies: Transport['bodies']
  readonly texts: string[] = []
  readonly requests: TransportRequest[] = []
  readonly #answers: (EchoReply | readonly (readonly WireChunk[] | Error)[])[]

  constructor(bodies: Transport['bodies'], ...answers: (EchoReply | readonly (readonly WireChunk[] | Error)[])[]) {
    this.bodies = bodies
    this.#answers = answers
  }

  /** The bodies of all requests, parsed. */
  get sent(): unknown[] {
    return this.texts.map((text) => JSON.parse(text) as unknown)
  }

  async send(request: TransportRequest): Promise<unknown> {
    const answer = this.#next(request)
    if (answer instanceof Error) throw answer
    return answer
  }

  async *stream(request: TransportRequest): AsyncGenerator<readonly WireChunk[]> {
    for (const batch of this.#next(request) as readonly (readonly WireChunk[] | Error)[]) {
      if (batch instanceof Error) throw batch
      yield batch
    }
  }

  async close(): Promise<void> {
    // Nothing is open.
  }

  #next(request: TransportRequest): unknown {
    this.requests.push(request)
    const { body } = request
    this.texts.push(Array.isArray(body) ? Buffer.concat(body as Uint8Array[]).toString() : JSON.stringify(body))
    const answer = this.#answers.shift()
    if (answer === undefined) throw new Error('The transport has no answer left.')
    return answer
  }
}
