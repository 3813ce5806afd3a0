import { isObject } from '../util/json.js'
import type { JsonValue } from '../util/json.js'
import type { PartialAnswer } from './format.js'
import { PartialJson } from './partial-json.js'

/** How an answer is written that is followed. */
interface Followed {
  /** It is the member `value` of an object. */
  readonly isWrapped: boolean
  /** A null may stand for a property that is absent. */
  readonly hasFillers: boolean
}

/**
 * Follows an answer as it arrives. What is told is a beginning of the answer each time, and not each time that it grows:
 * as often as keeps all that is copied in proportion to the text.
 */
export function followAnswer({ isWrapped, hasFillers }: Followed): PartialAnswer {
  const json = new PartialJson({ withoutNulls: hasFillers })
  let lead: string | null = ''
  let told = 0
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
      if (json.revision === told || unread * COPIED_A_CHARACTER < json.width) return undefined
      told = json.revision
      unread = 0
      return isWrapped ? valueIn(json.value()) : json.value()
    },
  }
}

/** Members that may be copied for each character of the text. */
const COPIED_A_CHARACTER = 4

/** What may stand before an answer: white space and the beginning of a fence. Prose before it is no answer yet. */
const BEFORE = /^\s*(?:```(?:json)?[ \t]*\r?\n\s*)?(?=[{["])/i

function valueIn(value: JsonValue | undefined): JsonValue | undefined {
  return isObject(value) && Object.hasOwn(value, 'value')
    ? (value as Readonly<Record<string, JsonValue>>)['value']
    : undefined
}
