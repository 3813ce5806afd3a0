import type { ModelDelta } from '../../contracts/model.js'
import type { AssistantPart, TranscriptEntry } from '../../contracts/entry.js'
import { toolCallsOf } from '../../contracts/entry.js'

/**
 * The ids of the tool calls of a transcript. Some servers number the calls of each reply anew, so that an id comes twice;
 * a call is known by its id, so the later one gets another.
 */
export class CallIds {
  readonly #taken = new Set<string>()

  note(entries: readonly TranscriptEntry[]): void {
    for (const entry of entries) {
      if (entry.role === 'assistant') for (const { callId } of toolCallsOf(entry.parts)) this.#taken.add(callId)
    }
  }

  clear(): void {
    this.#taken.clear()
  }

  /** Gives the ids of one reply that are free: the same in its deltas and in its parts. */
  forReply(): ReplyCallIds {
    return new ReplyCallIds(this.#taken)
  }
}

class ReplyCallIds {
  readonly #taken: ReadonlySet<string>

  constructor(taken: ReadonlySet<string>) {
    this.#taken = taken
  }

  inDelta(delta: ModelDelta): ModelDelta {
    if (delta.callId === undefined || !this.#taken.has(delta.callId)) return delta
    return { ...delta, callId: this.#freed(delta.callId) }
  }

  inParts(parts: readonly AssistantPart[]): readonly AssistantPart[] {
    const isTaken = (part: AssistantPart): boolean => part.type === 'tool_call' && this.#taken.has(part.callId)
    if (!parts.some(isTaken)) return parts
    return parts.map((part) =>
      part.type === 'tool_call' && isTaken(part) ? { ...part, callId: this.#freed(part.callId) } : part,
    )
  }

  #freed(callId: string): string {
    for (let copy = 2; ; copy++) {
      const free = `${callId}_${copy}`
      if (!this.#taken.has(free)) return free
    }
  }
}
