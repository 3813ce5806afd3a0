import type {
  Model,
  ModelDelta,
  ModelSession,
  ModelSettings,
  ModelTurn,
  RequestConstants,
  StructuredOutputRequest,
  ToolDefinition,
} from '../contracts/model.js'
import { textOf, toolCallsOf } from '../contracts/entry.js'
import type { TranscriptEntry, UserEntry } from '../contracts/entry.js'
import { isObject, parseJson } from '../util/json.js'

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

/** Whom a check asks, and within which bounds. */
export interface Asking {
  readonly model: Model
  readonly signal: AbortSignal
  readonly maxOutputTokens: number
}

/** Null: it can. Else why it cannot, in a sentence. Rejects where the request fails. */
type Check = (asking: Asking) => Promise<string | null>

/** In the order in which they are tried. */
export const CHECKS: Readonly<Record<ProbeCheckName, Check>> = {
  async answers(asking) {
    const { entry } = await ask(asking, READY)
    return textOf(entry.parts).trim() === '' ? `The reply has no text (it ended by \`${entry.finishReason}\`).` : null
  },
  async usage(asking) {
    const { usage } = (await ask(asking, READY)).entry
    return usage.inputTokens === null || usage.outputTokens === null ? 'The reply does not say what it cost.' : null
  },
  async streaming(asking) {
    const { deltas, turn } = await stream(asking)
    if (deltas.length === 0) return 'A stream was asked for, and no piece of the text came.'
    if (deltas.length === 1) return 'A stream was asked for, and all of the text came at once.'
    return textOf(turn.entry.parts).trim() === '' ? 'The stream brought no text.' : null
  },
  async streamedUsage(asking) {
    const { usage } = (await stream(asking)).turn.entry
    return usage.inputTokens === null || usage.outputTokens === null ? 'The stream does not say what it cost.' : null
  },
  async tools(asking) {
    return problemOfCalls(await ask(asking, WEATHER_IN_ONE, { tools: [WEATHER] }), 1)
  },
  async toolResults(asking) {
    return await answerFromResult(asking)
  },
  async parallelCalls(asking) {
    return problemOfCalls(await ask(asking, WEATHER_IN_TWO, { tools: [WEATHER] }), 2)
  },
  async jsonSchema(asking) {
    const text = textOf((await ask(asking, SPIDERS, { structuredOutput: LEGS })).entry.parts)
    const reply = parseJson(text)
    const fits = reply.ok && isObject(reply.value) && Number.isInteger(reply.value[FIELD])
    return fits ? null : `The reply does not follow the schema: ${shown(text)}`
  },
  async reasoning(asking) {
    const { parts, usage } = (await ask(asking, RIDDLE, { settings: { reasoningEffort: 'low' } })).entry
    const thinks = parts.some(({ type }) => type === 'reasoning') || (usage.reasoningTokens ?? 0) > 0
    return thinks ? null : 'The reply shows no reasoning, and counts no tokens of it.'
  },
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
  description: 'Tells the weather in a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

/** Nothing that a model would say by itself. */
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

function ask(asking: Asking, prompt: string, request: Request = {}): Promise<ModelTurn> {
  return turn(asking, asking.model.openSession(), {
    transcript: [user(prompt)],
    constants: constantsOf(asking, request),
  })
}

async function stream(asking: Asking): Promise<{ readonly turn: ModelTurn; readonly deltas: readonly ModelDelta[] }> {
  const deltas: ModelDelta[] = []
  const onDelta = (delta: ModelDelta): void => {
    if (delta.kind === 'text_delta') deltas.push(delta)
  }
  const options = { generation: 0, signal: asking.signal, onDelta }
  const reply = await asking.model.openSession().turn([user(COUNT)], constantsOf(asking, {}), options)
  return { turn: reply, deltas }
}

/** Whether the model reads what a tool gave: a number that it cannot know. */
async function answerFromResult(asking: Asking): Promise<string | null> {
  const session = asking.model.openSession()
  const constants = constantsOf(asking, { tools: [WEATHER] })
  const question = user(WEATHER_IN_ONE)
  const { entry } = await turn(asking, session, { transcript: [question], constants })
  const toolCalls = toolCallsOf(entry.parts)
  if (toolCalls.length === 0) return 'The reply calls no tool, so that it could not be given a result.'
  const results = toolCalls.map(({ callId, name }): TranscriptEntry => {
    const content = JSON.stringify({ ok: true, content: 'It rains; 4127 mm fell today.', metadata: {} })
    return { role: 'tool', ...STAMP, callId, name, content, isError: false }
  })
  const transcript = [question, { ...entry, ...STAMP }, ...results, user('How many mm fell? Answer with the number.')]
  const text = textOf((await turn(asking, session, { transcript, constants })).entry.parts)
  return /4[,. ]?127/.test(text) ? null : `The reply does not say what the tool gave: ${shown(text)}`
}

function problemOfCalls({ entry }: ModelTurn, count: number): string | null {
  const toolCalls = toolCallsOf(entry.parts)
  if (toolCalls.length < count) {
    const made = toolCalls.length === 0 ? 'no tool' : `${toolCalls.length} tool`
    return `The reply calls ${made} where ${count} should be called: ${shown(textOf(entry.parts))}`
  }
  const broken = toolCalls.find((call) => call.name !== WEATHER.name || !isObject(parsed(call.arguments)))
  return broken === undefined ? null : `The reply calls \`${broken.name}\` with ${shown(broken.arguments)}`
}

function parsed(text: string): unknown {
  const result = parseJson(text)
  return result.ok ? result.value : undefined
}

function turn(
  { signal }: Asking,
  session: ModelSession,
  { transcript, constants }: { readonly transcript: readonly TranscriptEntry[]; readonly constants: RequestConstants },
): Promise<ModelTurn> {
  return session.turn(transcript, constants, { generation: 0, signal })
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

function shown(text: string): string {
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text === '' ? '(nothing)' : text
}
