import { setTimeout as sleep } from 'node:timers/promises'
import { Harness } from 'thinharness'
import { Sessions } from 'thinharness/session'
import type { Chat, ChatEvent } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import type { Store } from '../store.js'

/** The beginning of a round: the messages that this process sends, and those of both. */
export interface RacerTask {
  readonly threadId: string
  readonly own: readonly string[]
  readonly all: readonly string[]
}

/** The end of a round, when both processes have seen all answers: the ids of the stored events. */
export interface RacerFinish {
  readonly threadId: string
  readonly stored: readonly string[]
}

/** What one of the two processes saw. */
export interface RacerAnswer {
  readonly threadId: string
  readonly owner: string | null
  /** Ids of the stored events, in the order in which they came. */
  readonly seen: readonly string[]
  readonly snapshot: string
  readonly problems: readonly string[]
}

/** At most so long after the answers, a process has seen every event, in ms. */
const PATIENCE_MS = 10_000

/** Sends its messages in each round. Ends with its parent. */
export async function actAsRacer(store: Store): Promise<void> {
  const harness = new Harness({ model: new ScriptedModel().always('Done.'), builtinTools: [] })
  const rounds = new Map<string, Round>()
  const step = async (task: RacerTask | RacerFinish): Promise<RacerAnswer> => {
    const { threadId } = task
    const round = rounds.get(threadId) ?? new Round(new Sessions({ log: store, harness }), threadId)
    rounds.set(threadId, round)
    if ('own' in task) return round.send(task)
    rounds.delete(threadId)
    return round.finish(task)
  }
  process.on('disconnect', () => process.exit())
  process.on('message', (task: RacerTask | RacerFinish) => {
    step(task).then(
      (answer) => process.send?.(answer),
      (error: unknown) => {
        const problem = error instanceof Error ? (error.stack ?? error.message) : String(error)
        const nothing = { threadId: task.threadId, owner: null, seen: [], snapshot: '' }
        process.send?.({ ...nothing, problems: [problem] })
      },
    )
  })
  process.send?.('ready')
  await new Promise(() => undefined)
}

/** A round in one process, with sessions of its own: they leave nothing in memory. */
class Round {
  readonly #sessions: Sessions
  readonly #threadId: string
  readonly #seen: string[] = []
  #chat: Chat | null = null

  constructor(sessions: Sessions, threadId: string) {
    this.#sessions = sessions
    this.#threadId = threadId
  }

  async send({ own, all }: RacerTask): Promise<RacerAnswer> {
    const chat = await this.#sessions.open(this.#threadId)
    this.#chat = chat
    const answered = this.#read(chat, all)
    const sent = await Promise.all(own.map((messageId) => chat.send(messageId, { messageId })))
    const ends = await Promise.all(sent.map(({ done }) => done))
    await answered
    const failed = ends.filter(({ status }) => status !== 'completed')
    return this.#answer(
      failed.map(({ messageId, status, error }) => `${messageId}: ${status}, ${error?.message ?? ''}`),
    )
  }

  async finish({ stored }: RacerFinish): Promise<RacerAnswer> {
    const isComplete = (): boolean => stored.every((id) => this.#seen.includes(id))
    for (let waitedMs = 0; !isComplete() && waitedMs < PATIENCE_MS; waitedMs += 10) await sleep(10)
    const answer = this.#answer([])
    await this.#sessions.close()
    return answer
  }

  /** Resolves when all messages have been answered, and reads on. */
  #read(chat: Chat, messageIds: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const read = async (): Promise<void> => {
        for await (const event of chat.events()) {
          if (event.durable) this.#seen.push(idOf(event))
          if (isAnswered(chat, messageIds)) resolve()
        }
      }
      read().catch(reject)
    })
  }

  #answer(problems: readonly string[]): RacerAnswer {
    const [owner, snapshot] = [this.#chat?.owner ?? null, JSON.stringify(this.#chat?.snapshot)]
    return { threadId: this.#threadId, owner, seen: this.#seen, snapshot, problems }
  }
}

function isAnswered({ snapshot: { runs, phase } }: Chat, messageIds: readonly string[]): boolean {
  const answered = runs.filter(({ status }) => status === 'completed').flatMap((run) => run.messageIds)
  return phase === 'idle' && messageIds.every((messageId) => answered.includes(messageId))
}

function idOf(event: ChatEvent & { readonly durable: true }): string {
  return `${'threadId' in event ? 'thread' : event.runId}:${event.seq}`
}
