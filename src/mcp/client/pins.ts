import type { McpTool } from './tool-list.js'

/** The handling of a tool whose definition differs from the pinned one. */
export type ChangedToolRule = 'report' | 'refuse'

/**
 * The trusted definitions of a server's tools. A server that changes one unexpectedly (a description with an instruction in
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

  /** The tools that may be offered. The first list is trusted if nothing was pinned before. */
  admitted(tools: readonly McpTool[], warn: (message: string) => void): readonly McpTool[] {
    const known = this.#known
    if (known === null) {
      this.#known = new Map(tools.map(({ name, digest }) => [name, digest]))
      return tools
    }
    const isKnown = ({ name, digest }: McpTool): boolean => known.get(name) === digest
    const others = tools.filter((tool) => !isKnown(tool))
    for (const tool of others) warn(this.#warning(tool, known.get(tool.name)))
    if (this.#rule === 'refuse') return tools.filter(isKnown)
    for (const { name, digest } of others) known.set(name, digest)
    return tools
  }

  /** False for a changed definition that must not be called. */
  admits({ name, digest }: McpTool): boolean {
    return this.#rule === 'report' || this.#known?.get(name) === digest
  }

  #warning({ name, digest }: McpTool, before: string | undefined): string {
    const change = before === undefined ? `has a new tool \`${name}\`` : `has changed the definition of \`${name}\``
    const end = this.#rule === 'refuse' ? '; it is not offered until it is pinned' : ''
    return `It ${change} (${before === undefined ? '' : `${before} → `}${digest})${end}.`
  }
}
