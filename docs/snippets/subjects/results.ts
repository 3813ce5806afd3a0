import { defineTool, Harness } from 'thinharness'
import type { HarnessResult, StreamEvent, ToolContext } from 'thinharness'
import { z } from 'zod'

const Invoice = z.object({ customer: z.string(), cents: z.number().int() })
type Invoice = z.infer<typeof Invoice>

/** A handler outside of `defineTool` names its types; inside, they follow from the schema. */
function convert({ cents }: { readonly cents: number }, { signal }: ToolContext): string {
  signal.throwIfAborted()
  return `${(cents / 100).toFixed(2)} €`
}
const toEuros = defineTool({
  name: 'to_euros',
  description: 'Convert cents.',
  parameters: z.object({ cents: z.number() }),
  handler: convert,
})

const harness = new Harness({ model: 'openai:gpt-5.5', tools: [toEuros], outputType: Invoice })

/** `output` is an `Invoice` once `status` says that the run is complete. */
export async function invoiceOf(mail: string): Promise<Invoice | null> {
  const result: HarnessResult<Invoice> = await harness.run(mail)
  return result.status === 'completed' ? result.output : null
}

/** Events are a union by `kind`. */
export function lineOf(event: StreamEvent): string | null {
  if (event.kind === 'tool_call_started') return `${event.toolName} …`
  return event.kind === 'text_delta' ? event.text : null
}
