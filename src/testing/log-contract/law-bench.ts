import type { LogEvent, LogStore, RunLog } from '#core/log/log.js'
import type { LogRef } from '#core/log/ref.js'
import { expectSame } from '../expect.js'

/** The objects that a law is tried on. */
export interface Bench {
  /** An empty store. */
  readonly store: LogStore
  /** The same store, opened again as another process would; the same object if that is impossible. */
  readonly again: () => Promise<LogStore>
  /** Breaks the store's connections or files; null if nothing can break. */
  readonly kill: (() => Promise<void>) | null
}

export interface LogLaw {
  /** The law in a sentence. */
  readonly says: string
  /** Rejects with the problem. */
  readonly holds: (bench: Bench) => Promise<void>
}

export const runRef = (id: string): LogRef<'run'> => ({ kind: 'run', id })
/** The run of most laws. */
export const RUN = runRef('run_a')
export const threadRef = (id: string): LogRef<'thread'> => ({ kind: 'thread', id })

export async function collectAll<T>(items: AsyncIterable<T>): Promise<T[]> {
  const gathered: T[] = []
  for await (const item of items) gathered.push(item)
  return gathered
}

/** Checks that the log holds exactly these events, as their JSON. */
export async function expectStored(
  log: RunLog | LogStore,
  ref: LogRef,
  { events, after }: { readonly events: readonly LogEvent[]; readonly after?: number | undefined },
): Promise<void> {
  const what = `the events of \`read(${JSON.stringify(ref)}${after === undefined ? '' : `, { after: ${after} }`})\``
  expectSame(what, await collectAll(log.read(ref, after === undefined ? {} : { after })), events)
}

/** Checks that a promise rejects with an error of this code. */
export async function expectRejected(what: string, promise: Promise<unknown>, code: string): Promise<void> {
  const outcome = await promise.then(
    () => 'nothing',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : String(error)),
  )
  expectSame(`the rejection of ${what}`, outcome, code)
}

/** Tries again until the condition holds, for at most 5 s. */
export async function waitUntil(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 5000; Date.now() < end;) {
    if (await holds()) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`Expected ${what} within 5 seconds.`)
}
