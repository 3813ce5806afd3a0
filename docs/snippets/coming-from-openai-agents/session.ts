import { fromMessages } from 'thinharness'
import type { Harness } from 'thinharness'

/** An item of `await session.getItems()`: a message, a function call, its result, … */
interface Item {
  readonly type?: string
  readonly callId?: string
  readonly output?: unknown
}

/** Messages stay as they are; calls and results get the names of the Responses API. Reasoning is left out. */
function itemOf({ callId, output, ...item }: Item): object {
  if (item.type === 'function_call') return { ...item, call_id: callId }
  if (item.type !== 'function_call_result') return item
  const text = (output as { readonly text?: unknown } | null)?.text ?? output
  return {
    type: 'function_call_output',
    call_id: callId,
    output: typeof text === 'string' ? text : JSON.stringify(text),
  }
}

/** Continues a conversation that the OpenAI Agents SDK has stored. */
export function continued(harness: Harness, items: readonly Item[], prompt: string) {
  const history = fromMessages(items.filter(({ type }) => type !== 'reasoning').map(itemOf))
  return harness.run(prompt, { history })
}
