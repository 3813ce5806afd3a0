import { FileFailure } from '../../workspace/file-failure.js'
import { fileTool } from '../../workspace/file-tool.js'
import type { FileCall } from '../../workspace/file-tool.js'
import { shownPath } from '../../workspace/path-text.js'
import { replaceFile, withTarget, writableStats } from '../../workspace/replace-file.js'
import { withResolved } from '../../workspace/safe-open.js'
import { withFile } from '../../workspace/workspace.js'
import type { Workspace } from '../../workspace/workspace.js'
import { parallelLlmSettings } from './options.js'
import type { ParallelLlm, ParallelLlmOptions, ParallelLlmSettings } from './options.js'
import { artifactSource, isArtifact } from '../../workspace/spill.js'
import type { ContentSource } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import type { SpawnOptions, ToolContext, ToolOutcome, ToolSpec } from '#core/tools/tool-spec.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { parseJson, objectSchema } from '#util/json.js'
import { plainJson } from '#util/plain-json.js'
import { Slots } from '#util/queue/slots.js'
import { sleep } from '#util/timeout.js'
import { createHash } from 'node:crypto'

interface ParallelLlmArguments {
  readonly source:
    { readonly kind: 'inline'; readonly prompts: readonly string[] } | { readonly kind: 'file'; readonly path: string }
  readonly system?: string
  readonly output_file?: string
  readonly max_concurrency?: number
}

/**
 * `parallel_llm`: asks a model many independent prompts at once. Each is its own run without tools: its usage, events and
 * traces are nested in the calling run, and after a crash answered prompts are not asked again.
 * @throws HarnessError `invalid_options`.
 */
export const parallelLlm: ParallelLlm = (options: ParallelLlmOptions = {}): ToolSpec => {
  const settings = parallelLlmSettings(options)
  const { name, description = DESCRIPTION, instructions = usageInstructions(name) } = settings
  return fileTool<ParallelLlmArguments>(settings.files, {
    name,
    description,
    instructions,
    parameters: PARAMETERS,
    onUnknownOutcome: 'retry',
    pathFields: ['path', 'output_file'],
    run: (call) => askAll(settings, call),
  })
}

async function askAll(
  settings: ParallelLlmSettings,
  { workspace, args, context }: FileCall<ParallelLlmArguments>,
): Promise<ToolOutcome> {
  const { source, system = '', output_file: outputFile = '', max_concurrency: most = 8 } = args
  const { prompts, from } =
    source.kind === 'inline' ? { prompts: source.prompts, from: null } : await readPrompts(workspace, source.path)
  if (prompts.length > settings.maxPrompts) {
    throw new FileFailure('ValueError', `${settings.name} prompts exceed configured limit ${settings.maxPrompts}`)
  }
  // Rejected before any prompt is asked.
  if (outputFile !== '') await workspace.writePolicy.resolve(outputFile)
  const batch: PromptBatch = {
    settings,
    system: system === '' ? null : system,
    context,
    slots: new Slots(most),
    requests: 0,
  }
  const done = { done: 0, failed: 0, total: prompts.length }
  const askAndReport = async (prompt: string, index: number): Promise<Entry> => {
    const entry = await askPrompt(batch, prompt, index)
    done.done += 1
    if (!entry.ok) done.failed += 1
    context.progress({ ...done })
    return entry
  }
  const entries = await Promise.all(prompts.map(askAndReport))
  const failed = entries.flatMap(({ ok, index }) => (ok ? [] : [index]))
  // The answers have the content of the prompts.
  const answers = { kind: 'agent', name: settings.name, sources: from === null ? [] : [{ ...from }] }
  const about = from === null ? {} : { content_source: answers }
  const counts = {
    total: entries.length,
    succeeded: entries.length - failed.length,
    failed: failed.length,
    model_requests: batch.requests,
  }
  const payload: JsonObject = { ...counts, results: entries }
  if (outputFile === '')
    return { kind: 'succeeded', content: JSON.stringify(payload), metadata: { ...counts, ...about } }
  const written = await writeResults(workspace, outputFile, { results: payload, signal: context.signal })
  const summary = { ...counts, output_file: written }
  const content = JSON.stringify({ ...summary, ...(failed.length > 0 && { failed_indices: failed }) })
  return { kind: 'succeeded', content, metadata: summary }
}

