import type {
  Model,
  ModelDelta,
  ModelSettings,
  ModelTurn,
  RequestConstants,
  StructuredOutputRequest,
  ToolDefinition,
  TransportRetry,
} from '#core/model-session.js'
import { textOf, toolCallsOf } from '#contracts/entry.js'
import type { TranscriptEntry, UserEntry } from '#contracts/entry.js'
import { isObject, parseJson } from '#util/json.js'

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
export const CHECKS: Readonly<Record<ProbeCheckName, Check>> = {
  async answers(asking) {
    const entry = await askModel(asking, READY)
    return isBlank(entry) ? `The reply has no text (it ended with \`${entry.finishReason}\`).` : null
  },
  async usage(asking) {
    return isCounted(await askModel(asking, READY)) ? null : 'The reply does not contain its usage.'
  },
  async streaming(asking) {
    const { entry, deltas, refusal } = await stream(asking)
    if (refusal !== null) return refusal
    if (deltas === 0) return 'A stream was requested, and no piece of the text arrived.'
    if (deltas === 1) return 'A stream was requested, and all of the text arrived at once.'
    return isBlank(entry) ? 'The stream contained no text.' : null
  },
  async streamedUsage(asking) {
    const { entry, refusal } = await stream(asking)
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
    const reply = parseJson(text)
    const fits = reply.ok && isObject(reply.value) && Number.isInteger(reply.value[FIELD])
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
  schema: {
    type: 'object',
    properties: { [FIELD]: { type: 'integer' } },
    required: [FIELD],
    additionalProperties: false,
  },
  strict: true,
}

const STAMP = { id: 'probe', at: '2026-01-01T00:00:00.000Z' } as const

interface Request {
  readonly tools?: readonly ToolDefinition[]
  readonly structuredOutput?: StructuredOutputRequest
  readonly settings?: ModelSettings
}

type Reply = ModelTurn['entry']

async function askModel(asking: Asking, prompt: string, request: Request = {}): Promise<Reply> {
  const options = { generation: 0, signal: asking.signal }
  return (await asking.model.openSession().turn([user(prompt)], constantsOf(asking, request), options)).entry
}

interface Streamed {
  readonly entry: Reply
  /** The number of its text deltas. */
  readonly deltas: number
  /** The server's reason to refuse a stream. The reply was then requested as a whole. */
  readonly refusal: string | null
}

async function stream(asking: Asking): Promise<Streamed> {
  let deltas = 0
  let refusal: string | null = null
  const onRetry = ({ reason, delayMs }: TransportRetry): void => {
    if (delayMs === 0) refusal = reason
  }
  const onDelta = ({ kind }: ModelDelta): void => {
    if (kind === 'text_delta') deltas += 1
  }
  const options = { generation: 0, signal: asking.signal, onDelta, onRetry }
  const { entry } = await asking.model.openSession().turn([user(COUNT)], constantsOf(asking, {}), options)
  return { entry, deltas, refusal }
}

/** Checks that the model reads the result of a tool: a number that it cannot know. */
async function answerFromResult(asking: Asking): Promise<string | null> {
  const session = asking.model.openSession()
  const constants = constantsOf(asking, { tools: [WEATHER] })
  const options = { generation: 0, signal: asking.signal }
  const question = user(WEATHER_IN_ONE)
  const { entry } = await session.turn([question], constants, options)
  const results = toolCallsOf(entry.parts).map(({ callId, name }): TranscriptEntry => {
    const content = JSON.stringify({ ok: true, content: 'It rains; 4127 mm fell today.', metadata: {} })
    return { role: 'tool', ...STAMP, callId, name, content, isError: false }
  })
  if (results.length === 0) return 'The reply calls no tool, so no result could be sent.'
  const transcript = [question, { ...entry, ...STAMP }, ...results, user('How many mm fell? Answer with the number.')]
  const text = textOf((await session.turn(transcript, constants, options)).entry.parts)
  return /4[,. ]?127/.test(text) ? null : `The reply does not contain the result of the tool: ${shortened(text)}`
}

function problemOfCalls({ parts }: Reply, count: number): string | null {
  const toolCalls = toolCallsOf(parts)
  if (toolCalls.length < count) {
    const called = toolCalls.length === 0 ? 'no tool' : `${toolCalls.length} tool`
    return `The reply calls ${called}, expected ${count}: ${shortened(textOf(parts))}`
  }
  const broken = toolCalls.find((call) => call.name !== WEATHER.name || !isObject(parsed(call.arguments)))
  return broken === undefined ? null : `The reply calls \`${broken.name}\` with ${shortened(broken.arguments)}`
}

function parsed(text: string): unknown {
  const result = parseJson(text)
  return result.ok ? result.value : undefined
}

function constantsOf({ maxOutputTokens }: Asking, request: Request): RequestConstants {
  return {
    instructions: '',
    tools: request.tools ?? [],
    structuredOutput: request.structuredOutput ?? null,
    settings: { maxOutputTokens, ...request.settings },
  }
}

function user(text: string): UserEntry {
  return { role: 'user', ...STAMP, content: [{ type: 'text', text }] }
}

const LONGEST_SHOWN = 200

function shortened(text: string): string {
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text === '' ? '(nothing)' : text
}
