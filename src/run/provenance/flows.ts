import type { ContentFlow } from '#contracts/flows.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { sourcedEntries } from './hosted-sources.js'
import type { ContentSource, SourcedEntry, TranscriptEntry } from '#contracts/entry.js'
import { isObject, jsonObjectIn, parseJson } from '#util/json.js'
import type { JsonValue } from '#util/json.js'
import type { ProvenanceOptions, ProvenanceRule } from './options.js'
import { fingerprintOf, overlap, sampleOf } from './overlap.js'
import { isAmong } from './source-names.js'
import type { Fingerprint, Sample } from './overlap.js'

const UNTRUSTED = ['web', 'server', 'agent'] as const

/** The rules of a run, and the untrusted content of the runs above it. */
export interface Provenance {
  readonly options: ProvenanceOptions
  readonly inherited: readonly SourcedEntry[]
  /** The workspace: names of files are relative to it. */
  readonly root: string
  /** The tools of the run: what a server says of its own is content of the server. */
  readonly tools?: ReadonlyMap<string, ToolSpec> | undefined
}

interface UntrustedEntry {
  readonly entry: SourcedEntry
  readonly sources: readonly ContentSource[]
}

/** The entries with untrusted content; those of the runs above come first. The answer of trusted agents has the sources of what they have read. */
function untrustedEntries(
  { options, inherited, root }: Provenance,
  transcript: readonly TranscriptEntry[],
): readonly UntrustedEntry[] {
  const { untrusted = UNTRUSTED } = options
  return [...inherited, ...sourcedEntries(transcript)].flatMap((entry) => {
    const { source } = entry
    const sources = isAmong(source, untrusted, { nameless: true, root })
      ? [source]
      : (source.sources ?? []).filter((each) => isAmong(each, untrusted, { nameless: true, root }))
    return sources.length === 0 ? [] : [{ entry, sources }]
  })
}

/**
 * The untrusted content that a call would carry into arguments that no rule allows it to reach. Decided from the
 * transcript alone. One flow for each argument and source.
 */
export function flowsInto(
  provenance: Provenance,
  transcript: readonly TranscriptEntry[],
  { spec, argumentsText }: { readonly spec: ToolSpec; readonly argumentsText: string },
): readonly ContentFlow[] {
  const { mode = 'match', allow = [] } = provenance.options
  if (!isGuarded(spec, provenance.options)) return []
  const entries = untrustedEntries(provenance, transcript)
  const definitions = mode === 'taint' ? [] : untrustedDefinitions(provenance, spec)
  if (entries.length === 0 && definitions.length === 0) return []
  const isScript = (spec.reach?.programs ?? []).length > 0
  return argumentsIn(argumentsText, mode).flatMap(([argument, value]) => {
    const texts = mode === 'taint' ? [] : textsIn(value).map((text) => sampleOf(text, isScript))
    const flow = { spec, argument, allow, root: provenance.root }
    const carried = entries.flatMap(({ entry, sources }): readonly ContentFlow[] => {
      const held = heldSources(sources, flow)
      if (held.length === 0) return []
      const match = mode === 'taint' ? 'taint' : strongest(texts, fingerprint(entry))
      return match === null ? [] : held.map((source) => ({ argument, source, callId: entry.callId, match }))
    })
    const long = texts.filter(
      ({ letters, addresses: { hosts, people } }) => letters.length >= 23 || hosts.size + people.size > 0,
    )
    const defined = definitions.flatMap(({ source, text }): readonly ContentFlow[] => {
      const isHeld = heldSources([source], flow).length > 0
      const match = isHeld ? strongest(long, text()) : null
      return match === null ? [] : [{ argument, source, callId: '', match }]
    })
    return [...carried, ...defined]
  })
}

interface Flow {
  readonly spec: ToolSpec
  readonly argument: string
  readonly allow: readonly ProvenanceRule[]
  readonly root: string
}

/** The sources that no rule allows to reach an argument. */
function heldSources(
  sources: readonly ContentSource[],
  { spec, argument, allow, root }: Flow,
): readonly ContentSource[] {
  return sources.filter(
    (source) =>
      !allow.some(
        ({ from, tools, arguments: names }) =>
          tools.includes(spec.name) &&
          isAmong(source, from, { nameless: false, root }) &&
          (names === undefined || names.includes(argument)),
      ),
  )
}

