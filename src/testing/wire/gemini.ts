import { partsContent } from '../script-request.js'
import type { HeardCall, ScriptMessage } from '../script-request.js'
import { textPieces } from '../reply.js'
import { sseFrame, withoutNulls, WireRefusal } from './api.js'
import type { ApiRequest, WireApi, WireBody, WireConversation, WireReply } from './api.js'
import { reasoningSignature } from './seals.js'
import { isObject, jsonOr } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'

/** The Gemini API, `generateContent`. Requests to models of the third generation need thought signatures. */
export const geminiApi: WireApi = {
  read: readGeminiRequest,
  callId: (ordinal) => `fc${String(ordinal).padStart(6, '0')}`,
  chargesCacheWrites: false,
  whole: (reply) => replyEvent(reply, replyPieces(reply, false), true),
  stream: (reply) => {
    const pieces = replyPieces(reply, true)
    const events = pieces.map((piece) => sseFrame(replyEvent(reply, [piece], false)))
    return [...events, sseFrame(replyEvent(reply, [], true))]
  },
  error: (status, message) => ({ error: { code: status, message, status: STATUSES.get(status) ?? 'UNKNOWN' } }),
  errorEvent: (message) => sseFrame({ error: { code: 503, message, status: 'UNAVAILABLE' } }),
}

