import { textOf, toolCallsOf } from '#contracts/entry.js'
import type { TranscriptEntry, UserEntry } from '#contracts/entry.js'
import { HarnessError, messageOf } from '#contracts/errors.js'
import { parse } from '#contracts/parse.js'
import type {
  Model,
  ModelCapabilities,
  ModelDelta,
  ModelSession,
  ModelSettings,
  ModelTurn,
  RequestConstants,
  StructuredOutputRequest,
  ToolDefinition,
  TransportRetry,
} from '#core/model-session.js'
import { isObject, jsonObjectIn, jsonOr, objectSchema } from '#util/json.js'
import { abortSignal, integer, milliseconds, partial } from '#util/validate.js'

export type ProbeCheckName =
  | 'answers'
  | 'usage'
  | 'streaming'
  | 'streamedUsage'
  | 'tools'
  | 'toolResults'
  | 'parallelCalls'
  | 'jsonSchema'
  | 'reasoning'

/** The model of a check, and its bounds. */
export interface Asking {
  readonly model: Model
  readonly signal: AbortSignal
  readonly maxOutputTokens: number
}

/** Null if the model can do it, otherwise the reason why not, as a sentence. Rejects if the request fails. */
type Check = (asking: Asking) => Promise<string | null>

/** In the order of execution. */
const CHECKS: Readonly<Record<ProbeCheckName, Check>> = {
  async answers(asking) {
    const entry = await askModel(asking, READY)
    return isBlank(entry) ? `The reply has no text (it ended with \`${entry.finishReason}\`).` : null
  },
  async usage(asking) {
    return isCounted(await askModel(asking, READY)) ? null : 'The reply does not contain its usage.'
  },
  async streaming(asking) {
    const { entry, deltas, refusal } = await streamReply(asking)
    if (refusal !== null) return refusal
    if (deltas === 0) return 'A stream was requested, and no piece of the text arrived.'
    if (deltas === 1) return 'A stream was requested, and all of the text arrived at once.'
    return isBlank(entry) ? 'The stream contained no text.' : null
  },
  async streamedUsage(asking) {
    const { entry, refusal } = await streamReply(asking)
    return refusal ?? (isCounted(entry) ? null : 'The stream does not contain its usage.')
  },
  async tools(asking) {
    return problemOfCalls(await askModel(asking, WEATHER_IN_ONE, { tools: [WEATHER] }), 1)
  },
  async toolResults(asking) {
    return await answerFromResult(asking)
  },
  async parallelCalls(asking) {
    return problemOfCalls(await askModel(asking, WEATHER_IN_TWO, { tools: [WEATHER] }), 2)
  },
  async jsonSchema(asking) {
    const text = textOf((await askModel(asking, SPIDERS, { structuredOutput: LEGS })).parts)
    const fits = Number.isInteger(jsonObjectIn(text)[FIELD])
    return fits ? null : `The reply does not follow the schema: ${shortened(text)}`
  },
  async reasoning(asking) {
    const { parts, usage } = await askModel(asking, RIDDLE, { settings: { reasoningEffort: 'low' } })
    const reasons = parts.some(({ type }) => type === 'reasoning') || (usage.reasoningTokens ?? 0) > 0
    return reasons ? null : 'The reply shows no reasoning, and counts no tokens of it.'
  },
}

function isBlank({ parts }: Reply): boolean {
  return textOf(parts).trim() === ''
}

function isCounted({ usage }: Reply): boolean {
  return usage.inputTokens !== null && usage.outputTokens !== null
}

const READY = 'Reply with the single word: ready'
const COUNT = 'Count from one to twenty in words, separated by commas.'
const WEATHER_IN_ONE = 'Call the tool `get_weather` for the city Lisbon. Do not answer without it.'
const WEATHER_IN_TWO =
  'Call the tool `get_weather` for the cities Lisbon and Oslo: two calls in one reply, before you read any result.'
const SPIDERS = 'How many legs does a spider have?'
const RIDDLE = 'Which is larger, 9.11 or 9.9? Answer with the number alone.'

