import { HarnessError, resultForModel } from 'thinharness'
import type { JsonObject, Model, TranscriptEntry } from 'thinharness'
import { httpModel } from 'thinharness/providers'
import type { HttpReply, HttpReplyOptions, ProviderOptions } from 'thinharness/providers'

/** A part of a reply, and the end of a reply, as Acme sends them: both together as JSON, or one after the other. */
type Part = { readonly text: string } | { readonly call: string; readonly id?: string; readonly input: string }
type End = { readonly stop: string; readonly tokens?: { readonly in: number; readonly out: number } }

/** A model of Acme: `POST /v1/turns` with `{ model, system, tools, messages, stream }`. */
export function acme(id: string, options: ProviderOptions = {}): Model {
  const provider = {
    provider: 'acme',
    id,
    baseUrl: 'https://acme.example/v1',
    path: '/turns',
    apiKeyVariable: 'ACME_KEY',
  }
  return httpModel(
    {
      ...provider,
      capabilities: { inputs: [] },
      head: ({ instructions, tools }) => ({
        model: id,
        system: instructions,
        tools: tools.map((tool) => ({ ...tool })),
      }),
      encode: (entries) => entries.map(message),
      tail: ({ streamed }) => ({ stream: streamed }),
      decode(reply, reading) {
        const { parts, ...end } = reply as { readonly parts: readonly Part[] } & End
        return ended(
          end,
          parts.map((part) => partOf(part, reading)),
        )
      },
      fold(reading) {
        const parts: HttpReply['parts'][number][] = []
        let reply: HttpReply | undefined
        return {
          add(event) {
            if ('stop' in (event as object)) reply = ended(event as End, parts)
            else parts.push(partOf(event as Part, reading))
          },
          end() {
            if (reply !== undefined) return reply
            throw new HarnessError('provider_error', 'The reply was cut.', { retryable: true, failure: 'connection' })
          },
        }
      },
    },
    options,
  )
}

function message(entry: TranscriptEntry): JsonObject {
  if (entry.role === 'user') {
    const other = entry.content.find((part) => part.type !== 'text')
    if (other !== undefined) throw new HarnessError('invalid_options', `Acme takes text alone, got \`${other.type}\`.`)
    return { user: textIn(entry.content) }
  }
  if (entry.role === 'tool') return { result: entry.callId, text: textIn(resultForModel(entry, 'prefix')) }
  const parts = entry.parts.map((part) => {
    if (part.type === 'tool_call') return { call: part.name, id: part.callId, input: part.arguments }
    return { text: part.type === 'text' || part.type === 'reasoning' ? part.text : '' }
  })
  return { parts }
}

function textIn(content: ReturnType<typeof resultForModel>): string {
  if (typeof content === 'string') return content
  return content.map((part) => (part.type === 'text' ? part.text : `[Left out: \`${part.type}\`]`)).join('')
}

function partOf(part: Part, { callId, emit }: HttpReplyOptions): HttpReply['parts'][number] {
  const read =
    'text' in part
      ? ({ type: 'text', text: part.text } as const)
      : ({ type: 'tool_call', callId: callId(part.id), name: part.call, arguments: part.input } as const)
  emit(read)
  return read
}

function ended({ stop, tokens }: End, parts: HttpReply['parts']): HttpReply {
  const usage = tokens && { ...NO_CACHE, inputTokens: tokens.in, outputTokens: tokens.out }
  return { parts, finishReason: FINISH.get(stop) ?? 'other', ...(usage && { usage }) }
}

const NO_CACHE = { cacheReadTokens: null, cacheWriteTokens: null, reasoningTokens: null }

const FINISH: ReadonlyMap<string, HttpReply['finishReason']> = new Map([
  ['done', 'stop'],
  ['calls', 'tool_calls'],
  ['length', 'length'],
  ['refused', 'refusal'],
])
