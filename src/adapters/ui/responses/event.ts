/** Text, an image or a file that goes into a model: of a person's message, or of the output of a call. */
export type InputContent =
  | { readonly type: 'input_text'; readonly text: string }
  | { readonly type: 'input_image'; readonly image_url: string; readonly detail: 'auto' }
  | { readonly type: 'input_file'; readonly filename?: string; readonly file_url?: string }

export interface OutputText {
  readonly type: 'output_text'
  readonly text: string
  readonly annotations: readonly UrlCitation[]
  readonly logprobs: readonly never[]
}

/** A page that a passage cites; offsets in UTF-16 units. */
export interface UrlCitation {
  readonly type: 'url_citation'
  readonly url: string
  readonly title: string
  readonly start_index: number
  readonly end_index: number
}

export interface SummaryText {
  readonly type: 'summary_text'
  readonly text: string
}

type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** An item of a response, of the types that are written here. */
export type ResponseItem =
  | {
      readonly type: 'message'
      readonly id: string
      readonly status: ItemStatus
      readonly role: 'assistant'
      readonly content: readonly OutputText[]
    }
  | {
      readonly type: 'message'
      readonly id: string
      readonly status: 'completed'
      readonly role: 'user'
      readonly content: readonly InputContent[]
    }
  | { readonly type: 'reasoning'; readonly id: string; readonly summary: readonly SummaryText[] }
  | {
      readonly type: 'function_call'
      readonly id: string
      readonly call_id: string
      readonly name: string
      /** JSON text. */
      readonly arguments: string
      readonly status: ItemStatus
    }
  | {
      readonly type: 'function_call_output'
      readonly id: string
      readonly call_id: string
      readonly output: string | readonly InputContent[]
      readonly status: 'completed' | 'incomplete'
    }

export interface ResponseUsage {
  readonly input_tokens: number
  readonly input_tokens_details: { readonly cached_tokens: number }
  readonly output_tokens: number
  readonly output_tokens_details: { readonly reasoning_tokens: number }
  readonly total_tokens: number
}

/** A tool of the client, which the client executes. */
export interface ResponseTool {
  readonly type: 'function'
  readonly name: string
  readonly description: string
  readonly parameters: object
  readonly strict: false
}

export type ResponseStatus = 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled'

/** Settings of a model that the request cannot change have their defaults. */
export const FIXED = {
  object: 'response',
  instructions: null,
  tool_choice: 'auto',
  truncation: 'disabled',
  parallel_tool_calls: true,
  text: { format: { type: 'text' } },
  top_p: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  top_logprobs: 0,
  temperature: 1,
  reasoning: null,
  max_output_tokens: null,
  max_tool_calls: null,
  store: true,
  service_tier: 'default',
  safety_identifier: null,
  prompt_cache_key: null,
} as const

type FixedSettings = typeof FIXED

/** A response of Open Responses: one stretch of a run. */
export interface OpenResponse extends FixedSettings {
  /** The id of the run; with `:2`, `:3` … for the stretches after its first. */
  readonly id: string
  /** Seconds since 1970. */
  readonly created_at: number
  readonly completed_at: number | null
  readonly status: ResponseStatus
  readonly incomplete_details: { readonly reason: string } | null
  readonly model: string
  readonly previous_response_id: string | null
  readonly output: readonly ResponseItem[]
  readonly error: { readonly code: string; readonly message: string } | null
  readonly tools: readonly ResponseTool[]
  readonly usage: ResponseUsage | null
  readonly background: boolean
  /** That of the request; `pending` of a run that waits: the items, as JSON text. */
  readonly metadata: Readonly<Record<string, string>>
}

interface OfItem {
  readonly item_id: string
  readonly output_index: number
}

interface OfContent extends OfItem {
  readonly content_index: number
}

interface OfSummary extends OfItem {
  readonly summary_index: number
}

interface OfResponse {
  readonly response: OpenResponse
}

interface WholeItem {
  readonly output_index: number
  readonly item: ResponseItem
}

/** Members of each type of event that is written here. */
interface Payloads {
  'response.created': OfResponse
  'response.in_progress': OfResponse
  'response.completed': OfResponse
  'response.incomplete': OfResponse
  'response.failed': OfResponse
  'response.output_item.added': WholeItem
  'response.output_item.done': WholeItem
  'response.content_part.added': OfContent & { readonly part: OutputText }
  'response.content_part.done': OfContent & { readonly part: OutputText }
  'response.output_text.delta': OfContent & { readonly delta: string; readonly logprobs: readonly never[] }
  'response.output_text.annotation.added': OfContent & {
    readonly annotation_index: number
    readonly annotation: UrlCitation
  }
  'response.output_text.done': OfContent & { readonly text: string; readonly logprobs: readonly never[] }
  'response.reasoning_summary_part.added': OfSummary & { readonly part: SummaryText }
  'response.reasoning_summary_part.done': OfSummary & { readonly part: SummaryText }
  'response.reasoning_summary_text.delta': OfSummary & { readonly delta: string }
  'response.reasoning_summary_text.done': OfSummary & { readonly text: string }
  'response.function_call_arguments.delta': OfItem & { readonly delta: string }
  'response.function_call_arguments.done': OfItem & { readonly name: string; readonly arguments: string }
}

/** An event without its number. */
export type ResponsePayload = {
  [Type in keyof Payloads]: { readonly type: Type } & Payloads[Type]
}[keyof Payloads]

/** An event of a stream of Open Responses. `sequence_number` counts the events of the stream, from 0. */
export type ResponseEvent = ResponsePayload & { readonly sequence_number: number }

/** An event as server-sent event. */
export function encodeResponse(event: ResponseEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}

/** What a stream ends with. */
export const RESPONSES_END = 'data: [DONE]\n\n'
