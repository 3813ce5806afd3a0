import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** The processes of the workers. In production this is your process manager, on as many machines as you like. */
export class Workers {
  readonly #databaseUrl: string
  readonly #running = new Map<string, ChildProcess>()
  #started = 0
  #problem: string | null = null

  constructor(databaseUrl: string, count: number) {
    this.#databaseUrl = databaseUrl
    for (let index = 0; index < count; index++) this.#start()
  }

  /** Throws if a worker has ended by itself. */
  check(): void {
    if (this.#problem !== null) throw new Error(this.#problem)
  }

  /** Ends the oldest worker without a warning, and starts another one. Gives its name. */
  killOne(): string {
    const [[name, child] = []] = this.#running
    if (name === undefined || child === undefined) throw new Error('There is no worker.')
    this.#running.delete(name)
    child.kill('SIGKILL')
    this.#start()
    return name
  }

  /** Lets each worker end in an orderly way. */
  async stop(): Promise<void> {
    const ends = [...this.#running.values()].map((child) => once(child, 'close'))
    for (const child of this.#running.values()) child.kill('SIGTERM')
    await Promise.all(ends)
  }

  #start(): void {
    this.#started += 1
    const name = `worker-${this.#started}`
    const program = fileURLToPath(new URL('worker.js', import.meta.url))
    const env = { ...process.env, DATABASE_URL: this.#databaseUrl, WORKER: name }
    const stdio: ['ignore', 'inherit', 'inherit'] = ['ignore', 'inherit', 'inherit']
    const child = spawn(process.execPath, [...process.execArgv, program], { env, stdio })
    child.once('close', (code) => {
      if (code !== null && code !== 0) this.#problem = `${name} ended with code ${code}.`
    })
    this.#running.set(name, child)
  }
}
