import { createHash } from 'node:crypto'
import { HarnessError } from '#contracts/errors.js'
import { plainJson } from '#util/plain-json.js'
import type { SpawnOptions, ToolContext } from '#core/tools/tool-spec.js'
import type { JsonValue } from '#util/json.js'
import { sleep } from '#util/timeout.js'
import type { Slots } from '#util/slots.js'
import type { ParallelLlmSettings } from './options.js'

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
    const entry = await slots.within(context.callId, context.signal, () => attemptOf(batch, prompt, { index, attempt }))
    if ('index' in entry) return entry
    const { error } = entry
    if (attempt + 1 >= settings.maxAttempts || !isTemporary(error)) return { index, ok: false, error: error.message }
    const delayMs = isFromLog(error) ? 0 : retryDelayMs(attempt, error.retryAfterMs, Math.random())
    await sleep(delayMs, context.signal)
  }
}

async function attemptOf(
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
