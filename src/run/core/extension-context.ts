import type { ExtensionContext } from '../extension/context.js'
import type { RunContext } from './context.js'

/** The run as extensions see it. */
export function extensionContext({ runId, parent, metadata, deps, state, signal }: RunContext): ExtensionContext {
  const { transcript, usage } = state
  return { runId, agentName: parent?.agentName ?? null, metadata, deps, transcript, usage, signal }
}
