import type { Extension } from '#core/extension/extension.js'
import { textThrough } from '#core/extension/readers.js'
import type { Readers } from '#core/extension/readers.js'
import type { LogStore } from '#core/log/log.js'
import { readersOf } from '#core/extension/run-extensions.js'
import type { RunEvent, StreamEvent } from '#core/state/events.js'
import { storedEvents } from '../thread/chat-cursor.js'
import type { ChatPlace } from '../thread/chat-cursor.js'
import type { ThreadEvent } from '../thread/thread-events.js'
import type { Modes } from './modes.js'

/** What is stored as readers get it: as the extensions of the sessions, and those of every mode, redact it. */
export class Redaction {
  readonly #own: Readers
  readonly #harnesses: ReadonlySet<Modes[string]>
  /** Readers share the events, and what is made of them. */
  readonly #shown = new WeakMap<ThreadEvent, ThreadEvent>()

  constructor(use: readonly Extension<never>[], modes: Modes) {
    this.#own = readersOf(use as readonly Extension[])
    this.#harnesses = new Set(Object.values(modes).filter(({ redact }) => redact !== undefined))
  }

  /** An event of a run. */
  readonly run = (event: RunEvent): RunEvent => {
    let shown: RunEvent = this.#own.event(event as StreamEvent)
    for (const harness of this.#harnesses) shown = harness.redact?.(shown) ?? shown
    return shown
  }

  /** The stored events after a place. Runs are redacted like those in progress: what is loaded is what was seen. */
  async *stored(
    log: LogStore,
    { threadId, from }: { readonly threadId: string; readonly from: ChatPlace },
    onDamage?: Parameters<typeof storedEvents>[3],
  ): AsyncGenerator<ThreadEvent | RunEvent> {
    for await (const event of storedEvents(log, threadId, from, onDamage))
      yield 'threadId' in event ? event : this.run(event)
  }

  /** An event of a thread: one that brings a message has the words of a person. */
  thread<Event extends ThreadEvent>(event: Event): Event {
    if (event.kind !== 'message_queued') return event
    let shown = this.#shown.get(event)
    if (shown === undefined) {
      const content = event.content.map((part) =>
        part.type === 'text' ? { ...part, text: textThrough(this.run, part.text) } : part,
      )
      this.#shown.set(event, (shown = { ...event, content }))
    }
    return shown as Event
  }
}
