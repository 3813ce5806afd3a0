import type { InputMessage } from '#contracts/input.js'

export type { InputMessage } from '#contracts/input.js'

/** A message whose entry in the transcript keeps an id of the host. */
export interface IdentifiedMessage {
  readonly messageId: string
  readonly content: InputMessage
}

/** Steering messages for a run, taken at turn boundaries, in order. */
export interface InputPort {
  /**
   * Sends a message to the running model. Resolves when a run has accepted it, and rejects if an extension refuses it
   * (`guard_blocked`) or the port is closed before; nobody has to wait for that. Throws once the port is closed.
   */
  send(message: InputMessage): Promise<void>
  /** Closes the port; returns the messages that the run has not taken. */
  close(): readonly InputMessage[]
  /** How many messages wait. */
  readonly waiting: number
  /** Takes everything that waits: for the run. */
  take(): readonly (InputMessage | IdentifiedMessage)[]
  /** Has each message accepted by `admit`, from now on and those that wait: for the run. Without it, the run asks when it takes them. */
  attach?(admit: (message: InputMessage) => Promise<InputMessage>): void
  /** Resolves when `admit` has been asked about every message so far. */
  settled?(): Promise<unknown>
  /** Calls `listener` at each message, also while the run waits for other runs; returns how to stop listening. */
  onSend?(listener: () => void): () => void
}
