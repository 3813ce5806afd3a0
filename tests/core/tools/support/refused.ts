import { checkArguments } from '#core/tools/boundary/check-arguments.js'
import type { CheckedArguments } from '#core/tools/boundary/check-arguments.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'

type Refused = CheckedArguments & { readonly ok: false }

/** What a call with these arguments comes to; fails when they fit. */
export async function refused(spec: ToolSpec, args: unknown): Promise<Refused> {
  const checked = await checkArguments(spec, typeof args === 'string' ? args : JSON.stringify(args))
  if (checked.ok) throw new Error('Expected a refusal.')
  return checked
}

/** The lines that the model reads of it. */
export async function message(spec: ToolSpec, args: unknown): Promise<string[]> {
  return (await refused(spec, args)).outcome.content.split('\n')
}