/** What untrusted servers say of their tools, for calls of tools that are not theirs. */
function untrustedDefinitions(
  { options, root, tools }: Provenance,
  called: ToolSpec,
): readonly { readonly source: ContentSource; readonly text: () => Fingerprint }[] {
  const { untrusted = UNTRUSTED } = options
  const own = serverOf(called)?.name
  return [...(tools?.values() ?? [])].flatMap((spec) => {
    const source = serverOf(spec)
    if (source === null || source.name === own || !isAmong(source, untrusted, { nameless: true, root })) return []
    return [{ source, text: () => definitionText(spec) }]
  })
}

/** The server of a tool, whatever it claims to be; null if it is of none. */
function serverOf({ metadata }: ToolSpec): ContentSource | null {
  if (metadata?.['source'] !== 'mcp') return null
  const [name, tool] = [metadata['mcp_server_id'], metadata['mcp_tool_name']]
  return { kind: 'server', ...(typeof name === 'string' && { name }), ...(typeof tool === 'string' && { tool }) }
}

const definitions = new WeakMap<ToolSpec, Fingerprint>()

function definitionText(spec: ToolSpec): Fingerprint {
  let known = definitions.get(spec)
  const { description, instructions = '', parameters } = spec
  known ??= fingerprintOf([description, instructions, ...textsIn(parameters)].join('\n'))
  definitions.set(spec, known)
  return known
}

/**
 * The sources of content that the arguments of a call contain, exactly or nearly, as `kind:name`; just `kind` for a source without
 * a name. Decided from the transcript alone.
 */
export function sourcesIn(argumentsText: string, transcript: readonly TranscriptEntry[]): readonly string[] {
  const entries = sourcedEntries(transcript)
  if (entries.length === 0) return []
  const texts = argumentsIn(argumentsText, 'match').flatMap(([, value]) => textsIn(value).map((text) => sampleOf(text)))
  const carried = entries.filter((entry) => strongest(texts, fingerprint(entry)) !== null)
  const sources = carried.flatMap(({ source }) => [source, ...(source.sources ?? [])])
  return [...new Set(sources.map(({ kind, name }) => (name === undefined ? kind : `${kind}:${name}`)))]
}

/** The members of a call's arguments. A call without any is tainted as a whole: then it is one member without a name. */
function argumentsIn(text: string, mode: 'match' | 'taint'): readonly (readonly [string, JsonValue])[] {
  const parsed = parseJson(text)
  if (!parsed.ok || !isObject(parsed.value)) return [['arguments', text]]
  const members = Object.entries(parsed.value) as [string, JsonValue][]
  return members.length === 0 && mode === 'taint' ? [['', null]] : members
}

function isGuarded(spec: ToolSpec, { tools }: ProvenanceOptions): boolean {
  const { name, annotations } = spec
  if (tools !== undefined) return tools.includes(name)
  if (serverOf(spec) !== null) return true
  return annotations?.readOnly !== true || annotations.openWorld !== false
}

function strongest(texts: readonly Sample[], source: Fingerprint): 'exact' | 'near' | null {
  const found = texts.map((text) => overlap(text, source))
  return found.find((match) => match === 'exact') ?? found.find((match) => match === 'near') ?? null
}

/** Every string in a value, names of members and numbers included. */
function textsIn(value: JsonValue): readonly string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [String(value)]
  if (Array.isArray(value)) return (value as readonly JsonValue[]).flatMap(textsIn)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member as JsonValue)])
}

/** Made once an entry: it never changes. */
const fingerprints = new WeakMap<SourcedEntry, Fingerprint>()

function fingerprint(entry: SourcedEntry): Fingerprint {
  let known = fingerprints.get(entry)
  if (known === undefined) fingerprints.set(entry, (known = fingerprintOf(contentOf(entry))))
  return known
}

/** The text that the model read, without the envelope around it. */
function contentOf({ role, content }: SourcedEntry): string {
  const whole =
    typeof content === 'string' ? [content] : content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  // The envelope of a report is a line of a notice.
  const texts = role === 'user' ? whole.flatMap((text) => text.split('\n')) : whole
  return texts
    .map((text) => {
      const { content: inner } = jsonObjectIn(text)
      return typeof inner === 'string' ? inner : text
    })
    .join('\n')
}
