import { CLEAR, COMPRESSED, unreadableRecord } from './clear.js'
import type { RecordCodec } from './log-codec.js'
import { deflateRawSync, inflateRawSync } from 'node:zlib'

/** What events have in common: most are short, and a third of their size without it. It is a part of the form, and never changes. */
const dictionary = Buffer.from(
  '"model_request_started","requestKind":"provider":"model":"entries":[{"role":"user","content":[{"type":"text","text":"' +
    '"notices":[],"usage":{"inputTokens":,"outputTokens":,"cachedInputTokens":,"costUsd":null,"stopReason":"end_turn",' +
    '"tool_call_started","callId":"call_","toolName":"","arguments":"{\\"outcome":{"kind":"succeeded","content":"' +
    '"model_message","toolCalls":[],"entry":{"role":"assistant","parts":[{"type":"tool_call","finishReason":"tool_calls",' +
    '{"kind":"tool_call_completed","runId":"run_","seq":1,"at":"2026-01-01T00:00:00.000Z","durable":true,' +
    '"parentRunId":null,"parentToolCallId":null,"agentName":null,"callId":"',
)

export function deflate(text: string): Buffer {
  return deflateRawSync(text, { dictionary })
}

export function inflate(bytes: Uint8Array): string {
  return inflateRawSync(bytes, { dictionary }).toString()
}

/** Compresses records; those that become no shorter stay as they are. */
export const DEFLATE: RecordCodec = {
  ...CLEAR,
  encode: (json) => {
    const compressed = COMPRESSED + deflate(json).toString('base64')
    return compressed.length < json.length ? compressed : json
  },
  decode: (stored, place) => {
    if (!stored.startsWith(COMPRESSED)) return CLEAR.decode(stored, place)
    try {
      return inflate(Buffer.from(stored.slice(COMPRESSED.length), 'base64'))
    } catch (cause) {
      throw unreadableRecord(place, 'is damaged: it cannot be decompressed', cause)
    }
  },
  isCurrent: (stored) => stored.startsWith(COMPRESSED),
}
