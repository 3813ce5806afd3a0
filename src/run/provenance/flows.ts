import type { ContentFlow } from '#contracts/flows.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { isSourced } from '#contracts/entry.js'
import type { ContentSource, SourcedEntry, TranscriptEntry } from '#contracts/entry.js'
import { isObject, parseJson } from '#util/json.js'
import type { JsonValue } from '#util/json.js'
import type { ProvenanceOptions, ProvenanceRule } from './options.js'
import { fingerprintOf, overlap, sampleOf } from './overlap.js'
import type { Fingerprint, Sample } from './overlap.js'

const UNTRUSTED = ['web', 'server', 'agent'] as const

/** The rules of a run, and the untrusted content of the runs above it. */
export interface Provenance {
  readonly options: ProvenanceOptions
  readonly inherited: readonly SourcedEntry[]
}

interface UntrustedEntry {
  readonly entry: SourcedEntry
  readonly sources: readonly ContentSource[]
}

/** The entries with untrusted content; those of the runs above come first. The answer of trusted agents has the sources of what they have read. */
function untrustedEntries(
  { options, inherited }: Provenance,
  transcript: readonly TranscriptEntry[],
): readonly UntrustedEntry[] {
  const { untrusted = UNTRUSTED } = options
  return [...inherited, ...transcript.filter(isSourced)].flatMap((entry) => {
    const { source } = entry
    const sources = isAmong(source, untrusted, true)
      ? [source]
      : (source.sources ?? []).filter((each) => isAmong(each, untrusted, true))
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
  if (entries.length === 0) return []
  return argumentsIn(argumentsText, mode).flatMap(([argument, value]) => {
    const texts = mode === 'taint' ? [] : textsIn(value).map(sampleOf)
    return entries.flatMap(({ entry, sources }) => {
      const held = sources.filter((source) => !isAllowed(allow, { source, tool: spec.name, argument }))
      if (held.length === 0) return []
      const match = mode === 'taint' ? 'taint' : strongest(texts, fingerprint(entry))
      return match === null ? [] : held.map((source) => ({ argument, source, callId: entry.callId, match }))
    })
  })
}

/**
 * The sources of content that the arguments of a call contain, exactly or nearly, as `kind:name`; just `kind` for a source without
 * a name. Decided from the transcript alone.
 */
export function sourcesIn(argumentsText: string, transcript: readonly TranscriptEntry[]): readonly string[] {
  const entries = transcript.filter(isSourced)
  if (entries.length === 0) return []
  const texts = argumentsIn(argumentsText, 'match').flatMap(([, value]) => textsIn(value).map(sampleOf))
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

function isGuarded({ name, annotations }: ToolSpec, { tools }: ProvenanceOptions): boolean {
  if (tools !== undefined) return tools.includes(name)
  return annotations?.readOnly !== true || annotations.openWorld !== false
}

function isAllowed(
  rules: readonly ProvenanceRule[],
  { source, tool, argument }: { readonly source: ContentSource; readonly tool: string; readonly argument: string },
): boolean {
  return rules.some(
    ({ from, tools, arguments: names }) =>
      tools.includes(tool) && isAmong(source, from, false) && (names === undefined || names.includes(argument)),
  )
}

/** `nameless`: a source without a name may be any of its kind, and is among those of each name. */
function isAmong({ kind, name }: ContentSource, wanted: readonly string[], nameless: boolean): boolean {
  return wanted.some((each) => {
    if (each === kind) return true
    if (!each.startsWith(`${kind}:`)) return false
    return name === undefined ? nameless : isBelow(plainName(kind, name), plainName(kind, each.slice(kind.length + 1)))
  })
}

function isBelow(name: string, above: string): boolean {
  return name === above || name.startsWith(above.endsWith('/') ? above : `${above}/`)
}

/** One form of each name: `https://Evil.test./a` is `https://evil.test/a`. */
function plainName(kind: ContentSource['kind'], name: string): string {
  if (kind !== 'web' || !URL.canParse(name)) return name
  const url = new URL(name)
  url.hostname = url.hostname.replace(/\.$/, '')
  return url.href
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
      const parsed = parseJson(text)
      const inner = parsed.ok && isObject(parsed.value) ? parsed.value['content'] : undefined
      return typeof inner === 'string' ? inner : text
    })
    .join('\n')
}
