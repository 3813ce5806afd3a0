import type { ContentFlow } from '../../report.js'
import type { ToolOutcome } from '../../tools/outcome.js'
import type { ToolSpec } from '../../tools/spec.js'
import type { ContentSource, ToolEntry, TranscriptEntry } from '../../transcript/entry.js'
import { isObject, parseJson } from '../../util/json.js'
import type { JsonValue } from '../../util/json.js'
import type { ProvenanceOptions, ProvenanceRule } from './options.js'
import { fingerprintOf, overlap } from './overlap.js'
import type { Fingerprint } from './overlap.js'

const UNTRUSTED = ['web', 'server', 'agent'] as const

type Labelled = ToolEntry & { readonly source: ContentSource }

/** What a run holds to: its rules, and the untrusted content that was with the runs above it. */
export interface Provenance {
  readonly options: ProvenanceOptions
  readonly inherited: readonly ToolEntry[]
}

/** The entries whose content is not trusted; those of the runs above come first. */
function untrustedEntries(
  { options, inherited }: Provenance,
  transcript: readonly TranscriptEntry[],
): readonly Labelled[] {
  const { untrusted = UNTRUSTED } = options
  return [...inherited, ...transcript].filter(
    (entry): entry is Labelled =>
      entry.role === 'tool' && entry.source !== undefined && isAmong(entry.source, untrusted),
  )
}

/**
 * Which untrusted content a call would carry into arguments that nothing allows it to reach. Decided from the
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
  const parsed = parseJson(argumentsText)
  const args =
    parsed.ok && isObject(parsed.value) ? Object.entries(parsed.value) : [['arguments', argumentsText] as const]
  return args.flatMap(([argument, value]) => {
    const texts = textsIn(value as JsonValue)
    return entries.flatMap((entry) => {
      if (isAllowed(allow, { source: entry.source, tool: spec.name, argument })) return []
      const match = mode === 'taint' ? 'taint' : strongest(texts, fingerprint(entry))
      return match === null ? [] : [{ argument, source: entry.source, callId: entry.callId, match }]
    })
  })
}

/** What the model is told of a call that is refused for what it would carry. */
export function refusedBy(flows: readonly ContentFlow[]): ToolOutcome {
  const [first] = flows
  const { argument = '', source } = first ?? {}
  const from = source === undefined ? 'a source' : [source.kind, source.name ?? ''].join(' ').trim().slice(0, 200)
  return {
    kind: 'failed',
    errorType: 'UntrustedContent',
    content: `The call was not made: \`${argument}\` has content of an untrusted source (${from}), which may not get there.`,
    retry: false,
  }
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
      tools.includes(tool) && isAmong(source, from) && (names === undefined || names.includes(argument)),
  )
}

function isAmong({ kind, name }: ContentSource, wanted: readonly string[]): boolean {
  return wanted.some((each) => {
    if (each === kind) return true
    if (name === undefined || !each.startsWith(`${kind}:`)) return false
    const below = each.slice(kind.length + 1)
    return name === below || name.startsWith(below.endsWith('/') ? below : `${below}/`)
  })
}

function strongest(texts: readonly string[], source: Fingerprint): 'exact' | 'near' | null {
  const found = texts.map((text) => overlap(text, source))
  return found.find((match) => match === 'exact') ?? found.find((match) => match === 'near') ?? null
}

/** Every text in a value, names of members and numbers included. */
function textsIn(value: JsonValue): readonly string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [String(value)]
  if (Array.isArray(value)) return (value as readonly JsonValue[]).flatMap(textsIn)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member as JsonValue)])
}

/** Made once an entry: it never changes. */
const fingerprints = new WeakMap<ToolEntry, Fingerprint>()

function fingerprint(entry: ToolEntry): Fingerprint {
  let known = fingerprints.get(entry)
  if (known === undefined) fingerprints.set(entry, (known = fingerprintOf(contentOf(entry))))
  return known
}

/** What the model read, without the envelope around it. */
function contentOf({ content }: ToolEntry): string {
  const texts =
    typeof content === 'string' ? [content] : content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  return texts
    .map((text) => {
      const parsed = parseJson(text)
      const told = parsed.ok && isObject(parsed.value) ? parsed.value['content'] : undefined
      return typeof told === 'string' ? told : text
    })
    .join('\n')
}
