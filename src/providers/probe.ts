import { HarnessError, messageOf } from '#contracts/errors.js'
import type { Model, ModelCapabilities } from '#core/model-session.js'
import { parse } from '#contracts/parse.js'
import { abortSignal, integer, milliseconds, partial } from '#util/shape.js'
import { CHECKS } from './probe-checks.js'
import type { Asking, ProbeCheckName } from './probe-checks.js'

export type { ProbeCheckName } from './probe-checks.js'

export interface ProbeOptions {
  readonly signal?: AbortSignal | undefined
  /** Longest time of one check, in ms. Default 60,000: a local server may have to load its model first. */
  readonly timeoutMs?: number | undefined
  /** Limit of one reply, in tokens. Default 1,024, including reasoning. There are at most ten requests. */
  readonly maxOutputTokens?: number | undefined
}

const OPTIONS = partial<ProbeOptions>({
  signal: abortSignal,
  timeoutMs: milliseconds,
  maxOutputTokens: integer(1),
})

/** The finding of one check, and its duration. */
export type ProbeCheck = { readonly ms: number } & (
  | { readonly found: 'yes' }
  /** The server rejects it, or the model does not do it. */
  | { readonly found: 'no'; readonly because: string }
  /** It could not be determined: no connection, no answer in time, a limit of the server. */
  | { readonly found: 'unknown'; readonly because: string }
)

export interface ProbeReport {
  readonly provider: string
  readonly model: string
  /** The findings, as `capabilities` of the model. Unknown capabilities are left out. */
  readonly capabilities: ModelCapabilities
  readonly checks: Readonly<Record<ProbeCheckName, ProbeCheck>>
}

const DEFAULT_TIMEOUT_MS = 60_000
const DEFAULT_MAX_OUTPUT_TOKENS = 1024

/**
 * Determines the capabilities of a model and its server with small requests:
 *
 * ```ts
 * const { capabilities } = await probe(openaiCompatible('qwen3', { baseUrl }))
 * const model = openaiCompatible('qwen3', { baseUrl, capabilities })
 * ```
 *
 * The checks run one after the other, each with a few dozen tokens of input. A reply varies, so a `no` may be due to this
 * reply only, unless the reason is a rejection by the server. If the first request gets no answer, no other is sent.
 * Rejects with `invalid_options`, or with the reason of `signal`.
 */
export async function probe(model: Model, given: ProbeOptions = {}): Promise<ProbeReport> {
  const options = parse(OPTIONS, given, '`probe`')
  const checks: Partial<Record<ProbeCheckName, ProbeCheck>> = {}
  for (const name of NAMES) {
    const { answers } = checks
    checks[name] =
      answers === undefined || answers.found === 'yes' ? await run(name, model, options) : { ...NOT_TRIED, ms: 0 }
  }
  const all = checks as Readonly<Record<ProbeCheckName, ProbeCheck>>
  return { provider: model.provider, model: model.id, capabilities: capabilitiesOf(all), checks: all }
}

const NAMES = Object.keys(CHECKS) as ProbeCheckName[]
const NOT_TRIED = { found: 'unknown', because: 'Not tried: the first request got no answer.' } as const

async function run(name: ProbeCheckName, model: Model, options: ProbeOptions): Promise<ProbeCheck> {
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
      return { found: !limit.aborted && isRejection(error) ? 'no' : 'unknown', because } as const
    },
  )
  return { ...finding, ms: Math.round(performance.now() - started) }
}

/** Statuses of a server that understood the request, but does not support it. */
const REJECTIONS: readonly (number | undefined)[] = [400, 404, 405, 415, 422, 501]

function isRejection(error: unknown): boolean {
  if (!(error instanceof HarnessError)) return false
  return error.code === 'invalid_options' || (error.code === 'provider_error' && REJECTIONS.includes(error.status))
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