const WEATHER: ToolDefinition = {
  name: 'get_weather',
  description: 'Returns the weather in a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

/** A name that a model would not choose by itself. */
const FIELD = 'leg_count_8q'
const LEGS: StructuredOutputRequest = {
  name: 'legs',
  schema: objectSchema([FIELD], { [FIELD]: { type: 'integer' } }),
  strict: true,
}

const STAMP = { id: 'probe', at: '2026-01-01T00:00:00.000Z' } as const

interface Request {
  readonly tools?: readonly ToolDefinition[]
  readonly structuredOutput?: StructuredOutputRequest
  readonly settings?: ModelSettings
}

type Reply = ModelTurn['entry']

/** Work with a session, which gives back what it holds at the end. */
async function withSession<T>({ model }: Asking, work: (session: ModelSession) => Promise<T>): Promise<T> {
  const session = model.openSession()
  try {
    return await work(session)
  } finally {
    session.close?.()
  }
}

async function askModel(asking: Asking, prompt: string, request: Request = {}): Promise<Reply> {
  const options = { generation: 0, signal: asking.signal }
  const view = [userEntry(prompt)]
  return (await withSession(asking, (session) => session.turn(view, constantsOf(asking, request), options))).entry
}

interface Streamed {
  readonly entry: Reply
  /** The number of its text deltas. */
  readonly deltas: number
  /** The server's reason to refuse a stream. The reply was then requested as a whole. */
  readonly refusal: string | null
}

async function streamReply(asking: Asking): Promise<Streamed> {
  let deltas = 0
  let refusal: string | null = null
  const onRetry = ({ reason, delayMs }: TransportRetry): void => {
    if (delayMs === 0) refusal = reason
  }
  const onDelta = ({ kind }: ModelDelta): void => {
    if (kind === 'text_delta') deltas += 1
  }
  const options = { generation: 0, signal: asking.signal, onDelta, onRetry }
  const view = [userEntry(COUNT)]
  const { entry } = await withSession(asking, (session) => session.turn(view, constantsOf(asking, {}), options))
  return { entry, deltas, refusal }
}

/** Checks that the model reads the result of a tool: a number that it cannot know. */
function answerFromResult(asking: Asking): Promise<string | null> {
  return withSession(asking, (session) => readResult(asking, session))
}

async function readResult(asking: Asking, session: ModelSession): Promise<string | null> {
  const constants = constantsOf(asking, { tools: [WEATHER] })
  const options = { generation: 0, signal: asking.signal }
  const question = userEntry(WEATHER_IN_ONE)
  const { entry } = await session.turn([question], constants, options)
  const results = toolCallsOf(entry.parts).map(({ callId, name }): TranscriptEntry => {
    const content = JSON.stringify({ ok: true, content: 'It rains; 4127 mm fell today.', metadata: {} })
    return { role: 'tool', ...STAMP, callId, name, content, isError: false }
  })
  if (results.length === 0) return 'The reply calls no tool, so no result could be sent.'
  const transcript = [
    question,
    { ...entry, ...STAMP },
    ...results,
    userEntry('How many mm fell? Answer with the number.'),
  ]
  const text = textOf((await session.turn(transcript, constants, options)).entry.parts)
  return /4[,. ]?127/.test(text) ? null : `The reply does not contain the result of the tool: ${shortened(text)}`
}

function problemOfCalls({ parts }: Reply, count: number): string | null {
  const toolCalls = toolCallsOf(parts)
  if (toolCalls.length < count) {
    const called = toolCalls.length === 0 ? 'no tool' : `${toolCalls.length} tool`
    return `The reply calls ${called}, expected ${count}: ${shortened(textOf(parts))}`
  }
  const broken = toolCalls.find((call) => call.name !== WEATHER.name || !isObject(jsonOr(call.arguments, null)))
  return broken === undefined ? null : `The reply calls \`${broken.name}\` with ${shortened(broken.arguments)}`
}

function constantsOf({ maxOutputTokens }: Asking, request: Request): RequestConstants {
  return {
    instructions: '',
    tools: request.tools ?? [],
    structuredOutput: request.structuredOutput ?? null,
    settings: { maxOutputTokens, ...request.settings },
  }
}

function userEntry(text: string): UserEntry {
  return { role: 'user', ...STAMP, content: [{ type: 'text', text }] }
}

const LONGEST_SHOWN = 200

function shortened(text: string): string {
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text === '' ? '(nothing)' : text
}

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
      answers === undefined || answers.found === 'yes' ? await runCheck(name, model, options) : { ...NOT_TRIED, ms: 0 }
  }
  const all = checks as Readonly<Record<ProbeCheckName, ProbeCheck>>
  return { provider: model.provider, model: model.id, capabilities: probedCapabilities(all), checks: all }
}

const NAMES = Object.keys(CHECKS) as ProbeCheckName[]
const NOT_TRIED = { found: 'unknown', because: 'Not tried: the first request got no answer.' } as const

async function runCheck(name: ProbeCheckName, model: Model, options: ProbeOptions): Promise<ProbeCheck> {
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

function probedCapabilities({ tools, toolResults, jsonSchema, reasoning }: ProbeReport['checks']): ModelCapabilities {
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
