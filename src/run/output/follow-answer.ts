import { isObject } from '#util/json.js'
import type { JsonValue } from '#util/json.js'
import type { PartialAnswer } from '#core/state/output-format.js'
import { PartialJson } from './partial-json.js'

/** How an answer is written that is followed. */
interface Followed {
  /** It is the member `value` of an object. */
  readonly isWrapped: boolean
  /** A null may represent an absent property. */
  readonly hasFillers: boolean
}

/**
 * Follows an answer as it arrives. Each value is a prefix of the answer; not every growth yields one:
 * as often as keeps all that is copied in proportion to the text.
 */
export function followAnswer({ isWrapped, hasFillers }: Followed): PartialAnswer {
  const json = new PartialJson({ withoutNulls: hasFillers })
  let lead: string | null = ''
  let emitted = 0
  let unread = 0
  return {
    push(text) {
      if (!json.isReadable) return undefined
      let piece = text
      if (lead !== null) {
        lead += text
        const before = BEFORE.exec(lead)
        if (before === null) return undefined
        piece = lead.slice(before[0].length)
        lead = null
      }
      json.push(piece)
      unread += piece.length
      if (json.revision === emitted || unread * COPIED_A_CHARACTER < json.width) return undefined
      emitted = json.revision
      unread = 0
      return isWrapped ? valueIn(json.value()) : json.value()
    },
  }
}

/** Members that may be copied for each character of the text. */
const COPIED_A_CHARACTER = 4

/** Text that may precede an answer: white space and the start of a fence. Text after other prose is not an answer. */
const BEFORE = /^\s*(?:```(?:json)?[ \t]*\r?\n\s*)?(?=[{["])/i

function valueIn(value: JsonValue | undefined): JsonValue | undefined {
  return isObject(value) && Object.hasOwn(value, 'value')
    ? (value as Readonly<Record<string, JsonValue>>)['value']
    : undefined
}
