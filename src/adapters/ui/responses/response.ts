import type { JsonObject } from '#util/json.js'
import type { RunUsage } from '#contracts/run-usage.js'
import { CLIENT_TOOLS } from '#session/tools/client-tools.js'
import { isObject } from '#util/json.js'
import type { ResponseTool, ResponseUsage } from './event.js'

/** Member of the metadata of a run: what its request said. */
export const OPEN_RESPONSE = 'open_response'

/** What the request of a run said, kept with the run. */
export interface RequestedResponse {
  readonly model?: string | undefined
  readonly previous_response_id?: string | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
  readonly background?: boolean | undefined
}

/** The id of a response: that of its run, with the number of the stretch if it is not the first. */
export function responseId(runId: string, stretch: number): string {
  return stretch <= 1 ? runId : `${runId}:${stretch}`
}

export function parseResponseId(id: string): { readonly runId: string; readonly stretch: number } {
  const match = /^(.+):([2-9]|[1-9]\d{1,5})$/s.exec(id)
  return match?.[1] === undefined ? { runId: id, stretch: 1 } : { runId: match[1], stretch: Number(match[2]) }
}

/** What a run says of its request. */
export function requestedResponse(metadata: JsonObject): RequestedResponse {
  const said = metadata[OPEN_RESPONSE]
  const { model, previous_response_id: previous, metadata: given, background } = isObject(said) ? said : {}
  return {
    model: typeof model === 'string' ? model : undefined,
    previous_response_id: typeof previous === 'string' ? previous : undefined,
    metadata: isObject(given) ? (given as Readonly<Record<string, string>>) : undefined,
    background: background === true,
  }
}

export function responseTools(metadata: JsonObject): readonly ResponseTool[] {
  const tools = metadata[CLIENT_TOOLS]
  if (!Array.isArray(tools)) return []
  return tools.filter(isObject).map(({ name, description, parameters }): ResponseTool => {
    const schema = isObject(parameters) ? parameters : {}
    return { type: 'function', name: String(name), description: String(description), parameters: schema, strict: false }
  })
}

/** The tokens of a stretch: those of the run without those before it. */
export function usageBetween(before: RunUsage | null, after: RunUsage): ResponseUsage {
  const countTokens = (name: 'inputTokens' | 'outputTokens' | 'cacheReadTokens' | 'reasoningTokens'): number =>
    after[name] - (before?.[name] ?? 0)
  const [input, output] = [countTokens('inputTokens'), countTokens('outputTokens')]
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: countTokens('cacheReadTokens') },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: countTokens('reasoningTokens') },
    total_tokens: input + output,
  }
}
