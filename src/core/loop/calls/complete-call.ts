import { agentSource, CONTENT_SOURCES } from '#contracts/entry.js'
import type { ContentSource } from '#contracts/entry.js'
import { envelopeOf, renderEnvelope } from '../../tools/boundary/envelope.js'
import type { Envelope } from '../../tools/boundary/envelope.js'
import { bound, withinBounds } from '../../tools/boundary/truncate-output.js'
import type { ToolOutcome, ToolSpec } from '../../tools/tool-spec.js'
import { isObject, parseJson } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import type { CallRuns, UsedRuns } from '../child-run.js'
import type { RunContext } from '../run-context.js'
import type { RunSetup } from '../run-plan.js'
import type { CallAnnotation } from '../../extension/own-extension.js'
import type { BatchCall } from '../../state/batch-call.js'
import type { DurablePayloads } from '../../state/events.js'

/** The run that performs calls. */
export interface CallRun {
  readonly context: RunContext
  readonly setup: RunSetup
}

type Completed = DurablePayloads['tool_call_completed']

/** A call that has an outcome. */
export interface EndedCall {
  readonly outcome: ToolOutcome
  readonly toolIndex: number
  readonly durationMs: number
}

/** The result of a call, as the model reads it. */
export interface ShownResult {
  readonly output: string
  readonly envelope: Envelope
  /** Of its content, by hooks: in place of that of the tool. */
  readonly source?: ContentSource | undefined
}

/** The end of a call, for its event. */
export interface CallEnd extends EndedCall {
  readonly shown: ShownResult
  /** The tool only reads, by its annotations. */
  readonly readOnly: boolean
  /** Its source, its child runs. */
  readonly about: UsedRuns & Pick<Completed, 'source'>
}

interface CallParts {
  readonly spec: ToolSpec | undefined
  /** The runs that the call has started; null if there are none. */
  readonly runs: CallRuns | null
  /** The arguments of the handler, as JSON text. */
  readonly entered: string
}

export function callEnd(ended: EndedCall, call: BatchCall, { spec, runs: children, entered }: CallParts): CallEnd {
  const { outcome } = ended
  const runs = children === null ? null : children.usedBy(outcome, entered)
  const source = contentSourceOf(spec, call, { outcome, runs: children })
  const about = { ...(source !== undefined && { source }), ...runs }
  const envelope = envelopeOf(outcome)
  const shown = { output: renderEnvelope(envelope), envelope }
  return { shown, readOnly: spec?.annotations?.readOnly === true, about, ...ended }
}

/**
 * The source of a result, by the tool's declared reach; undefined if it declares none. The widest reach counts: a program
 * that can read files and the web is a command.
 */
export function contentSourceOf(
  spec: ToolSpec | undefined,
  { answers }: BatchCall,
  { outcome, runs }: { readonly outcome: ToolOutcome; readonly runs: CallRuns | null },
): ContentSource | undefined {
  if (outcome.kind !== 'succeeded' && outcome.kind !== 'failed') return undefined
  const { metadata = {} } = outcome
  // An error that a tool of a server has thrown is content of the server too.
  const server =
    metadata['source'] === 'mcp' ? metadata : spec?.metadata?.['source'] === 'mcp' ? spec.metadata : undefined
  if (server !== undefined) {
    const tool = textIn(server, 'mcp_tool_name')
    return { kind: 'server', ...named(textIn(server, 'mcp_server_id')), ...(tool !== undefined && { tool }) }
  }
  const given = metadata['content_source']
  if (isObject(given)) return givenSource(given)
  // A saved output keeps the source of the call that saved it.
  const saved = given === undefined ? undefined : CONTENT_SOURCES.find((kind) => kind === given)
  if (saved !== undefined && saved !== 'workspace') return { kind: saved }
  if (runs !== null && runs.usage !== null) return agentSource(textIn(metadata, 'agent'), runs.transcripts)
  for (const answer of answers) if ('answer' in answer) return { kind: 'person' }
  if (spec?.reach === undefined) return undefined
  const { programs = [], hosts = [], reads = [], writes = [] } = spec.reach
  if (programs.length > 0) return { kind: 'command' }
  if (hosts.length > 0) return { kind: 'web', ...named(textIn(metadata, 'final_url') ?? textIn(metadata, 'url')) }
  if (reads.length === 0 && writes.length === 0) return undefined
  // A saved result of a search has the content of many files.
  return { kind: 'workspace', ...(saved === undefined && named(textIn(metadata, 'path'))) }
}

