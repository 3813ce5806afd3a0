/** The handling of a tool, or of instructions, that differ from the pinned ones. */
export type ChangedToolRule = 'report' | 'refuse'

/** Something of a server that reaches the model: a tool's definition, or the server's instructions. */
export interface Pinned {
  /** The server's name of a tool, or `INSTRUCTIONS`. */
  readonly name: string
  readonly digest: string
}

/** The name of a server's instructions among its digests: no tool is called that. */
export const INSTRUCTIONS = '(instructions)'

/**
 * The trusted definitions of a server's tools, and its instructions. A server that changes one unexpectedly (a description with an instruction in
 * it, a wider schema) is reported, and with `refuse` the tool is omitted until it is pinned again.
 */
export class Pins {
  readonly #rule: ChangedToolRule
  /** Digests by the server's names; null until the first list, unless they were given. */
  #known: Map<string, string> | null

  constructor(given: Readonly<Record<string, string>> | null, rule: ChangedToolRule) {
    this.#rule = rule
    this.#known = given === null ? null : new Map(Object.entries(given))
  }

  /** From now on these definitions are the known ones. */
  pin(digests: Readonly<Record<string, string>>): void {
    this.#known = new Map(Object.entries(digests))
  }

  /** Those that may be offered. The first list is trusted if nothing was pinned before. */
  admitted(all: readonly Pinned[], warn: (message: string) => void): readonly Pinned[] {
    const known = this.#known
    if (known === null) {
      this.#known = new Map(all.map(({ name, digest }) => [name, digest]))
      return all
    }
    const isKnown = ({ name, digest }: Pinned): boolean => known.get(name) === digest
    const others = all.filter((each) => !isKnown(each))
    for (const each of others) warn(this.#warning(each, known.get(each.name)))
    if (this.#rule === 'refuse') return all.filter(isKnown)
    for (const { name, digest } of others) known.set(name, digest)
    return all
  }

  /** False for a changed definition that must not be called. */
  admits({ name, digest }: Pinned): boolean {
    return this.#rule === 'report' || this.#known?.get(name) === digest
  }

  #warning({ name, digest }: Pinned, before: string | undefined): string {
    const isTool = name !== INSTRUCTIONS
    const addition = isTool ? `has a new tool \`${name}\`` : 'has instructions that are not pinned'
    const change = isTool ? `has changed the definition of \`${name}\`` : 'has changed its instructions'
    const subject = isTool ? 'it is' : 'they are'
    const end = this.#rule === 'refuse' ? `; ${subject} not offered until ${subject} pinned` : ''
    return `It ${before === undefined ? addition : change} (${before === undefined ? '' : `${before} → `}${digest})${end}.`
  }
}