const STATUSES: ReadonlyMap<number, string> = new Map([
  [400, 'INVALID_ARGUMENT'],
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [429, 'RESOURCE_EXHAUSTED'],
  [500, 'INTERNAL'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
])

const TARGET = /\/models\/([^/:?]+):(stream)?generateContent(?:\?|$)/i

/** The body with the model and the form of the reply, which this API has in its path. */
export function withTarget(path: string, body: WireBody): WireBody {
  const [, model, stream] = TARGET.exec(path) ?? []
  return model === undefined ? body : { ...body, model: decodeURIComponent(model), stream: stream !== undefined }
}

/** A path without the model in it. */
export function plainPath(path: string): string {
  return (path.split('?')[0] ?? '').replace(TARGET, '/generateContent')
}

/** The third generation signs its thoughts. */
function isThird(model: unknown): boolean {
  return typeof model === 'string' && !/gemini-[12]/.test(model)
}

/** The parts of a reply. Thoughts are signed in the first call, or at the end; a refusal is no part of it. */
function replyPieces({ parts, model }: WireReply, streamed: boolean): JsonObject[] {
  const cut = (text: string): readonly string[] => (streamed ? textPieces(text) : [text])
  const first = parts.find((part) => part.type === 'call')
  const pieces = parts.flatMap((part): JsonObject[] => {
    switch (part.type) {
      case 'text':
        return cut(part.text).map((text) => ({ text }))
      case 'reasoning':
        return part.text === '' ? [] : cut(part.text).map((text) => ({ text, thought: true }))
      case 'refusal':
        return []
      case 'block':
        return [part.data]
      case 'call': {
        // Arguments that are not JSON have no other place.
        const args = (jsonOr(part.arguments || '{}', undefined) ?? part.arguments) as JsonValue
        const functionCall = { ...withoutNulls({ id: part.callId }), name: part.name, args }
        const isSigned = part === first && isThird(model)
        return [{ functionCall, ...(isSigned && { thoughtSignature: reasoningSignature(part.name) }) }]
      }
    }
  })
  const isSealed = first === undefined && parts.some((part) => part.type === 'reasoning')
  return isSealed ? [...pieces, { text: '', thoughtSignature: reasoningSignature('') }] : pieces
}

function replyEvent(reply: WireReply, parts: readonly JsonObject[], isLast: boolean): JsonObject {
  const { id, model, finishReason, nativeFinishReason, usage } = reply
  const finish = nativeFinishReason ?? FINISH_REASONS[finishReason] ?? 'OTHER'
  const { inputTokens = null, outputTokens = null, cacheReadTokens = null, reasoningTokens = null } = usage ?? {}
  const counts = {
    promptTokenCount: inputTokens,
    candidatesTokenCount: outputTokens === null ? null : outputTokens - (reasoningTokens ?? 0),
    thoughtsTokenCount: reasoningTokens,
    cachedContentTokenCount: cacheReadTokens,
    totalTokenCount: inputTokens === null || outputTokens === null ? null : inputTokens + outputTokens,
  }
  return {
    candidates: [{ content: { parts, role: 'model' }, ...(isLast && { finishReason: finish }), index: 0 }],
    ...(usage !== null && { usageMetadata: withoutNulls(counts) }),
    modelVersion: model,
    responseId: id,
  }
}

const FINISH_REASONS: Readonly<Partial<Record<WireReply['finishReason'], string>>> = {
  stop: 'STOP',
  tool_calls: 'STOP',
  length: 'MAX_TOKENS',
  refusal: 'SAFETY',
  content_filter: 'SAFETY',
  error: 'MALFORMED_RESPONSE',
}

/** Reads a request of the Gemini API, as strictly as the API does. */
function readGeminiRequest({ headers, body }: ApiRequest): WireConversation {
  if (headers['x-goog-api-key'] === undefined && headers['authorization'] === undefined)
    throw new WireRefusal("Method doesn't allow unregistered callers.", {}, 403)
  const contents = objectList(body['contents'], 'contents')
  if (contents.length === 0) throw new WireRefusal('* GenerateContentRequest.contents: contents is not specified')
  const tools = functionNames(body)
  const messages = readContents(contents)
  if (isThird(body['model'])) checkSignatures(contents)
  const { systemInstruction } = body
  const instructions = isObject(systemInstruction)
    ? partsContent(objectList(systemInstruction['parts'], 'system_instruction.parts'))
    : ''
  const prefix = [systemInstruction, body['tools'], ...contents].filter((member) => member !== undefined)
  return { messages, instructions: String(instructions), tools, body, prefix, cacheable: prefix.length }
}

function objectList(value: unknown, place: string): readonly WireBody[] {
  if (Array.isArray(value) && value.every(isObject)) return value
  throw new WireRefusal(`Invalid value at '${place}': expected a list of objects.`)
}

function functionNames(body: WireBody): readonly string[] {
  const tools = body['tools'] === undefined ? [] : objectList(body['tools'], 'tools')
  const functions = tools.flatMap(({ functionDeclarations: list }) =>
    list === undefined ? [] : objectList(list, 'tools.function_declarations'),
  )
  const names = functions.map(({ name, parametersJsonSchema: schema = { type: 'object' } }, index) => {
    const place = `tools.function_declarations[${index}]`
    if (typeof name !== 'string' || !/^[a-zA-Z_][\w.:-]{0,127}$/.test(name))
      throw new WireRefusal(`* GenerateContentRequest.${place}.name: [Invalid function name.]`)
    if (isObject(schema) && schema['type'] === 'object') return name
    throw new WireRefusal(`* GenerateContentRequest.${place}.parameters: schema should be of type OBJECT`)
  })
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new WireRefusal(`Duplicate function declaration found: ${twice}`)
  const { generationConfig, toolConfig } = body
  const calling = isObject(toolConfig) ? toolConfig['functionCallingConfig'] : undefined
  const { mode, allowedFunctionNames: allowed = [] } = isObject(calling) ? calling : {}
  if (!Array.isArray(allowed) || !allowed.every((name) => names.includes(String(name))))
    throw new WireRefusal('tool_config.function_calling_config: allowed_function_names has a name that is not declared')
  const isJson = isObject(generationConfig) && generationConfig['responseMimeType'] === 'application/json'
  if (!isJson || mode !== 'ANY') return names
  throw new WireRefusal(
    "Forced function calling (ANY mode) with a response mime type: 'application/json' is unsupported",
  )
}

function readContents(contents: readonly WireBody[]): readonly ScriptMessage[] {
  const messages: ScriptMessage[] = []
  let open: readonly HeardCall[] = []
  for (const [index, { role = 'user', parts: given }] of contents.entries()) {
    const parts = given === undefined ? [] : objectList(given, `contents[${index}].parts`)
    if (parts.length === 0)
      throw new WireRefusal(`* GenerateContentRequest.contents[${index}].parts: contents.parts must not be empty.`)
    if (role !== 'user' && role !== 'model') throw new WireRefusal('Please use a valid role: user, model.')
    const results = parts.flatMap(({ functionResponse }) => (isObject(functionResponse) ? [functionResponse] : []))
    if (results.length !== open.length) {
      const rule =
        open.length === 0 ? 'that function response turn comes immediately after a function call turn' : COUNT
      throw new WireRefusal(`Please ensure ${rule}.`)
    }
    messages.push(...results.map((result, at) => readResult(result, open[at])))
    const others = parts.filter(({ functionResponse }) => functionResponse === undefined)
    if (role === 'user' && others.length > 0) messages.push({ role, content: partsContent(others) })
    const reply = role === 'model' ? readModel(parts, index) : null
    if (reply !== null && reply.calls.length > 0 && contents[index - 1]?.['role'] !== 'user')
      throw new WireRefusal(`Please ensure that function call turn comes immediately after a user turn.`)
    if (reply !== null) messages.push(reply)
    open = reply?.calls ?? []
  }
  if (open.length > 0) throw new WireRefusal(`Please ensure ${COUNT}.`)
  return messages
}

const COUNT =
  'that the number of function response parts is equal to the number of function call parts of the function call turn'

/** A result answers the call in its place; an id, if there is one, is that of the call. */
function readResult({ id, name, response, parts = [] }: WireBody, call: HeardCall | undefined): ScriptMessage {
  if (name !== call?.name || !isObject(response) || (id !== undefined && id !== call?.callId))
    throw new WireRefusal(`The function response \`${String(name)}\` does not answer the call in its place.`)
  const text = response['output'] ?? response['error']
  const isError = 'error' in response
  const content = partsContent([{ text }, ...objectList(parts, 'function_response.parts')])
  return { role: 'tool', callId: call?.callId ?? '', content, isError }
}

function readModel(parts: readonly WireBody[], index: number): ScriptMessage & { role: 'assistant' } {
  let text = ''
  const calls: HeardCall[] = []
  for (const [at, { functionCall, text: piece, thought, thoughtSignature: signature }] of parts.entries()) {
    const signed = isObject(functionCall) ? functionCall['name'] : piece
    if (signature !== undefined && signature !== UNSIGNED && signature !== reasoningSignature(String(signed)))
      throw new WireRefusal('Thought signature is not valid.')
    if (typeof piece === 'string' && thought !== true) text += piece
    if (!isObject(functionCall)) continue
    const { id = `place ${index}.${at}`, name, args = {} } = functionCall
    if (!isObject(args)) throw new WireRefusal(`Invalid value at 'contents[${index}].parts[${at}].function_call.args'`)
    calls.push({ callId: String(id), name: String(name), arguments: JSON.stringify(args) })
  }
  return { role: 'assistant', text, calls }
}

/** What the API takes in place of a signature that a client does not have. */
const UNSIGNED = 'skip_thought_signature_validator'

/** Since the last message of a person, the first call of each reply is signed. */
function checkSignatures(contents: readonly WireBody[]): void {
  const partsOf = ({ parts }: WireBody): readonly WireBody[] => objectList(parts, 'contents.parts')
  const isSaid = (content: WireBody): boolean =>
    content['role'] !== 'model' && partsOf(content).every(({ functionResponse }) => functionResponse === undefined)
  for (const content of contents.slice(contents.findLastIndex(isSaid) + 1)) {
    const call = partsOf(content).find(({ functionCall }) => isObject(functionCall))
    if (call !== undefined && call['thoughtSignature'] === undefined)
      throw new WireRefusal('Function call is missing a thought_signature in functionCall parts.')
  }
}
