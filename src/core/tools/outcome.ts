import type { ContentPart } from '#contracts/entry.js'
import type { JsonObject, JsonValue } from '#util/json.js'

/** How one tool call ended, for the loop. Its envelope is recorded, and the model reads the content. */
export type ToolOutcome =
  | {
      readonly kind: 'succeeded'
      readonly content: string
      /** The value whose JSON is the content; absent if the text is the value. */
      readonly value?: JsonValue
      readonly metadata?: JsonObject
      /** Images and files for the model, in addition to the text. */
      readonly parts?: readonly ContentPart[]
    }
  | {
      readonly kind: 'failed'
      /** Short class of the failure, such as `NotFound`; in the envelope as `error_type`. */
      readonly errorType: string
      readonly content: string
      /** The model can mend it by calling again; counts against the tool's retry budget. */
      readonly retry: boolean
      readonly metadata?: JsonObject
      readonly parts?: readonly ContentPart[]
    }
  | { readonly kind: 'cancelled'; readonly reason: string; readonly metadata?: JsonObject }
  | { readonly kind: 'rejected'; readonly reason: string | null }
