import { HttpAgent } from '@ag-ui/client'
import type { Interrupt, Message } from '@ag-ui/client'
import type { AnyRunEvent } from 'thinharness/ui'
import { agUiProjection } from '#adapters/ui/ag-ui/ag-ui-projection.js'
import { encodeAgUi } from '#adapters/ui/ag-ui/event.js'
import type { AgUiEvent } from '#adapters/ui/ag-ui/event.js'
import type { AgUiOptions } from '#adapters/ui/ag-ui/options.js'

/** What the official client has after some streams. */
export interface ClientView {
  readonly messages: readonly Message[]
  readonly state: unknown
  readonly pendingInterrupts: readonly Interrupt[]
}

/** The official client, which is given events: they pass its schemas, its verifier and its reducer. */
export class Client {
  readonly #agent: HttpAgent
  #body = ''

  /** A client that has sent these messages. */
  constructor(messages: readonly Message[]) {
    const fetch = (): Promise<Response> =>
      Promise.resolve(new Response(this.#body, { headers: { 'content-type': 'text/event-stream' } }))
    this.#agent = new HttpAgent({
      url: 'http://localhost/agui',
      threadId: 'chat_1',
      initialMessages: [...messages],
      fetch,
    })
  }

  get messages(): readonly Message[] {
    return this.#agent.messages
  }

  get view(): ClientView {
    const { messages, pendingInterrupts } = this.#agent
    const view = { messages: byOwner(messages), state: this.#agent.state as unknown, pendingInterrupts }
    return JSON.parse(JSON.stringify(view)) as ClientView
  }

  /** Reads one stream. Throws if the client refuses an event, or warns. */
  async read(events: readonly AgUiEvent[]): Promise<void> {
    this.#body = events.map(encodeAgUi).join('')
    // The client does not send while interrupts have no answers.
    this.#agent.pendingInterrupts = []
    await withoutWarnings(() => this.#agent.runAgent())
  }
}

/** Throws if something is written to the console. */
export async function withoutWarnings<T>(work: () => Promise<T>): Promise<T> {
  const warnings: unknown[] = []
  const { warn, error } = console
  const note = (...message: unknown[]): void => void warnings.push(message.map(String))
  // Spies of vitest would be kept until the end of the file, for thousands of streams.
  Object.assign(console, { warn: note, error: note })
  try {
    return await work()
  } finally {
    Object.assign(console, { warn, error })
    if (warnings.length > 0) throw new Error(`The client warned: ${JSON.stringify(warnings)}`)
  }
}

/** Messages of the run, and then those of each child run: in which order parallel runs said theirs is not in the log. */
export function byOwner<M extends { readonly id: string; readonly subagentRunId?: string }>(
  messages: readonly M[],
): readonly M[] {
  const owners = [...new Set(messages.map(({ subagentRunId }) => subagentRunId ?? ''))].sort()
  return owners.flatMap((owner) => messages.filter(({ subagentRunId }) => (subagentRunId ?? '') === owner))
}

/** The events of a reading of a run's events. */
export function eventsOf(events: readonly AnyRunEvent[], options: AgUiOptions = {}): AgUiEvent[] {
  const projection = agUiProjection(options)
  const told = events.flatMap((event) => [...projection.next(event)])
  return [...told, ...projection.end()]
}
