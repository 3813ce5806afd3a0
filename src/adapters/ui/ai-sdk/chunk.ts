import type { JsonObject, JsonValue } from '#util/json.js'

/** The version of the AI SDK whose UI message stream is written. */
export type Dialect = 5 | 6 | 7

/** A part of a person's message. */
export type UiInputPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'file'; readonly mediaType: string; readonly url: string; readonly filename?: string }

export interface ToolChunk {
  readonly toolCallId: string
  readonly toolName: string
  /** Absent for the tools that the page knows by name. */
  readonly dynamic?: true
  readonly title?: string
}

/** An item of an AI SDK UI message stream: those types, members and values that its clients know. */
export type UiChunk =
  | { readonly type: 'start'; readonly messageId: string; readonly messageMetadata?: JsonObject }
  | { readonly type: 'start-step' | 'finish-step' | 'reset-step' }
  | { readonly type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; readonly id: string }
  | { readonly type: 'text-delta' | 'reasoning-delta'; readonly id: string; readonly delta: string }
  | ({ readonly type: 'tool-input-start' } & ToolChunk)
  | { readonly type: 'tool-input-delta'; readonly toolCallId: string; readonly inputTextDelta: string }
  | ({ readonly type: 'tool-input-available'; readonly input: JsonValue } & ToolChunk)
  | ({ readonly type: 'tool-input-error'; readonly input: string; readonly errorText: string } & ToolChunk)
  | {
      readonly type: 'tool-approval-request'
      readonly approvalId: string
      readonly toolCallId: string
      readonly approvalDescriptor?: unknown
      readonly isAutomatic?: true
    }
  | {
      readonly type: 'tool-approval-response'
      readonly approvalId: string
      readonly approved: boolean
      readonly reason?: string
    }
  | {
      readonly type: 'tool-output-available'
      readonly toolCallId: string
      readonly output: unknown
      /** The call has not ended: another output follows. */
      readonly preliminary?: true
      readonly dynamic?: true
    }
  | {
      readonly type: 'tool-output-error'
      readonly toolCallId: string
      readonly errorText: string
      readonly dynamic?: true
    }
  | { readonly type: 'tool-output-denied'; readonly toolCallId: string }
  | { readonly type: 'file'; readonly url: string; readonly mediaType: string }
  | { readonly type: 'steering-message'; readonly id: string; readonly parts: readonly UiInputPart[] }
  | { readonly type: `data-${string}`; readonly id?: string; readonly data: unknown; readonly transient?: true }
  | { readonly type: 'message-metadata'; readonly messageMetadata: unknown }
  | { readonly type: 'finish'; readonly finishReason: UiFinishReason }
  | { readonly type: 'abort'; readonly reason?: string }
  | { readonly type: 'error'; readonly errorText: string }

export type UiFinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'interrupted' | 'other'

/** Headers of a UI message stream, in addition to those of server-sent events. */
export const UI_STREAM_HEADERS = { 'x-vercel-ai-ui-message-stream': 'v1' } as const

/** A chunk as server-sent event. */
export function encodeUiChunk(chunk: UiChunk): string {
  return `data: ${JSON.stringify(chunk)}\n\n`
}

/** The last line of a stream. */
export const UI_STREAM_END = 'data: [DONE]\n\n'
