import { HarnessError } from '../../contracts/errors.js'

export type LogKind = 'run' | 'thread'

/** Names a log. A run and a thread may have the same id. */
export interface LogRef<Kind extends LogKind = LogKind> {
  readonly kind: Kind
  readonly id: string
}

export function runRef(id: string): LogRef<'run'> {
  return { kind: 'run', id }
}

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
