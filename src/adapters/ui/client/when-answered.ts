interface PageMessage {
  readonly role: string
  readonly parts: readonly object[]
}

/**
 * `sendAutomaticallyWhen` of `useChat`: true when each item that waits, in the last message, has its answer: an approval that was
 * decided, or an output for the call of a question. Works for every version of the AI SDK and every kind of item.
 */
export function whenAnswered({ messages }: { readonly messages: readonly PageMessage[] }): boolean {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return false
  const parts = last.parts as readonly Readonly<Record<string, unknown>>[]
  const pending = parts.findLast(({ type }) => type === 'data-pending')?.['data']
  const items = isObject(pending) && Array.isArray(pending['items']) ? (pending['items'] as unknown[]) : []
  return items.length > 0 && items.every((item) => isObject(item) && isAnswered(item, parts))
}

function isAnswered(
  { callId, kind }: Readonly<Record<string, unknown>>,
  parts: readonly Readonly<Record<string, unknown>>[],
): boolean {
  return parts.some(({ toolCallId, state, approval }) => {
    if (kind === 'approval' && isObject(approval) && approval['id'] === callId) return state === 'approval-responded'
    return toolCallId === callId && kind !== 'approval' && (state === 'output-available' || state === 'output-error')
  })
}

// A copy: any module of the core would bring all that is loaded with it to the page.
function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
