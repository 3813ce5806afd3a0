import type { ScriptMessage } from './conversation.js'
import type { ResolvedPart } from './reply.js'

/** A part whose call has its id; null where none is to be sent. */
export type NumberedPart<Id extends string | null> =
  | Exclude<ResolvedPart, { readonly type: 'call' }>
  | { readonly type: 'call'; readonly name: string; readonly arguments: string; readonly callId: Id }

/**
 * Gives each call without an id one that no call of the conversation has. `form` makes an id of an ordinal: the calls
 * of a conversation are counted from 1.
 */
export function withCallIds(
  parts: readonly ResolvedPart[],
  messages: readonly ScriptMessage[],
  form: (ordinal: number) => string,
): readonly NumberedPart<string | null>[] {
  if (!parts.some((part) => part.type === 'call')) return parts.filter((part) => part.type !== 'call')
  const earlier = messages.flatMap((message) => (message.role === 'assistant' ? message.calls : []))
  const taken = new Set<string | null | undefined>(earlier.map((call) => call.callId))
  for (const part of parts) if (part.type === 'call') taken.add(part.callId)
  let ordinal = earlier.length
  return parts.map((part) => {
    if (part.type !== 'call') return part
    if (part.callId !== undefined) return { ...part, callId: part.callId }
    let callId = form(++ordinal)
    while (taken.has(callId)) callId = form(++ordinal)
    return { ...part, callId }
  })
}
