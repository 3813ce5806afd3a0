import { HarnessError } from '#contracts/errors.js'
import type { JsonInput, JsonObject, JsonValue } from '#util/json.js'
import { plainJson } from '#util/plain-json.js'
import { withoutUndefined } from '#util/validate.js'
import { askWith, FIRST_KEY } from '#core/tools/ask.js'
import { checkArguments } from '#core/tools/boundary/check-arguments.js'
import { envelopeOf } from '#core/tools/boundary/envelope.js'
import { invoke, noteRepairs } from '#core/tools/boundary/invoke.js'
import { withinBounds } from '#core/tools/boundary/truncate-output.js'
import type { ToolContext, ToolOutcome, ToolSpec } from '#core/tools/tool-spec.js'
import { absolutePath } from '#util/platform/node.js'

/** Options of `callTool`: the context of the handler. */
export interface CallToolOptions<Deps = unknown> extends GivenContext {
  /** The handler's dependencies. */
  readonly deps?: Deps | undefined
  /** Default: `{}`. */
  readonly metadata?: object | undefined
  /** The answer to the handler's question; with several questions, the answers by key in `answers`. Default: none. */
  readonly answer?: JsonInput | undefined
  readonly answers?: Readonly<Record<string, JsonInput>> | undefined
}

type GivenContext = {
  readonly [Key in Exclude<keyof ToolContext, 'ask' | 'deps' | 'metadata' | 'spawn'>]?: ToolContext[Key] | undefined
}

/** The result of a call outside a run. */
export interface CalledTool {
  readonly ok: boolean
  /** The text that a model would read. */
  readonly content: string
  /** The returned value as JSON; absent if the text is the value. */
  readonly value?: JsonValue
  /** Data about the call for hooks and hosts, such as `error_type`. */
  readonly metadata: JsonObject
}

/** What `callTool` does, once it is loaded. */
export async function tryTool<Deps = unknown>(
  spec: ToolSpec<Deps>,
  args: string | object,
  options: CallToolOptions<Deps> = {},
): Promise<CalledTool> {
  const checked = await checkArguments(spec, typeof args === 'string' ? args : JSON.stringify(args))
  if (!checked.ok) return calledTool(checked.outcome)
  const outcome = await invoke(spec, checked.value, contextOutside(spec, options))
  if (outcome.kind === 'suspended') return calledTool(NOBODY_TO_ASK)
  return calledTool(noteRepairs(withinBounds(spec, outcome), checked.repairs))
}

function calledTool(outcome: ToolOutcome): CalledTool {
  const value = outcome.kind === 'succeeded' ? outcome.value : undefined
  return { ...envelopeOf(outcome), ...(value !== undefined && { value }) }
}

const NOBODY_TO_ASK: ToolOutcome = {
  kind: 'failed',
  errorType: 'Suspended',
  content:
    'The tool asks a question; outside a run nobody is there to answer. Pass `answer` in the options of `callTool`.',
  retry: false,
}

function contextOutside<Deps>(
  { name }: Pick<ToolSpec, 'name'>,
  { metadata = {}, answer, answers = {}, deps, ...given }: CallToolOptions<Deps>,
): ToolContext<Deps> {
  const known = Object.entries({ ...(answer !== undefined && { [FIRST_KEY]: answer }), ...answers })
  return {
    runId: 'outside_a_run',
    callId: 'call_1',
    toolName: name,
    root: absolutePath('.'),
    depth: 0,
    idempotencyKey: 'outside_a_run:call_1',
    signal: new AbortController().signal,
    progress: () => undefined,
    decide: () => Promise.reject(new HarnessError('invalid_state', 'There is no run whose model could decide.')),
    ...withoutUndefined(given),
    // A tool that needs dependencies and is given none finds none: its type says so.
    deps: deps as Deps,
    metadata: plainJson(metadata) as JsonObject,
    ask: askWith(new Map(known.map(([key, value]) => [key, plainJson(value)])), name),
    spawn: () => {
      throw new HarnessError('invalid_state', 'A child run can only be started by a call within a run.')
    },
  }
}
