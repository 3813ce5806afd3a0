import { objectSchema } from '#util/json.js'
import { defineTool } from '#core/tools/define-tool.js'
import { ToolResult } from '#core/tools/tool-result.js'
import type { ToolContext, ToolSpec } from '#core/tools/tool-spec.js'

/** The part of a `Harness` that serving uses. */
export interface ServedHarness {
  /** Absolute path of its workspace. */
  readonly root: string
  stream(prompt: string, options: { readonly signal: AbortSignal }): ServedRun
}

interface ServedRun extends AsyncIterable<ServedEvent> {
  readonly runId: string
  readonly result: Promise<ServedResult>
}

interface ServedEvent {
  readonly kind: string
  readonly toolName?: string
}

interface ServedResult {
  readonly text: string
  readonly output: unknown
  readonly stopReason: string
}

export interface RunToolOptions {
  readonly description: string
  readonly maxRuns: number
  /** Cancels all runs. */
  readonly signal: AbortSignal
}

/** A harness as a tool: one call is one run. */
export function runTool(harness: ServedHarness, { description, maxRuns, signal }: RunToolOptions): ToolSpec {
  let runs = 0
  return defineTool({
    name: 'run',
    description,
    parameters: objectSchema(['prompt'], {
      prompt: { type: 'string', description: 'The task, with everything that the agent must know about it.' },
    }),
    handler: async ({ prompt }, context) => {
      if (runs >= maxRuns)
        return new ToolResult({ ok: false, content: `${maxRuns} runs are in progress. Try again later.` })
      runs += 1
      try {
        return await runOutcome(
          harness.stream(typeof prompt === 'string' ? prompt : '', {
            signal: AbortSignal.any([context.signal, signal]),
          }),
          context,
        )
      } finally {
        runs -= 1
      }
    },
  })
}

async function runOutcome(run: ServedRun, context: ToolContext): Promise<ToolResult> {
  let steps = 0
  for await (const event of run) {
    const message = progressMessage(event)
    if (message !== undefined) context.progress({ progress: ++steps, message })
  }
  const result = await run.result
  const { text, stopReason } = result
  const metadata = { run_id: run.runId, stop_reason: stopReason }
  if (stopReason === 'end_turn')
    return new ToolResult({ content: typeof result.output === 'string' ? text : result.output, metadata })
  return new ToolResult({
    ok: false,
    content: `The run is waiting for a person and has no answer yet (${stopReason}). ${text}`.trim(),
    metadata: { ...metadata, error_type: 'RunPaused' },
  })
}

/** Progress text for an event: the action of the run, never the content that it reads. */
function progressMessage({ kind, toolName }: ServedEvent): string | undefined {
  switch (kind) {
    case 'model_request_started':
      return 'Asking the model'
    case 'tool_call_started':
      return `Calling ${toolName ?? 'a tool'}`
    case 'tool_call_completed':
      return `${toolName ?? 'A tool'} has ended`
    default:
      return undefined
  }
}
