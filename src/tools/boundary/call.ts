import { HarnessError } from '../../contracts/errors.js'
import type { JsonObject } from '../../util/json.js'
import { checkArguments } from './arguments.js'
import { envelopeOf, renderEnvelope } from './envelope.js'
import { invoke } from './invoke.js'
import type { ToolOutcome } from '../outcome.js'
import { jsonSchemaOf } from '../../schema/schema.js'
import type { ToolContext, ToolSpec } from '../spec.js'
import { Suspension } from '../suspension.js'

/**
 * Calls a tool outside a run, for tests and hosts (spec §5.5): arguments are checked and repaired, the result is
 * normalized, and what comes back is what a model would read: the envelope `{"ok","content","metadata"}` as JSON text.
 * `args` is raw argument text or an object. No hook, approval or time limit applies. Does not reject.
 */
export async function callTool(
  spec: ToolSpec,
  args: string | JsonObject,
  context: Partial<ToolContext> = {},
): Promise<string> {
  const checked = await checkArguments(spec, typeof args === 'string' ? args : JSON.stringify(args))
  if (!checked.ok) return renderEnvelope(envelopeOf(checked.outcome))
  const outcome = await invoke(spec, checked.value, { ...contextOutside(spec), ...context })
  if (outcome.kind === 'suspended') return renderEnvelope(envelopeOf(NOBODY_TO_ASK))
  return renderEnvelope(envelopeOf(noteRepairs(outcome, checked.repairs)))
}

const NOBODY_TO_ASK: ToolOutcome = {
  kind: 'failed',
  errorType: 'Suspended',
  content: 'The tool asks a person; outside a run there is nobody to answer. Give `answer` with the context to go on.',
  retry: false,
}

/** An outcome that says what was repaired in the call (session-behaviour §11.3). */
export function noteRepairs(outcome: ToolOutcome, repairs: readonly string[]): ToolOutcome {
  if (repairs.length === 0 || outcome.kind === 'rejected') return outcome
  return { ...outcome, metadata: { ...outcome.metadata, repairs } }
}

function contextOutside({ name }: ToolSpec): ToolContext {
  return {
    runId: 'outside_a_run',
    callId: 'call_1',
    toolName: name,
    root: process.cwd(),
    depth: 0,
    idempotencyKey: 'outside_a_run:call_1',
    metadata: {},
    signal: new AbortController().signal,
    progress: () => undefined,
    suspend: (payload, answer) => {
      throw new Suspension(payload, jsonSchemaOf(answer, 'the schema of `suspend`'))
    },
    spawn: () => {
      throw new HarnessError('invalid_state', 'A child run can only be started by a call within a run.')
    },
  }
}
