import type { RequestConstants, RunEvent, RunTrace, TokenUsage } from '../index.js'
import { callErrorType, inDollars } from './attributes.js'
import { ATTRIBUTE, METRIC, OPERATION, OTHER } from './names.js'
import type { OtelAttributes, OtelHistogram, OtelMeter } from './otel-api.js'
import type { EventOf } from './spans.js'

/** The histograms of all runs. */
export interface Histograms {
  readonly tokens: OtelHistogram
  readonly duration: OtelHistogram
  readonly cost: OtelHistogram
}

export function histogramsOf(meter: OtelMeter): Histograms {
  const made = ({ name, unit, description, boundaries }: (typeof METRIC)[keyof typeof METRIC]): OtelHistogram =>
    meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: [...boundaries] } })
  return { tokens: made(METRIC.tokens), duration: made(METRIC.duration), cost: made(METRIC.cost) }
}

/** Measures one run: tokens, cost and time of each request, time of each tool call and of the run. */
export class RunMetrics implements RunTrace {
  readonly #histograms: Histograms
  readonly #agent: OtelAttributes
  readonly #startedAt: string
  #model: OtelAttributes = {}
  /** The start of the current request. */
  #askedAt: string | null = null
  #offered: ReadonlySet<string> = new Set()

  constructor(histograms: Histograms, agentName: string, startedAt: string) {
    this.#histograms = histograms
    this.#agent = { [ATTRIBUTE.agentName]: agentName }
    this.#startedAt = startedAt
  }

  constants({ tools }: RequestConstants): void {
    this.#offered = new Set(tools.map(({ name }) => name))
  }

  event(event: RunEvent): void {
    if (event.kind === 'run_started' || event.kind === 'model_request_started') {
      this.#model = { [ATTRIBUTE.provider]: event.provider, [ATTRIBUTE.requestModel]: event.model }
    }
    if (event.kind === 'model_request_started') this.#askedAt = event.at
    if (event.kind === 'model_message') this.#replied(event)
    if (event.kind === 'tool_call_completed') this.#called(event)
    if (event.kind === 'run_completed') this.#ended(event.at, null)
    if (event.kind === 'run_failed') this.#ended(event.at, event.code)
  }

  #replied({ at, entry, responseModel, cost }: EventOf<'model_message'>): void {
    const attributes = { ...this.#turn(), ...(responseModel !== null && { [ATTRIBUTE.responseModel]: responseModel }) }
    this.#tokens(entry.usage, attributes)
    if (cost !== undefined) this.#histograms.cost.record(inDollars(cost), attributes)
    this.#measure(attributes, this.#askedAt ?? at, at)
    this.#askedAt = null
  }

  #tokens({ inputTokens, outputTokens }: TokenUsage, attributes: OtelAttributes): void {
    const { tokens } = this.#histograms
    if (inputTokens !== null) tokens.record(inputTokens, { ...attributes, [ATTRIBUTE.tokenType]: 'input' })
    if (outputTokens !== null) tokens.record(outputTokens, { ...attributes, [ATTRIBUTE.tokenType]: 'output' })
  }

  #called(event: EventOf<'tool_call_completed'>): void {
    const { toolName, durationMs } = event
    const attributes = {
      [ATTRIBUTE.operation]: OPERATION.tool,
      [ATTRIBUTE.toolName]: this.#offered.has(toolName) ? toolName : OTHER,
      ...errorOf(callErrorType(event)),
    }
    this.#histograms.duration.record(durationMs / 1000, attributes)
  }

  #ended(at: string, code: string | null): void {
    const failed = errorOf(code)
    if (this.#askedAt !== null) this.#measure({ ...this.#turn(), ...failed }, this.#askedAt, at)
    this.#askedAt = null
    const attributes = { [ATTRIBUTE.operation]: OPERATION.run, ...this.#model, ...this.#agent, ...failed }
    this.#measure(attributes, this.#startedAt, at)
  }

  #turn(): OtelAttributes {
    return { [ATTRIBUTE.operation]: OPERATION.turn, ...this.#model }
  }

  #measure(attributes: OtelAttributes, from: string, to: string): void {
    this.#histograms.duration.record(Math.max(0, Date.parse(to) - Date.parse(from)) / 1000, attributes)
  }
}

function errorOf(type: string | null): OtelAttributes {
  return type === null ? {} : { [ATTRIBUTE.errorType]: type }
}
