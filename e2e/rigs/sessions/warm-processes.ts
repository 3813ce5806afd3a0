import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KilledJob } from './killed.js'

/** A process that is not killed by itself in this time hangs, in ms. */
const PATIENCE_MS = 60_000

/** Processes that have loaded everything and wait for their turn: while one acts, the next one starts. */
export class WarmProcesses {
  readonly #path: string
  #next: ChildProcess

  constructor(path: string) {
    this.#path = path
    this.#next = this.#start()
  }

  /** A process acts, and is killed at an append of its job, or some time after it has begun. Rejects if it ends in another way. */
  async kill(job: KilledJob, afterMs: number): Promise<void> {
    const worker = this.#next
    this.#next = this.#start()
    const over = new AbortController()
    const ended = new Promise<void>((resolve, reject) => {
      worker.once('exit', (code, signal) => {
        over.abort()
        if (signal === 'SIGKILL') resolve()
        else reject(new Error(`A process ended with code ${code}.`))
      })
    })
    worker.on('message', (message) => {
      if (message === 'ready') worker.send(job)
      if (message !== 'acts') return
      const wait = sleep(job.dieAt === null ? afterMs : PATIENCE_MS, undefined, { signal: over.signal })
      wait.then(
        () => worker.kill('SIGKILL'),
        () => undefined,
      )
    })
    if (this.#ready.has(worker)) worker.send(job)
    await ended
  }

  close(): void {
    this.#next.disconnect()
  }

  readonly #ready = new WeakSet<ChildProcess>()

  #start(): ChildProcess {
    const worker = fork(this.#path, [...process.argv.slice(2), '--worker'], { execArgv: ['--no-warnings'] })
    worker.once('message', () => this.#ready.add(worker))
    return worker
  }
}
