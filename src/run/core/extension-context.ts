import type { ExtensionContext } from '../extension/context.js'
import type { RunContext } from './context.js'

/** The run as extensions see it. */
export function extensionContext({ runId, parent, metadata, state, signal }: RunContext): ExtensionContext {
  const { transcript, usage } = state
  return { runId, agentName: parent?.agentName ?? null, metadata, deps: undefined, transcript, usage, signal }
}
