import { HarnessError } from '#contracts/errors.js'
import type { InputMessage, InputPort } from '#core/stream/input.js'

/** A message that no run has accepted yet. */
interface SentMessage {
  readonly message: InputMessage
  readonly accept: () => void
  readonly refuse: (reason: unknown) => void
}

/** A port to be given to `run` or `stream` as `input`. */
export function inputPort(): InputPort {
  const sent = new Set<SentMessage>()
  let accepted: InputMessage[] = []
  let admit: ((message: InputMessage) => Promise<InputMessage>) | null = null
  let settled: Promise<unknown> = Promise.resolve()
  let closed = false
  const listeners = new Set<() => void>()
  const askRun = (item: SentMessage, by: NonNullable<typeof admit>): void => {
    const take = (message: InputMessage): void => {
      if (sent.delete(item)) accepted.push(message)
      item.accept()
    }
    const drop = (reason: unknown): void => {
      sent.delete(item)
      item.refuse(reason)
    }
    settled = settled.then(() => by(item.message)).then(take, drop)
  }
  return {
    send(message) {
      if (closed) throw new HarnessError('invalid_state', 'This input port is closed: the run no longer listens.')
      const sending = new Promise<void>((accept, refuse) => {
        const item = { message, accept, refuse }
        sent.add(item)
        if (admit !== null) askRun(item, admit)
      })
      sending.catch(() => undefined)
      for (const listener of listeners) listener()
      return sending
    },
    attach(by) {
      admit = by
      for (const item of sent) askRun(item, by)
    },
    settled: () => settled,
    onSend(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close() {
      closed = true
      const messages = [...accepted, ...Array.from(sent, ({ message }) => message)]
      for (const { refuse } of sent) refuse(new HarnessError('invalid_state', LEFT))
      sent.clear()
      accepted = []
      return messages
    },
    get waiting() {
      return sent.size + accepted.length
    },
    take() {
      const taken = accepted
      accepted = []
      return taken
    },
  }
}

const LEFT = 'The input port was closed, and no run has accepted this message.'
