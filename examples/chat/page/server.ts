/** The requests of the page about one conversation. */
export class Server {
  readonly #thread: string

  constructor(threadId: string) {
    this.#thread = `/api/threads/${encodeURIComponent(threadId)}`
  }

  /** The address of its events. */
  get events(): string {
    return `${this.#thread}/events`
  }

  send(text: string, whenBusy: 'queue' | 'steer'): Promise<void> {
    // With an id of its own, a message that is sent twice is one message.
    return post(`${this.#thread}/messages`, { text, whenBusy, messageId: crypto.randomUUID() })
  }

  answer(answer: object): Promise<void> {
    return post(`${this.#thread}/answers`, { answers: [answer] })
  }

  stop(): Promise<void> {
    return post(`${this.#thread}/stop`, {})
  }

  change(change: object): Promise<void> {
    return post(`${this.#thread}/change`, change)
  }
}

async function post(path: string, body: object): Promise<void> {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (response.ok) return
  const { message } = (await response.json().catch(() => ({}))) as { readonly message?: string }
  throw new Error(message ?? 'The server could not be reached.')
}
