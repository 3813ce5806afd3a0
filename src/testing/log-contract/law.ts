import { isDeepStrictEqual } from 'node:util'
import type { DurableEvent, RunLog, RunStore } from '../../index.js'

/** What a law is tried on. */
export interface Bench {
  /** A store that knows nothing. */
  readonly store: RunStore
  /** The same store once more, as another process would open it; the same object where that cannot be. */
  readonly again: () => Promise<RunStore>
  /** Breaks what the store stands on; null where nothing can break. */
  readonly kill: (() => Promise<void>) | null
}

export interface LogLaw {
  /** What it says, in a sentence. */
  readonly says: string
  /** Rejects with what is wrong. */
  readonly holds: (bench: Bench) => Promise<void>
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const gathered: T[] = []
  for await (const item of items) gathered.push(item)
  return gathered
}

/** That the log holds exactly these events of the run, as their JSON. */
export async function expectKept(
  log: RunLog,
  runId: string,
  events: readonly DurableEvent[],
  from?: number,
): Promise<void> {
  const what = `what \`read(${JSON.stringify(runId)}${from === undefined ? '' : `, ${from}`})\` gives`
  expectEqual(what, await all(log.read(runId, from)), events)
}

/** Compares what is left of two values in JSON. */
export function expectEqual(what: string, got: unknown, expected: unknown): void {
  if (isDeepStrictEqual(asJson(got), asJson(expected))) return
  throw new Error(`Expected ${what} to be ${shown(expected)}, got ${shown(got)}.`)
}

/** That a promise rejects with an error of this code. */
export async function expectRefused(what: string, promise: Promise<unknown>, codes: readonly string[]): Promise<void> {
  const outcome = await promise.then(
    () => 'nothing',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  )
  if (codes.includes(outcome)) return
  throw new Error(`Expected ${what} to be refused with \`${codes.join('` or `')}\`, got ${outcome}.`)
}

function asJson(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value))
}

function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value)
  return text.length > 600 ? `${text.slice(0, 600)}… (${text.length} characters)` : text
}

/** Tries again until it is so, for 5 s at the longest. */
export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 5000; Date.now() < end;) {
    if (await isSo()) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error(`Expected ${what} within 5 seconds.`)
}
