import type { ExtensionContext } from '../extension/context.js'
import type { RunContext } from './run-context.js'

/** The run as extensions see it. */
export function extensionContext({ runId, agentName, metadata, deps, state, signal }: RunContext): ExtensionContext {
  const { transcript, usage } = state
  return { runId, agentName, metadata, deps, transcript, usage, signal }
}
