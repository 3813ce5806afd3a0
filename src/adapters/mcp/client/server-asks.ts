import { pathToFileURL } from 'node:url'
import { basename } from 'node:path'
import type {
  SamplingRequest,
  SourceAnswer,
  SourceCall,
  SourceQuestion,
  ToolSourceHost,
  SamplingMessage,
  SamplingReply,
} from '#core/tools/tool-source.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import type { ConnectionSetup, RootsResult, SamplingResult } from '../sdk/connection.js'
import type { OpenToolCalls, PersonQuestion } from './open-calls.js'
import type { ServerSettings } from './server-options.js'
import { HarnessError } from '#contracts/errors.js'
import type { ContentPart } from '#contracts/entry.js'
import type { ToolContext } from '#core/tools/tool-spec.js'
import { contentParts } from './result-content.js'

/** How a server's requests to us are answered. */
export function serverAsks(
  settings: ServerSettings,
  hosts: ReadonlySet<ToolSourceHost>,
  calls: OpenToolCalls,
): ConnectionSetup['asks'] {
  const callNow = (signal: AbortSignal): SourceCall => {
    const { runId = null, callId = null } = calls.only ?? {}
    return { sourceId: settings.id, runId, callId, signal }
  }
  return {
    elicit: settings.elicitation
      ? (params, signal) =>
          answerElicitation(readQuestion(params), { serverId: settings.id, hosts, calls, signal, callNow })
      : null,
    sample:
      settings.sampling === null
        ? null
        : (params, signal) => answerSampling(params, settings, { hosts, calls, call: callNow(signal) }),
    roots: () => ({ roots: (settings.roots ?? workspaceRoots(hosts)).map(workspaceRoot) }),
  }
}

interface Asking {
  readonly serverId: string
  readonly hosts: ReadonlySet<ToolSourceHost>
  readonly calls: OpenToolCalls
  readonly signal: AbortSignal
  readonly callNow: (signal: AbortSignal) => SourceCall
}

async function answerElicitation(
  question: SourceQuestion,
  { serverId, hosts, calls, signal, callNow }: Asking,
): Promise<JsonObject> {
  const live = [...hosts].map((host) => host.elicit).findLast((each) => each !== undefined)
  const answer =
    live === undefined
      ? await calls.ask(elicitationQuestion(question, serverId), signal)
      : await live(question, callNow(signal))
  return answerResult(answer, question)
}

function elicitationQuestion({ message, schema, url }: SourceQuestion, server: string): PersonQuestion {
  return { payload: { kind: 'mcp_elicitation', server, message, schema, url }, content: schema }
}

async function answerSampling(
  params: JsonObject,
  { id, sampling }: ServerSettings,
  { hosts, calls, call }: { hosts: ReadonlySet<ToolSourceHost>; calls: OpenToolCalls; call: SourceCall },
): Promise<SamplingResult> {
  const ask = typeof sampling === 'function' ? sampling : [...hosts].map((host) => host.sample).findLast((each) => each)
  const request = readSampling(params)
  if (sampling === 'ask') {
    const { action } = await calls.ask(leaveToSample(request, id), call.signal)
    if (action !== 'accept') throw new Error('The request was refused.')
  }
  const reply = await (ask === undefined ? sampleInRun(request, await calls.callOf(call.signal)) : ask(request, call))
  if (reply === null) throw new Error('The request was refused.')
  return samplingResult(reply)
}

/** A person reads all that the model would be asked. */
function leaveToSample({ instructions, messages, maxOutputTokens }: SamplingRequest, server: string): PersonQuestion {
  const shown = messages.map(({ role, content }) => ({ role, content: content.map((part) => ({ ...part })) }))
  return { payload: { kind: 'mcp_sampling', server, instructions, messages: shown, maxOutputTokens }, content: null }
}

function workspaceRoots(hosts: ReadonlySet<ToolSourceHost>): readonly string[] {
  return [...new Set([...hosts].flatMap(({ roots }) => roots))]
}

function workspaceRoot(path: string): RootsResult['roots'][number] {
  return { uri: pathToFileURL(path).href, name: basename(path) }
}

