import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { startPostgres } from '../../support/postgres.js'

/** A database of its own, so that no other test's engine is in it. */
export interface EngineDatabase {
  readonly url: string
  drop(): Promise<void>
}

/** Null where no PostgreSQL can be had. */
export async function engineDatabase(): Promise<EngineDatabase | null> {
  const server = await startPostgres()
  if (server === null) return null
  const name = `engine_${process.pid}_${globalThis.crypto.randomUUID().slice(0, 8)}`
  const inServer = async (sql: string): Promise<void> => {
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    await client.query(sql).finally(() => client.end())
  }
  await inServer(`create database ${name}`)
  const url = new URL(server.url)
  url.pathname = `/${name}`
  return {
    url: url.href,
    drop: async () => {
      await inServer(`drop database ${name} with (force)`)
      server.stop()
    },
  }
}

const fromRoot = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url))

/** A process that carries out runs. */
export class Worker {
  readonly #child: ChildProcess
  readonly #open = new Map<
    number,
    { readonly resolve: (value: unknown) => void; readonly reject: (error: Error) => void }
  >()
  #asked = 0

  private constructor(child: ChildProcess) {
    this.#child = child
    child.on('message', ({ id, value, error }: { id: number; value?: unknown; error?: string }) => {
      const asked = this.#open.get(id)
      this.#open.delete(id)
      if (error === undefined) asked?.resolve(value)
      else asked?.reject(new Error(error))
    })
    child.on('exit', () => {
      for (const { reject } of this.#open.values()) reject(new Error('The worker has ended.'))
    })
  }

  static async start(options: Readonly<Record<'url' | 'effects' | 'version', string>>): Promise<Worker> {
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])
    // The engine uses `pg` in a way that version 9 of it will not take any more.
    const worker = new Worker(
      fork(fromRoot('.build/rigs/engine-worker.js'), args, { stdio: 'inherit', execArgv: ['--no-deprecation'] }),
    )
    await new Promise((resolve, reject) => worker.#open.set(0, { resolve, reject }))
    return worker
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  ask(what: { readonly do: 'start' | 'result' | 'answer'; readonly [field: string]: unknown }): Promise<unknown> {
    const id = (this.#asked += 1)
    const answered = new Promise((resolve, reject) => this.#open.set(id, { resolve, reject }))
    this.#child.send({ id, ...what })
    return answered
  }

  /** Ends it at once, as a crash would. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.kill('SIGKILL')
    await exited
  }
}