const DESCRIPTION =
  'Ask a model many independent prompts at once. Each is answered separately: no tools, no memory, no system prompt except `system`.'

function usageInstructions(name: string): string {
  return [
    `\`${name}\`: use it only for independent prompts; use a subagent for tasks of several steps.`,
    '- `source` is `{"kind":"inline","prompts":[…]}` or `{"kind":"file","path":"…"}`, a file with a JSON array of strings.',
    '- Put shared instructions into `system`.',
    '- For many prompts set `output_file`, and read it afterwards.',
  ].join('\n')
}

const PARAMETERS = objectSchema(['source'], {
  source: {
    anyOf: [
      objectSchema(['kind', 'prompts'], {
        kind: { type: 'string', const: 'inline' },
        prompts: { type: 'array', items: { type: 'string' }, minItems: 1 },
      }),
      objectSchema(['kind', 'path'], {
        kind: { type: 'string', const: 'file' },
        path: { type: 'string', description: 'File with a JSON array of strings, relative to the workspace root.' },
      }),
    ],
  },
  system: { type: 'string', description: 'Instructions for every prompt.' },
  output_file: { type: 'string', description: 'JSON file for the results, relative to the workspace root.' },
  max_concurrency: { type: 'integer', minimum: 1, maximum: 32, description: 'Prompts asked at once. Default 8.' },
})

const MAX_PROMPT_BYTES = 32 * 1024 * 1024

/** The prompts of a file: a JSON array of strings. @throws FileFailure, PathValidationError. */
async function readPrompts(
  workspace: Workspace,
  path: string,
): Promise<{ readonly prompts: readonly string[]; readonly from: ContentSource }> {
  const file = { policy: workspace.readPolicy, path }
  const { text, from } = await withFile(workspace, file, async ({ handle, stats, path: place }) => {
    if (stats.size > MAX_PROMPT_BYTES) throw valueError(`a file of prompts may have at most ${MAX_PROMPT_BYTES} bytes`)
    const saved = isArtifact(workspace, place) ? artifactSource(place) : null
    return {
      text: await handle.readFile('utf8'),
      from: saved === null ? { kind: 'workspace' as const, name: place } : { kind: saved },
    }
  })
  const parsed = parseJson(text)
  const prompts = parsed.ok ? parsed.value : null
  if (Array.isArray(prompts) && prompts.length > 0 && prompts.every((prompt) => typeof prompt === 'string'))
    return { prompts, from }
  throw valueError('a file of prompts must contain a JSON array with at least one string')
}

/** Writes all results in one step; missing folders are created. @throws FileFailure, PathValidationError. */
async function writeResults(
  workspace: Workspace,
  path: string,
  { results, signal }: { readonly results: JsonObject; readonly signal: AbortSignal },
): Promise<string> {
  const text = `${JSON.stringify(results, null, 2)}\n`
  return withResolved(
    () => workspace.writePolicy.resolve(path),
    async (resolved) => {
      await withTarget(workspace, { path: resolved, shown: shownPath(path), signal, create: true }, async (target) => {
        await replaceFile(target, await writableStats(target), { write: (file) => file.writeFile(text) })
      })
      return workspace.display(resolved)
    },
  )
}

function valueError(message: string): FileFailure {
  return new FileFailure('ValueError', message)
}

/** The result of one prompt. */
export type Entry =
  | { readonly index: number; readonly ok: true; readonly result: JsonValue }
  | { readonly index: number; readonly ok: false; readonly error: string }