/** The parameters of `elicitation/create`. */
function readQuestion({ message, requestedSchema, mode, url }: JsonObject): SourceQuestion {
  const isPage = mode === 'url' && typeof url === 'string'
  return {
    message: typeof message === 'string' ? message : '',
    schema: !isPage && isObject(requestedSchema) ? requestedSchema : null,
    url: isPage ? url : null,
  }
}

/** The answer in the form of the protocol. */
function answerResult(answer: SourceAnswer, { url }: SourceQuestion): JsonObject {
  if (answer.action !== 'accept' || url !== null) return { action: answer.action }
  return { action: 'accept', content: answer.content }
}

/** Cap of a reply if the server names none, in tokens. */
const DEFAULT_MAX_TOKENS = 1_024

/** The parameters of `sampling/createMessage`. */
function readSampling({ messages, systemPrompt, maxTokens, temperature }: JsonObject): SamplingRequest {
  return {
    instructions: typeof systemPrompt === 'string' ? systemPrompt : '',
    messages: (Array.isArray(messages) ? (messages as readonly JsonValue[]) : []).flatMap(readMessage),
    maxOutputTokens: typeof maxTokens === 'number' && maxTokens >= 1 ? Math.floor(maxTokens) : DEFAULT_MAX_TOKENS,
    temperature: typeof temperature === 'number' ? temperature : null,
  }
}

/** A reply in the form of the protocol. */
function samplingResult({ text, model, stopReason }: SamplingReply): SamplingResult {
  return {
    role: 'assistant',
    content: { type: 'text', text },
    model,
    stopReason: stopReason === 'max_tokens' ? 'maxTokens' : 'endTurn',
  }
}

function readMessage(message: JsonValue): SamplingMessage[] {
  if (!isObject(message)) return []
  return [{ role: message['role'] === 'assistant' ? 'assistant' : 'user', content: contentParts(message['content']) }]
}

/**
 * Answers a server's request for a model's reply with the model of the calling run: one request in a child run of that call,
 * without tools, counted with the calling run.
 */
async function sampleInRun(request: SamplingRequest, context: ToolContext | null): Promise<SamplingReply> {
  if (context === null) {
    throw new HarnessError('error', 'The model to ask is unknown: no call is open, or several are.')
  }
  const asked = (sampled.get(context.runId) ?? 0) + 1
  // One request is left for the run itself.
  if (asked > Math.min(MOST_SAMPLED, (context.requestsLeft?.() ?? Infinity) - 1)) {
    throw new HarnessError('limit_reached', 'The run may make no more requests to its model.')
  }
  sampled.delete(context.runId)
  sampled.set(context.runId, asked)
  for (const [runId] of sampled) if (sampled.size > MOST_RUNS) sampled.delete(runId)
  const { instructions, messages, maxOutputTokens, temperature } = request
  const child = context.spawn({
    prompt: samplingPrompt(messages),
    agentName: 'mcp_sampling',
    instructions,
    limits: { modelRequests: 1 },
    settings: { maxOutputTokens, ...(temperature !== null && { temperature }) },
  })
  const { text, transcript } = await child.result
  const last = transcript.findLast((entry) => entry.role === 'assistant')
  return {
    text,
    model: last?.role === 'assistant' ? last.model : '',
    stopReason: last?.role === 'assistant' && last.finishReason === 'length' ? 'max_tokens' : 'end_turn',
  }
}

/** How many requests servers have sent during a run: those are not among its own. */
const sampled = new Map<string, number>()
/** Most of one run, whatever it may use. */
const MOST_SAMPLED = 100
const MOST_RUNS = 1_000

/** A run begins with one user message: a conversation becomes one, with the role before each message. */
function samplingPrompt(messages: readonly SamplingMessage[]): readonly ContentPart[] {
  const [first, ...others] = messages
  if (first !== undefined && others.length === 0) return first.content
  return messages.flatMap(({ role, content }) => [{ type: 'text' as const, text: `[${role}]` }, ...content])
}
