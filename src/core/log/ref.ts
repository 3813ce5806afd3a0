import { HarnessError } from '#contracts/errors.js'

export type LogKind = 'run' | 'thread'

/** Names a log. A run and a thread may have the same id. */
export interface LogRef<Kind extends LogKind = LogKind> {
  readonly kind: Kind
  readonly id: string
}

export function runRef(id: string): LogRef<'run'> {
  return { kind: 'run', id }
}

/** Threads whose id begins with this hold the memory of an owner, not a conversation. */
export const MEMORY_THREADS = 'memory:'

/** A log's name in a message: run `run_1`. */
export function nameOf({ kind, id }: LogRef): string {
  return `${kind} \`${id}\``
}

/** Identifies a log in a map. */
export function keyOf({ kind, id }: LogRef): string {
  return `${kind}:${id}`
}

/** Rejects anything but a log's name, such as the plain id of a run. */
export function checkRef(ref: unknown): void {
  const { kind, id } = (typeof ref === 'object' && ref !== null ? ref : {}) as Partial<LogRef>
  if ((kind === 'run' || kind === 'thread') && typeof id === 'string') return
  const got = typeof ref === 'string' ? `"${ref}"` : JSON.stringify(ref)
  throw new HarnessError('invalid_options', `Expected a log's name such as { kind: 'run', id: 'run_1' }, got ${got}.`)
}

/**
 * The number of the last of `events`, which must follow `lastSeq` without gaps. An empty log takes events from any number
 * on: a run that is resumed from a stored state continues in a log that has not seen its beginning.
 */
export function lastSeqOf(ref: LogRef, lastSeq: number, events: readonly { readonly seq: number }[]): number {
  let last = lastSeq
  for (const { seq } of events) {
    if (last !== 0 && seq !== last + 1) throw doesNotFollow(ref, last, seq)
    last = seq
  }
  return last
}

/** The rejection of events that do not follow the last one; of a second run with one id, they start at 1 again. */
function doesNotFollow(ref: LogRef, lastSeq: number, seq: number): HarnessError {
  if (seq === 1 && ref.kind === 'run') {
    return new HarnessError(
      'run_exists',
      `There is a run \`${ref.id}\` already. \`ifExists: 'continue'\` gives its result.`,
    )
  }
  const message = `The log of ${nameOf(ref)} ends with event ${lastSeq}: it does not take event ${seq}.`
  return new HarnessError('store_failure', message)
}
