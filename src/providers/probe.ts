import { HarnessError, messageOf } from '../contracts/errors.js'
import type { Model, ModelCapabilities } from '../contracts/model.js'
import { parse } from '../contracts/parse.js'
import { abortSignal, integer, milliseconds, partial } from '../util/shape.js'
import { CHECKS } from './probe-checks.js'
import type { Asking, ProbeCheckName } from './probe-checks.js'

export type { ProbeCheckName } from './probe-checks.js'

export interface ProbeOptions {
  readonly signal?: AbortSignal
  /** Longest time of one check, in ms. Default 60,000: a local server may have to load its model first. */
  readonly timeoutMs?: number
  /** Cap of one reply, in tokens. Default 1,024, thoughts included. There are no more than ten requests. */
  readonly maxOutputTokens?: number
}

const OPTIONS = partial<ProbeOptions>({
  signal: abortSignal,
  timeoutMs: milliseconds,
  maxOutputTokens: integer(1),
})

/** What one check has found, and how long it took. */
export type ProbeCheck = { readonly ms: number } & (
  | { readonly found: 'yes' }
  /** The server refuses it, or the model does not do it. */
  | { readonly found: 'no'; readonly because: string }
  /** It could not be found out: no connection, no answer in time, a limit of the server. */
  | { readonly found: 'unknown'; readonly because: string }
)

export interface ProbeReport {
  readonly provider: string
  readonly model: string
  /** What was found, to be given as `capabilities` of the model. What could not be found out is left out. */
  readonly capabilities: ModelCapabilities
  readonly checks: Readonly<Record<ProbeCheckName, ProbeCheck>>
}

const DEFAULT_TIMEOUT_MS = 60_000
const DEFAULT_MAX_OUTPUT_TOKENS = 1024

/**
 * Finds out by small requests what a model and its server can do, so that a local server is set up from facts:
 *
 * ```ts
 * const { capabilities } = await probe(openaiCompatible('qwen3', { baseUrl }))
 * const model = openaiCompatible('qwen3', { baseUrl, capabilities })
 * ```
 *
 * The checks come one after another, each with a few dozen tokens of input. A model chooses its words, so that a `no` may
 * be its mood: what the server refuses is told as such. Where the first request gets no answer, no other is made. Rejects
 * with `invalid_options`, or with the reason of `signal`.
 */
export async function probe(model: Model, given: ProbeOptions = {}): Promise<ProbeReport> {
  const options = parse(OPTIONS, given, '`probe`')
  const checks: Partial<Record<ProbeCheckName, ProbeCheck>> = {}
  for (const name of NAMES) {
    const { answers } = checks
    checks[name] =
      answers === undefined || answers.found === 'yes' ? await tried(name, model, options) : { ...NOT_TRIED, ms: 0 }
  }
  const all = checks as Readonly<Record<ProbeCheckName, ProbeCheck>>
  return { provider: model.provider, model: model.id, capabilities: capabilitiesOf(all), checks: all }
}

const NAMES = Object.keys(CHECKS) as ProbeCheckName[]
const NOT_TRIED = { found: 'unknown', because: 'Not tried: the first request got no answer.' } as const

async function tried(name: ProbeCheckName, model: Model, options: ProbeOptions): Promise<ProbeCheck> {
  const { signal, timeoutMs = DEFAULT_TIMEOUT_MS, maxOutputTokens = DEFAULT_MAX_OUTPUT_TOKENS } = options
  signal?.throwIfAborted()
  const limit = AbortSignal.timeout(timeoutMs)
  const either = signal === undefined ? limit : AbortSignal.any([signal, limit])
  const asking: Asking = { model, signal: either, maxOutputTokens }
  const started = performance.now()
  const finding = await CHECKS[name](asking).then(
    (problem) => (problem === null ? ({ found: 'yes' } as const) : ({ found: 'no', because: problem } as const)),
    (error: unknown) => {
      signal?.throwIfAborted()
      const because = limit.aborted ? `No answer within ${timeoutMs} ms.` : messageOf(error)
      return { found: !limit.aborted && isRefusal(error) ? 'no' : 'unknown', because } as const
    },
  )
  return { ...finding, ms: Math.round(performance.now() - started) }
}

/** Statuses of a server that understood the request, and does not do what it asks for. */
const REFUSALS: readonly (number | undefined)[] = [400, 404, 405, 415, 422, 501]

function isRefusal(error: unknown): boolean {
  if (!(error instanceof HarnessError)) return false
  return error.code === 'invalid_options' || (error.code === 'provider_error' && REFUSALS.includes(error.status))
}

function capabilitiesOf({ tools, toolResults, jsonSchema, reasoning }: ProbeReport['checks']): ModelCapabilities {
  const supportsTools = isKnown(tools) && isKnown(toolResults) && tools.found === 'yes' && toolResults.found === 'yes'
  return {
    ...((isKnown(tools) || isKnown(toolResults)) && { supportsTools }),
    ...(isKnown(jsonSchema) && {
      supportsJsonSchemaOutput: jsonSchema.found === 'yes',
      defaultStructuredOutputMode: jsonSchema.found === 'yes' ? 'native' : supportsTools ? 'tool' : 'prompted',
    }),
    ...(reasoning.found === 'no' && { reasoningEfforts: [] }),
  }
}

function isKnown({ found }: ProbeCheck): boolean {
  return found !== 'unknown'
}
