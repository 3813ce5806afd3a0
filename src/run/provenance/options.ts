import { HarnessError } from '../../contracts/errors.js'
import { CONTENT_SOURCES } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import { unknownKey } from '../../util/unknown-key.js'

/** What content of strangers may reach, and what happens else. */
export interface ProvenanceOptions {
  /**
   * Whose content is not trusted: a kind of source (`web`, `server`, `agent`, `command`, `workspace`, `person`), or one of
   * them by its name, as `server:github` or `workspace:/work/inbox`, which is all below it. Default `web`, `server`, `agent`.
   */
  readonly untrusted?: readonly string[]
  /**
   * `match` (default): an argument is tainted that holds untrusted content, exactly or nearly. `taint`: every argument
   * behind the first untrusted content is.
   */
  readonly mode?: 'match' | 'taint'
  /** Tools whose arguments are looked at. Default: all but those whose annotations say that they only read, in the workspace. */
  readonly tools?: readonly string[]
  /** What untrusted content may reach all the same. Default: nothing. */
  readonly allow?: readonly ProvenanceRule[]
  /** What happens to a call that nothing allows: a person is asked (default), or it is refused. */
  readonly otherwise?: 'ask' | 'deny'
}

/** Content of these sources may reach these arguments of these tools. */
export interface ProvenanceRule {
  /** As in `untrusted`. */
  readonly from: readonly string[]
  readonly tools: readonly string[]
  /** Members of a call's arguments at the top. Default: all. */
  readonly arguments?: readonly string[]
}

/** Throws `invalid_options` for what is wrong. */
export function checkProvenance(options: unknown): void {
  if (!isObject(options)) throw invalid('Expected `provenance` to be an object of options.')
  refuseUnknown(options, ['untrusted', 'mode', 'tools', 'allow', 'otherwise'], 'option of `provenance`')
  const { untrusted, mode = 'match', tools, allow = [], otherwise = 'ask' } = options
  if (untrusted !== undefined) checkSources('untrusted', untrusted)
  if (mode !== 'match' && mode !== 'taint') throw invalid('Expected `mode` of `provenance` to be `match` or `taint`.')
  if (otherwise !== 'ask' && otherwise !== 'deny') {
    throw invalid('Expected `otherwise` of `provenance` to be `ask` or `deny`.')
  }
  if (tools !== undefined && !isTexts(tools)) throw invalid('Expected `tools` of `provenance` to be a list of names.')
  if (!Array.isArray(allow)) throw invalid('Expected `allow` of `provenance` to be a list of rules.')
  for (const rule of allow as readonly unknown[]) checkRule(rule)
}

function checkRule(rule: unknown): void {
  if (!isObject(rule)) throw invalid('Expected a rule of `provenance` to be an object.')
  refuseUnknown(rule, ['from', 'tools', 'arguments'], 'member of a rule of `provenance`')
  checkSources('from', rule['from'])
  if (!isTexts(rule['tools'])) throw invalid('Expected `tools` of a rule of `provenance` to be a list of names.')
  if (rule['arguments'] !== undefined && !isTexts(rule['arguments'])) {
    throw invalid('Expected `arguments` of a rule of `provenance` to be a list of names.')
  }
}

function checkSources(option: string, sources: unknown): void {
  const known: readonly string[] = CONTENT_SOURCES
  if (isTexts(sources) && sources.every((source) => known.includes(source.split(':', 1)[0] ?? ''))) return
  const kinds = known.map((kind) => `\`${kind}\``).join(', ')
  throw invalid(
    `Expected \`${option}\` of \`provenance\` to be a list of ${kinds}, alone or with a name behind a \`:\`.`,
  )
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

function refuseUnknown(options: object, known: readonly string[], what: string): void {
  const problem = unknownKey(options, known, what)
  if (problem !== undefined) throw invalid(problem)
}

function invalid(message: string): HarnessError {
  return new HarnessError('invalid_options', message)
}
