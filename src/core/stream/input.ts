import type { ContentPart } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'

/** A message to a running model. */
export type InputMessage = string | readonly ContentPart[]

/** A message whose entry in the transcript keeps an id of the host. */
export interface IdentifiedMessage {
  readonly messageId: string
  readonly content: InputMessage
}

/** Steering messages for a run, taken at turn boundaries, in order. */
export interface InputPort {
  /** Sends a message to the running model. Throws once the port is closed. */
  send(message: InputMessage): void
  /** Closes the port; returns the messages that the run has not taken. */
  close(): readonly InputMessage[]
  /** How many messages wait. */
  readonly waiting: number
  /** Takes everything that waits: for the run. */
  take(): readonly (InputMessage | IdentifiedMessage)[]
  /** Calls `listener` at each message, also while the run waits for other runs; returns how to stop listening. */
  onSend?(listener: () => void): () => void
}

/** A port to be given to `run` or `stream` as `input`. */
export function inputPort(): InputPort {
  let waiting: InputMessage[] = []
  let closed = false
  const listeners = new Set<() => void>()
  const takeAll = (): readonly InputMessage[] => {
    const taken = waiting
    waiting = []
    return taken
  }
  return {
    send(message) {
      if (closed) throw new HarnessError('invalid_state', 'This input port is closed: the run no longer listens.')
      waiting.push(message)
      for (const listener of listeners) listener()
    },
    onSend(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close() {
      closed = true
      return takeAll()
    },
    get waiting() {
      return waiting.length
    },
    take: takeAll,
  }
}
