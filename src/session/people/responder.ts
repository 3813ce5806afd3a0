import { messageOf } from '#contracts/errors.js'
import type { PendingItem } from '#contracts/result.js'
import { warn } from '#util/platform/node.js'
import { SessionError } from '../errors.js'
import type { ChatAnswer } from '../thread/grants.js'
import { answerTo } from './expire-items.js'
import type { Answerable, ItemAnswer } from './expire-items.js'
import type { ThreadState } from '../thread/thread-state.js'

/** Answers an item of a conversation without a person; null leaves it to people. `thread`: its owner, mode, metadata and settings, among others. */
export type Responder = (item: PendingItem, thread: ThreadState) => ItemAnswer | null | Promise<ItemAnswer | null>

interface WaitingChat extends Answerable {
  readonly snapshot: { readonly thread: ThreadState }
  readonly pending: readonly PendingItem[]
  readonly phase: string
}

/** Who answers, for items that a responder answers. */
const BY = 'responder'
/** Time after which a responder that has not answered leaves an item to people, in ms. */
const WAIT_MS = 60_000

/** Asks the responder about the items of one conversation, each once. A responder that fails leaves its item to people. */
export class Responding {
  readonly #responder: Responder
  readonly #chat: WaitingChat
  readonly #asked = new Set<string>()

  constructor(responder: Responder, chat: WaitingChat) {
    this.#responder = responder
    this.#chat = chat
  }

  /** True if the run no longer waits. Never rejects. */
  async respond(): Promise<boolean> {
    const answers = await Promise.all(
      this.#chat.pending.filter((item) => this.#isNew(item)).map((item) => this.#ask(item)),
    )
    const answered = answers.filter((answer) => answer !== null)
    if (answered.length > 0 && !(await this.#isStored(answered)) && answered.length > 1)
      for (const answer of answered) await this.#isStored([answer])
    return this.#chat.phase !== 'waiting'
  }

  #isNew({ callId, key, payload, arguments: args }: PendingItem): boolean {
    const name = JSON.stringify([callId, key, payload, args])
    const isNew = !this.#asked.has(name)
    this.#asked.add(name)
    return isNew
  }

  async #ask(item: PendingItem): Promise<ChatAnswer | null> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      const failLate = (): void => reject(new Error(`It has not answered within ${WAIT_MS / 1000} s.`))
      timer = setTimeout(failLate, WAIT_MS).unref()
    })
    try {
      const answer = await Promise.race([late, this.#answer(item)])
      return answer === null ? null : answerTo(item.callId, answer, BY)
    } catch (error) {
      reportFailure(item.callId, error)
      return null
    } finally {
      clearTimeout(timer)
    }
  }

  async #answer(item: PendingItem): Promise<ItemAnswer | null> {
    return this.#responder(item, this.#chat.snapshot.thread)
  }

  /** False if the answers are refused; one that is refused alone is reported. */
  async #isStored(answers: readonly ChatAnswer[]): Promise<boolean> {
    try {
      await this.#chat.answer(answers)
      return true
    } catch (error) {
      const isClosed = error instanceof SessionError && error.code === 'closed'
      if (answers.length === 1 && !isClosed) reportFailure(answers[0]?.callId ?? '', error)
      return false
    }
  }
}

function reportFailure(callId: string, error: unknown): void {
  const what = `The responder did not answer \`${callId}\`, which waits for people`
  warn(`${what}: ${messageOf(error)}`, 'SessionWarning')
}
