import type { PromptPart } from './wire.js'

/** Where the bytes of a file are: here, as base64, or at an address. */
export type FileSource = { readonly data: string } | { readonly url: string }

/** A file as part of a prompt or of a tool's result. `mediaType` may be the kind alone (`image`) where no more is known. */
export interface PromptFile {
  readonly source: FileSource
  readonly mediaType: string
  readonly name?: string
}

/** What differs between versions of the specification. */
export interface Version {
  /** What a file part holds as `data`. */
  fileData(source: FileSource): unknown
  /** Media type of something of this kind of which no more is known. */
  anyOf(kind: string): string
  /** A file within a tool's result; null where the version has no form for it. */
  resultFile(file: PromptFile): PromptPart | null
  /** Whether a call has the setting `reasoning`. */
  readonly takesReasoning: boolean
  /** Kinds of content, beside text, reasoning and calls of our tools, that can be sent back in a reply. */
  readonly replayable: ReadonlySet<string>
}

const bytesOrUrl = (source: FileSource): unknown => ('url' in source ? new URL(source.url) : source.data)
const wildcard = (kind: string): string => `${kind}/*`
const REPLAYABLE = ['file', 'tool-call', 'tool-result']

const V2: Version = {
  fileData: bytesOrUrl,
  anyOf: wildcard,
  resultFile: ({ source, mediaType }) => ('url' in source ? null : { type: 'media', data: source.data, mediaType }),
  takesReasoning: false,
  replayable: new Set(REPLAYABLE),
}

const V3: Version = {
  ...V2,
  resultFile({ source, mediaType, name }) {
    const isImage = mediaType.startsWith('image')
    if ('url' in source) return isImage ? { type: 'image-url', url: source.url } : { type: 'file-url', url: source.url }
    if (isImage) return { type: 'image-data', data: source.data, mediaType }
    return { type: 'file-data', data: source.data, mediaType, ...(name !== undefined && { filename: name }) }
  },
}

const V4: Version = {
  fileData: taggedData,
  anyOf: (kind) => kind,
  resultFile: ({ source, mediaType, name }) => ({
    type: 'file',
    data: taggedData(source),
    mediaType,
    ...(name !== undefined && { filename: name }),
  }),
  takesReasoning: true,
  replayable: new Set([...REPLAYABLE, 'reasoning-file', 'custom']),
}

function taggedData(source: FileSource): unknown {
  return 'url' in source ? { type: 'url', url: new URL(source.url) } : { type: 'data', data: source.data }
}

/** The versions that are known, by `specificationVersion`. */
export const VERSIONS: ReadonlyMap<string, Version> = new Map([
  ['v2', V2],
  ['v3', V3],
  ['v4', V4],
])
