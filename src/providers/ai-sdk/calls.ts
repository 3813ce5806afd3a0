import { stringIn } from './wire.js'

/** A call of a reply that is coming. */
interface ReplyCall {
  /** Unique in the reply. */
  readonly callId: string
  readonly name: string
  /** What has come of its input. */
  input: string
}

/** The calls of one reply. Each gets an id of its own: the provider's where there is one that is new, else ours. */
export class ReplyCalls {
  readonly #callIdFor: (index: number) => string
  readonly #given = new Set<string>()
  /** Calls whose end has not come, by the provider's id. */
  readonly #open = new Map<unknown, ReplyCall>()
  #count = 0

  constructor(callIdFor: (index: number) => string) {
    this.#callIdFor = callIdFor
  }

  /** A call of this id begins; nothing new where one is open. */
  begin(id: unknown, name: unknown): void {
    if (!this.#open.has(id)) this.#open.set(id, this.#made(id, name))
  }

  find(id: unknown): ReplyCall | undefined {
    return this.#open.get(id)
  }

  /** The call of this id is complete, whether or not its beginning was told. */
  close(id: unknown, name: unknown = ''): ReplyCall {
    const call = this.#open.get(id) ?? this.#made(id, name)
    this.#open.delete(id)
    return call
  }

  /** The call of this id is none of ours after all. */
  forget(id: unknown): void {
    this.#open.delete(id)
  }

  /** The calls that were begun and not completed. */
  get left(): readonly ReplyCall[] {
    return [...this.#open.values()]
  }

  #made(id: unknown, name: unknown): ReplyCall {
    const index = this.#count++
    let callId = stringIn(id)
    for (let at = index; callId === '' || this.#given.has(callId); at++) callId = this.#callIdFor(at)
    this.#given.add(callId)
    return { callId, name: stringIn(name), input: '' }
  }
}