/** Content of the conversation that is read again keeps its source. */
function givenSource(given: JsonObject): ContentSource | undefined {
  const kind = CONTENT_SOURCES.find((each) => each === given['kind'])
  const tool = textIn(given, 'tool')
  const sources = Array.isArray(given['sources'])
    ? given['sources'].flatMap((each) => (isObject(each) ? (givenSource(each as JsonObject) ?? []) : []))
    : []
  return (
    kind && {
      kind,
      ...named(textIn(given, 'name')),
      ...(tool !== undefined && { tool }),
      ...(sources.length > 0 && { sources }),
    }
  )
}

function textIn(metadata: JsonObject, key: string): string | undefined {
  const value = metadata[key]
  return typeof value === 'string' ? value : undefined
}

function named(name: string | undefined): { readonly name?: string } {
  return name === undefined ? {} : { name }
}

/** Ends a call with a known outcome, without running it. */
export async function completeUnrun(
  run: CallRun,
  call: BatchCall,
  { toolIndex, outcome }: Pick<EndedCall, 'toolIndex' | 'outcome'>,
): Promise<void> {
  const spec = run.setup.tools.get(call.name)
  const isProgram = run.context.state.rules.computed === true
  const bounded = isProgram ? outcome : await bound(run.setup, { spec, outcome, source: () => null })
  const envelope = envelopeOf(bounded)
  const shown = { output: renderEnvelope(envelope), envelope }
  await complete(run, call, { toolIndex, outcome: bounded, durationMs: 0, shown, readOnly: false, about: {} })
}

/** Stores the end of a call. */
export async function complete(
  { context, setup }: CallRun,
  call: BatchCall,
  { toolIndex, durationMs, outcome, shown, readOnly, about }: CallEnd,
): Promise<void> {
  const { envelope: whole, source } = shown
  const isProgram = context.state.rules.computed === true
  const envelope = isProgram ? within(whole, setup.tools.get(call.name)) : whole
  const output = isProgram ? renderEnvelope(envelope) : shown.output
  const parts = outcome.kind === 'succeeded' || outcome.kind === 'failed' ? outcome.parts : undefined
  const errorType = envelope.metadata['error_type']
  const isWhole = outcome.kind === 'succeeded' && whole.ok && whole.content === outcome.content
  const ofProgram = isProgram && whole.ok ? valueIn(whole.content, outcome) : undefined
  const value = isWhole && outcome.value !== undefined ? outcome.value : ofProgram
  const annotations: CallAnnotation = {}
  for (const annotate of context.extensions.annotations) {
    Object.assign(annotations, annotate(context.state, call, { output, parts, ok: envelope.ok, readOnly }))
  }
  await context.emit('tool_call_completed', {
    callId: call.callId,
    toolName: call.name,
    ...(call.via !== undefined && { via: call.via }),
    toolIndex,
    ok: envelope.ok,
    cancelled: outcome.kind === 'cancelled',
    // Taken before the hooks: they can change what the model reads, not how the call is counted.
    retryKind: outcome.kind === 'failed' && outcome.retry ? outcome.errorType : null,
    errorType: typeof errorType === 'string' ? errorType : null,
    message: envelope.ok ? null : envelope.content,
    durationMs,
    output,
    ...(value !== undefined && { value }),
    // The handler's own parts stay its own.
    ...(parts !== undefined && { parts: parts.map((part) => ({ ...part })) }),
    ...about,
    ...(source !== undefined && { source }),
    ...annotations,
  })
}

/** For the entry of a call whose whole value a program gets. */
function within({ ok, content, metadata }: Envelope, spec: ToolSpec | undefined): Envelope {
  return { ok, content, metadata, ...withinBounds(spec ?? {}, { kind: 'succeeded', content, metadata }) }
}

/** The value in the text that hooks have left of a result: JSON if the result was, else the text. */
function valueIn(content: string, outcome: ToolOutcome): JsonValue {
  const parsed = outcome.kind === 'succeeded' && outcome.value !== undefined ? parseJson(content) : null
  return parsed?.ok === true ? parsed.value : content
}
