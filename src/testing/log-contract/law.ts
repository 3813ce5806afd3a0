import { isDeepStrictEqual } from 'node:util'
import type { LogEvent, LogRef, LogStore, RunLog } from '../../index.js'

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

export const runOf = (id: string): LogRef<'run'> => ({ kind: 'run', id })
export const threadOf = (id: string): LogRef<'thread'> => ({ kind: 'thread', id })

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
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
  expectEqual(what, await all(log.read(ref, after === undefined ? {} : { after })), events)
}

/** Compares the JSON of two values. */
export function expectEqual(what: string, got: unknown, expected: unknown): void {
  if (isDeepStrictEqual(asJson(got), asJson(expected))) return
  throw new Error(`Expected ${what} to be ${shown(expected)}, got ${shown(got)}.`)
}

/** Checks that a promise rejects with an error of one of these codes. */
export async function expectRejected(what: string, promise: Promise<unknown>, codes: readonly string[]): Promise<void> {
  const outcome = await promise.then(
    () => 'nothing',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  )
  if (codes.includes(outcome)) return
  throw new Error(`Expected ${what} to be rejected with \`${codes.join('` or `')}\`, got ${outcome}.`)
}

function asJson(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value))
}

function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value)
  return text.length > 600 ? `${text.slice(0, 600)}… (${text.length} characters)` : text
}

/** Tries again until the condition holds, for at most 5 s. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 5000; Date.now() < end;) {
    if (await holds()) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`Expected ${what} within 5 seconds.`)
}

/** The value of a promise that must settle within 5 s. */
export async function soon<T>(what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Expected ${what} within 5 seconds.`)), 5000)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
