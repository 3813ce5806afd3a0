import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type { ContentPart, TranscriptEntry } from '#contracts/entry.js'
import { PROVIDER_CASES } from '../../support/provider-cases.js'
import { AT, constants, decode, DIALECTS, formatOf, hearBytes } from './wire.js'

const FOLDER = join(PROVIDER_CASES, 'conversations')

interface Exchange {
  readonly request: { readonly body: { readonly messages: readonly Message[] } }
  readonly response: { readonly body?: unknown; readonly sse?: string }
}

interface Message {
  readonly role: string
  readonly content?: string | null | readonly Block[]
  readonly tool_calls?: readonly {
    readonly id: string
    readonly function: { readonly name: string; readonly arguments: string }
  }[]
  readonly tool_call_id?: string
  readonly reasoning?: string
  readonly reasoning_content?: string
  readonly reasoning_details?: unknown
}

interface Block {
  readonly type: string
  readonly text?: string
}

const files = readdirSync(FOLDER).filter((name) => name.includes('-chat-'))
const formats = {
  openai: formatOf(DIALECTS.openai),
  openrouter: formatOf(DIALECTS.openrouter),
  compat: formatOf(DIALECTS.compatible),
}

describe('RF-06 RS-03 RS-05 recorded conversations are encoded as the requests that were sent', () => {
  test.each(files)('%s', (file) => {
    const { exchanges } = JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as { readonly exchanges: Exchange[] }
    const format = file.startsWith('openai')
      ? formats.openai
      : file.startsWith('openrouter')
        ? formats.openrouter
        : formats.compat
    const last = exchanges.at(-1)?.request.body.messages ?? []
    const sent = format.encode(entriesOf(last, exchanges), constants()) as unknown as readonly Message[]

    expect(sent.map(meaning)).toEqual(last.map(meaning))
  })

  /** User and tool messages as they were recorded, each assistant message as our decoder reads the recorded reply. */
  function entriesOf(messages: readonly Message[], exchanges: readonly Exchange[]): TranscriptEntry[] {
    const replies = exchanges.map(({ response }) =>
      response.sse === undefined ? decode(response.body) : hearBytes([Buffer.from(response.sse)]).reply,
    )
    return messages.map((message, index): TranscriptEntry => {
      const stamp = { id: `e${index + 1}`, at: AT }
      if (message.role === 'user') return { role: 'user', ...stamp, content: contentOf(message) }
      if (message.role === 'tool') {
        const text = typeof message.content === 'string' ? message.content : ''
        return { role: 'tool', ...stamp, callId: message.tool_call_id ?? '', name: '', content: text, isError: false }
      }
      const parts = replies.shift()?.parts ?? []
      const kept = { provider: 'here', model: 'm', finishReason: 'stop', usage: UNREPORTED_USAGE } as const
      return { role: 'assistant', ...stamp, parts, ...kept }
    })
  }
})

function contentOf({ content }: Message): ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return (content ?? []).map((block) => ({ type: 'text', text: block.text ?? '' }))
}

/** The meaning of a message: absent and empty content are equal, and so are JSON texts of one value. */
function meaning(message: Message): unknown {
  const { role, content, tool_calls: calls = [], tool_call_id: callId, reasoning_details: details } = message
  return {
    role,
    content:
      typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [{ type: 'text', text: '' }]),
    calls: calls.map(({ id, function: { name, arguments: text } }) => ({
      id,
      name,
      arguments: JSON.parse(text) as unknown,
    })),
    callId,
    // The recorded client sent it under both names.
    reasoning: message.reasoning_content ?? message.reasoning,
    details,
  }
}
