interface Closable {
  readonly isClosed: boolean
  close(): Promise<void>
}

/**
 * The conversations that are open in this process, each one object for everyone who opens it. One that nobody uses leaves the
 * memory: what runs, waits for an end, or is read is held by its timers.
 */
export class OpenChats<Chat extends Closable> {
  readonly #chats = new Map<string, Promise<Chat | null> | WeakRef<Chat>>()
  #isClosed = false
  /** Those with something that is not stored. */
  readonly #kept = new Map<string, Chat>()
  readonly #unused = new FinalizationRegistry<string>((threadId) => {
    // It may have been opened again.
    if (this.get(threadId) === undefined) this.#chats.delete(threadId)
  })

  get isClosed(): boolean {
    return this.#isClosed
  }

  get(threadId: string): Promise<Chat | null> | Chat | undefined {
    const known = this.#chats.get(threadId)
    if (!(known instanceof WeakRef)) return known
    const chat = known.deref()
    return chat?.isClosed === false ? chat : undefined
  }

  /** Notes one that is being opened; `opening` gives null if there is no such thread. */
  add(threadId: string, opening: Promise<Chat | null>): Promise<Chat | null> {
    this.#chats.set(threadId, opening)
    void opened(opening).then((chat) => {
      if (this.#chats.get(threadId) !== opening) return
      if (!chat) return this.#delete(threadId)
      this.#chats.set(threadId, new WeakRef(chat))
      this.#unused.register(chat, threadId)
    })
    return opening
  }

  /** One that has something which is not stored stays. */
  keep(threadId: string, chat: Chat): void {
    this.#kept.set(threadId, chat)
  }

  /** Forgets one that was closed, unless the thread has been opened again. */
  forget(threadId: string, chat: Chat): void {
    const known = this.#chats.get(threadId)
    if (known instanceof WeakRef && known.deref() === chat) this.#delete(threadId)
  }

  #delete(threadId: string): void {
    this.#chats.delete(threadId)
    this.#kept.delete(threadId)
  }

  /** Closes all, and forgets them. */
  async close(): Promise<void> {
    this.#isClosed = true
    const all = [...this.#chats.keys()].map((threadId) => this.get(threadId))
    this.#chats.clear()
    this.#kept.clear()
    await Promise.all(all.map(async (each) => (await opened(each))?.close()))
  }
}

/** Null for one that could not be opened. */
async function opened<Chat>(opening: Promise<Chat | null> | Chat | undefined): Promise<Chat | null | undefined> {
  try {
    return await opening
  } catch {
    return null
  }
}
