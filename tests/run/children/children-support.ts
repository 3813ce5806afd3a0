import { z } from 'zod'
import type { JsonValue, ToolContext, ToolSpec } from 'thinharness'
import { ScriptedModel } from 'thinharness/testing'
import type { ModelRequest } from 'thinharness/testing'
import { tool } from '../../harness/support.js'

/** A tool that asks a person and gives the answer back. */
export const ask: ToolSpec = tool('ask', (_, context) => context.ask('Which?', z.string()))

/** A tool that runs each of `children` in a run of its own, all at once, and gives back what they said. */
export function delegateTool(
  name: string,
  children: Readonly<Record<string, readonly ToolSpec[]>>,
  beside: Partial<ToolSpec> = {},
): ToolSpec {
  const handler = async (_: unknown, context: ToolContext): Promise<JsonValue> => {
    const runs = Object.entries(children).map(([key, tools]) => context.spawn({ prompt: key, key, tools }))
    const results = await Promise.all(runs.map(({ result }) => result))
    return results.map(({ text }) => text)
  }
  return tool(name, handler, { onUnknownOutcome: 'retry', ...beside })
}

/**
 * A model of all runs of a test: what a run says is found by its prompt, turn by turn, in whatever process it goes on.
 * A text is said; a list of names is called.
 */
export function playing(plays: Readonly<Record<string, readonly (string | readonly string[])[]>>): ScriptedModel {
  return new ScriptedModel().always(({ turn, messages }: ModelRequest) => {
    const [prompt] = messages.flatMap((message) => (message.role === 'user' ? String(message.content).split('\n') : []))
    const line = plays[prompt ?? '']?.[turn]
    if (line === undefined) throw new Error(`Nobody wrote turn ${turn} of ${prompt}.`)
    return typeof line === 'string' ? line : { calls: line.map((name) => ({ name })) }
  })
}
