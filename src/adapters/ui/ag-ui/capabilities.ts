import type { HarnessDescription } from '#harness/launch/describe.js'

/** What an agent can do, in the form of AG-UI. What is absent is not declared. */
export interface AgUiCapabilities {
  readonly transport: { readonly streaming: true; readonly resumable: false }
  readonly tools: {
    readonly supported: boolean
    readonly items: readonly { readonly name: string; readonly description: string }[]
    readonly clientProvided: boolean
  }
  readonly output?: { readonly structuredOutput: boolean }
  readonly state: { readonly snapshots: true; readonly deltas: false }
  readonly multiAgent: {
    readonly supported: boolean
    readonly delegation: boolean
    readonly subagents: readonly { readonly name: string }[]
  }
  readonly reasoning: { readonly supported: boolean; readonly streaming: boolean }
  readonly execution: { readonly maxIterations?: number; readonly maxExecutionTime?: number }
  readonly humanInTheLoop: {
    readonly supported: true
    readonly approvals: boolean
    readonly interrupts: true
    readonly approveWithEdits: boolean
  }
}

export interface AgUiCapabilitiesOptions {
  /** The harness has an `outputType`. Default: not declared. */
  readonly structuredOutput?: boolean | undefined
  /** Pages may bring tools. Default false. */
  readonly clientTools?: boolean | undefined
  /** Streams have reasoning. Default true. */
  readonly reasoning?: boolean | undefined
  /** Streams have deltas. Default `live`. */
  readonly deltas?: 'live' | 'settled' | undefined
}

/** The capabilities of a harness, from `harness.describe()`. */
export function agUiCapabilities(
  { tools, agents, budgets }: HarnessDescription,
  { structuredOutput, clientTools = false, reasoning = true, deltas = 'live' }: AgUiCapabilitiesOptions = {},
): AgUiCapabilities {
  const hasApprovals = tools.some(({ approval }) => approval !== 'never')
  const { modelRequests, timeMs } = budgets
  return {
    transport: { streaming: true, resumable: false },
    tools: {
      supported: tools.length > 0 || clientTools,
      items: tools.map(({ name, description }) => ({ name, description })),
      clientProvided: clientTools,
    },
    ...(structuredOutput !== undefined && { output: { structuredOutput } }),
    state: { snapshots: true, deltas: false },
    multiAgent: {
      supported: agents.length > 0,
      delegation: agents.length > 0,
      subagents: agents.map(({ name }) => ({ name })),
    },
    reasoning: { supported: reasoning, streaming: reasoning && deltas === 'live' },
    execution: {
      ...(typeof modelRequests === 'number' && { maxIterations: modelRequests }),
      ...(typeof timeMs === 'number' && { maxExecutionTime: timeMs }),
    },
    humanInTheLoop: { supported: true, approvals: hasApprovals, interrupts: true, approveWithEdits: hasApprovals },
  }
}