/** A call in progress. */
export interface PromptBatch {
  readonly settings: ParallelLlmSettings
  readonly system: string | null
  readonly context: ToolContext
  readonly slots: Slots
  /** Requests that were started. */
  requests: number
}

/**
 * Asks one prompt in its own run without tools, and retries failures that may be temporary. Rejects only if the call is
 * cancelled, or the options are invalid for every prompt.
 */
export async function askPrompt(batch: PromptBatch, prompt: string, index: number): Promise<Entry> {
  const { settings, context, slots } = batch
  for (let attempt = 0; ; attempt++) {
    const entry = await slots.within(context.callId, context.signal, () =>
      attemptPrompt(batch, prompt, { index, attempt }),
    )
    if ('index' in entry) return entry
    const { error } = entry
    if (attempt + 1 >= settings.maxAttempts || !isTemporary(error)) return { index, ok: false, error: error.message }
    const delayMs = isFromLog(error) ? 0 : retryDelayMs(attempt, error.retryAfterMs, Math.random())
    await sleep(delayMs, context.signal)
  }
}

async function attemptPrompt(
  batch: PromptBatch,
  prompt: string,
  { index, attempt }: { readonly index: number; readonly attempt: number },
): Promise<Entry | { readonly error: HarnessError }> {
  const { context } = batch
  try {
    const run = context.spawn<unknown>(spawnOptionsOf(batch, prompt, `${index}-${promptDigest(prompt)}.${attempt}`))
    const { output, toolCallRecords, usage } = await run.result
    batch.requests += usage.modelRequests
    return toolCallRecords.length > 0
      ? { index, ok: false, error: STRAY_CALL }
      : { index, ok: true, result: plainJson(output) }
  } catch (error) {
    if (!(error instanceof HarnessError) || error.code === 'invalid_options' || context.signal.aborted) throw error
    batch.requests += (error.run?.usage.modelRequests ?? 0) + (error.code === 'provider_error' ? 1 : 0)
    return { error }
  }
}

const STRAY_CALL = 'The model called a tool that it does not have: prompts are answered without tools.'

function spawnOptionsOf({ settings, system }: PromptBatch, prompt: string, key: string): SpawnOptions<unknown> {
  const { name, model, settings: modelSettings, outputType, outputMode, outputValidator, outputRetries } = settings
  return {
    prompt,
    key,
    agentName: name,
    // Room for an empty reply, and for a first request without the notice that it is the last.
    limits: { modelRequests: outputRetries + 2, toolCalls: null, timeMs: null },
    ...(system !== null && { instructions: system }),
    ...(model !== undefined && { model }),
    ...(modelSettings !== undefined && { settings: modelSettings }),
    ...(outputType !== undefined && { outputType, outputMode: outputMode ?? 'auto' }),
    ...(outputValidator !== undefined && { outputValidator }),
    outputRetries,
  }
}

/** If the file of prompts is changed before a recovery, a different prompt is a different run. */
function promptDigest(prompt: string): string {
  return createHash('sha256').update(prompt).digest('hex').slice(0, 12)
}

function isTemporary({ code, retryable }: HarnessError): boolean {
  return code === 'provider_error' && retryable
}

/** The run had already failed in the log: there is nothing to wait for. */
function isFromLog({ cause }: HarnessError): boolean {
  return cause instanceof HarnessError && cause.run !== undefined
}

/** Longest wait for a provider, in ms. */
const LONGEST_DELAY_MS = 60_000

/** The delay after attempt number `attempt`, from 0: the one that the provider requests, else 1, 2, 4 … s and up to a quarter more. */
export function retryDelayMs(attempt: number, retryAfterMs: number | undefined, random: number): number {
  const delay = retryAfterMs ?? 1_000 * 2 ** attempt * (1 + random / 4)
  return Math.min(delay, LONGEST_DELAY_MS)
}
