import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { RacerAnswer, RacerFinish, RacerTask } from './racer.js'

/** A step of a round that takes longer hangs, in ms. */
const PATIENCE_MS = 60_000

/** One of the two processes, and the threads whose next answer is expected. */
export class RacerProcess {
  readonly isReady: Promise<unknown>
  readonly #process: ChildProcess
  readonly #expected = new Map<string, (answer: RacerAnswer) => void>()

  constructor(racer: ChildProcess) {
    this.#process = racer
    this.isReady = once(racer, 'message')
    racer.on('message', (message) => {
      if (message === 'ready') return
      const answer = message as RacerAnswer
      this.#expected.get(answer.threadId)?.(answer)
    })
  }

  /** It opens the thread and sends its messages. Resolves when all messages have been answered. */
  send(task: RacerTask): Promise<RacerAnswer> {
    return this.#ask(task)
  }

  /** It leaves the thread when it has seen all events that are stored. Resolves with what it saw. */
  finish(task: RacerFinish): Promise<RacerAnswer> {
    return this.#ask(task)
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const exited = once(this.#process, 'exit')
    this.#process.disconnect()
    await exited
  }

  #ask(task: RacerTask | RacerFinish): Promise<RacerAnswer> {
    const { threadId } = task
    return new Promise((resolve) => {
      const nothing = { threadId, owner: null, seen: [], snapshot: '' }
      const timer = setTimeout(() => resolve({ ...nothing, problems: ['A process hangs.'] }), PATIENCE_MS)
      this.#expected.set(threadId, (answer) => {
        clearTimeout(timer)
        resolve(answer)
      })
      this.#process.send(task)
    })
  }
}
