import { parse } from '#contracts/parse.js'
import type { LogStore, RunLog } from '#core/log/log.js'
import { functionOf, list, object, oneOf, optional } from '#util/validate.js'
import { brokenLaw } from '../expect.js'
import { inboxLaws, keepingLaws, owningLaws, removingLaws } from './writing-laws.js'
import type { LogLaw } from './law-bench.js'
import { labelAndChangeLaws } from './label-and-change-laws.js'
import { listingLaws } from './listing-laws.js'

const LAWS = { ...keepingLaws, ...owningLaws, ...inboxLaws, ...listingLaws, ...labelAndChangeLaws, ...removingLaws }

export type LogLawName = keyof typeof LAWS

/** `Store` is the kind of your logs. */
export interface LogContractOptions<Store extends RunLog> {
  /** Opens an empty log that shares nothing with earlier ones. */
  readonly open: () => Store | Promise<Store>
  /** Opens the same log again, like another process. Default: the same object, for a log in memory. */
  readonly reopen?: ((log: Store) => Store | Promise<Store>) | undefined
  /** Breaks the resources of the log while it works, such as its connections. Default: nothing can break. */
  readonly kill?: ((log: Store) => Promise<void>) | undefined
  /** Is called with each log after its law was checked. */
  readonly close?: ((log: Store) => Promise<void>) | undefined
  /** Laws that do not apply, such as those of missing methods. Default: none. */
  readonly without?: readonly LogLawName[] | undefined
}

/** A rule that every log must follow. */
export interface ContractLaw {
  readonly name: LogLawName
  /** The law in a sentence. */
  readonly says: string
  /** Checks it. Rejects with an error that states the problem. */
  readonly check: () => Promise<void>
}

/**
 * The laws that every log of runs must keep, for any test runner:
 *
 * ```ts
 * const laws = runLogContract({ open: () => fileLog(mkdtempSync(prefix)) })
 * for (const { name, check } of laws) test(name, check)
 * ```
 *
 * A log without `claim`, or without `inspect`, `list` and `prune`, names the laws of these in `without`.
 * Throws `invalid_options`.
 */
export function runLogContract<Store extends RunLog>(options: LogContractOptions<Store>): readonly ContractLaw[] {
  const { without = [], ...stores } = parse(contractOptions<Store>(), options, '`runLogContract`')
  return NAMES.filter((name) => !without.includes(name)).map((name) => ({
    name,
    says: LAWS[name].says,
    check: () => checkLaw(name, stores),
  }))
}

const NAMES = Object.keys(LAWS) as LogLawName[]

function contractOptions<Store extends RunLog>() {
  return object<LogContractOptions<Store>>({
    open: functionOf(),
    reopen: optional(functionOf()),
    kill: optional(functionOf()),
    close: optional(functionOf()),
    without: optional(list(oneOf(...NAMES))),
  })
}

async function checkLaw<Store extends RunLog>(name: LogLawName, options: LogContractOptions<Store>): Promise<void> {
  const { open, reopen, kill, close } = options
  const law: LogLaw = LAWS[name]
  const first = await open()
  const opened = [first]
  const reopenLog = async (): Promise<LogStore> => {
    if (reopen === undefined) return asStore(first)
    const log = await reopen(first)
    opened.push(log)
    return asStore(log)
  }
  try {
    await law.holds({ store: asStore(first), again: reopenLog, kill: kill === undefined ? null : () => kill(first) })
  } catch (error) {
    throw brokenLaw({ name, says: law.says }, error)
  } finally {
    for (const log of new Set(opened)) await close?.(log)
  }
}

/** The log; a missing method throws an error that says so. */
function asStore(log: RunLog): LogStore {
  return new Proxy(log as LogStore, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member === 'function') return member.bind(target) as unknown
      if (member === undefined && typeof name === 'string' && name !== 'then') {
        throw new Error(`The log has no \`${name}\`: leave this law out by \`without\`.`)
      }
      return member
    },
  })
}
