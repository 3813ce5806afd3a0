import { CONTENT_SOURCES } from '#contracts/entry.js'
import { parse } from '#contracts/parse.js'
import { anything, list, object, oneOf, optional, partial, string, where } from '#util/validate.js'
import type { PartialFields } from '#util/validate.js'
import { isSourceName } from './source-names.js'

/** The places that untrusted content may reach, and the treatment of other calls. */
export interface ProvenanceOptions {
  /**
   * Sources of untrusted content: a kind of source (`web`, `server`, `agent`, `command`, `workspace`, `person`), or one of
   * them by its name, with everything below it: `server:github`, `workspace:inbox`, `web:evil.test`, `web:*.evil.test`, `web:https://evil.test/a`.
   * A name that can match nothing is rejected. Default `web`, `server`, `agent`.
   */
  readonly untrusted?: readonly string[] | undefined
  /**
   * `match` (default): an argument is tainted if it contains untrusted content, exactly or nearly: a host, an address or a command
   * of it is enough. `taint`: every argument
   * after the first untrusted content is.
   */
  readonly mode?: 'match' | 'taint' | undefined
  /** Tools whose arguments are checked. Default: all except those that, by their annotations, only read in the workspace. */
  readonly tools?: readonly string[] | undefined
  /** Exceptions: flows that are allowed. Default: none. */
  readonly allow?: readonly ProvenanceRule[] | undefined
  /** The treatment of a call that no rule allows: a person is asked (default), or it is refused. */
  readonly otherwise?: 'ask' | 'deny' | undefined
}

/** Content of these sources may reach these arguments of these tools. */
export interface ProvenanceRule {
  /** As in `untrusted`. */
  readonly from: readonly string[]
  readonly tools: readonly string[]
  /** Top-level fields of a call's arguments. Default: all. */
  readonly arguments?: readonly string[] | undefined
}

const SOURCES = CONTENT_SOURCES.map((kind) => `\`${kind}\``).join(', ')
const sources = list(
  where(
    string,
    `one of ${SOURCES}, alone or with a name after a \`:\`, such as \`web:*.example.com\` or \`workspace:inbox\``,
    isSourceName,
  ),
  'a list of sources',
)
const names = list(string, 'a list of names')

const RULE = object<ProvenanceRule>({ from: sources, tools: names, arguments: optional(names) })

const OPTIONS = partial<ProvenanceOptions>({
  untrusted: sources,
  mode: oneOf('match', 'taint'),
  tools: names,
  allow: list(RULE, 'a list of rules'),
  otherwise: oneOf('ask', 'deny'),
})

/** The rules of a harness for untrusted content; null if it has none. Throws `invalid_options`. */
export function flowRulesOf({ provenance }: FlowOptions): ProvenanceOptions | null {
  return provenance === undefined ? null : parse(OPTIONS, provenance, '`provenance`')
}

/** The option of a harness for untrusted content. */
export interface FlowOptions {
  /** The places that untrusted content may reach, and who is asked otherwise (`docs/provenance.md`). Default: nobody is asked. */
  readonly provenance?: ProvenanceOptions | undefined
}

/** Its value is checked by `flowRulesOf`. */
export const FLOW_FIELDS: PartialFields<FlowOptions> = { provenance: anything() }
