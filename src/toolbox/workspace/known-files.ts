import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import type { EarlierResult } from '#core/tools/tool-spec.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { FileFailure } from './file-failure.js'
import type { FileCall } from './file-tool.js'

/** Metadata of results: the hash of each file, by its path in the workspace, as the model knows it after the call. */
const HASHES = 'file_hashes'
const TOOLS = ['read', 'write', 'edit']
/** Of a larger file, the size and the time of the last change count: it cannot be edited, and hashing it takes long. */
const MOST_HASHED_BYTES = 10_000_000
const BLOCK_BYTES = 262_144
/** In place of a hash: the model has appended to the file and does not know the rest. Ends the search in earlier results. */
const UNKNOWN = ''

/** The files that the model has read or written in its conversation, by the results in the transcript. */
export class KnownFiles {
  readonly #results: Iterator<EarlierResult>
  readonly #hashes = new Map<string, string>()
  readonly #written: Record<string, string> = {}

  private constructor(results: Iterable<EarlierResult>) {
    this.#results = results[Symbol.iterator]()
  }

  /** Null if files need not be read before they are changed: by option, outside a run, or if the run has no tool `read`. */
  static of({ workspace, context }: FileCall<unknown>): KnownFiles | null {
    if (!workspace.limits.requireRead || !context.results?.(['read'])) return null
    return new KnownFiles(context.results(TOOLS) ?? [])
  }

  /** @throws FileFailure if the model does not know the file as it is now, by its hash. */
  require(shown: string, hash: string): void {
    const known = this.hashOf(shown)
    if (known === hash) return
    if (known !== undefined && known !== UNKNOWN)
      throw new FileFailure('ChangedSinceRead', `${shown} has changed since you read it: read it again`)
    const problem = `${shown} has not been read in this conversation: read it first, and change it in a later turn`
    throw new FileFailure('NotRead', problem)
  }

  /** The hash of a file when the model last read or wrote it. */
  hashOf(shown: string): string | undefined {
    for (;;) {
      const known = this.#hashes.get(shown)
      if (known !== undefined) return known
      const next = this.#results.next()
      if (next.done === true) return undefined
      this.#take(next.value)
    }
  }

  /** The model has written a file. */
  wrote(shown: string, hash: string): void {
    this.#hashes.set(shown, hash)
    this.#written[shown] = hash
  }

  /** The model has appended to a file that was this before: it knows the file after it if it knew it before. */
  appended(shown: string, before: string, after: string): void {
    const known = this.hashOf(shown)
    if (known === before) this.wrote(shown, after)
    else if (known === undefined || known === UNKNOWN) this.wrote(shown, UNKNOWN)
  }

  /** For the metadata of the result. */
  get metadata(): JsonObject {
    return hashesMetadata(this.#written)
  }

  /** The newest result comes first. Content that was read in the same reply was not known when the model made this call. */
  #take({ toolName, isSeen, metadata }: EarlierResult): void {
    const { [HASHES]: hashes } = metadata
    if (!isObject(hashes) || (toolName === 'read' && !isSeen)) return
    for (const [shown, hash] of Object.entries(hashes))
      if (typeof hash === 'string' && !this.#hashes.has(shown)) this.#hashes.set(shown, hash)
  }
}

/** Metadata of a result that shows a file, or part of it: an open one, or its bytes. */
export async function readMark(
  { workspace, context }: FileCall<unknown>,
  shown: string,
  file: FileHandle | Uint8Array,
): Promise<JsonObject> {
  if (!workspace.limits.requireRead || context.results === undefined) return {}
  return hashesMetadata({
    [shown]: file instanceof Uint8Array ? hashOfBytes(file) : await hashOfFile(file, context.signal),
  })
}

export function hashOfBytes(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
}

/** The hash of an open file, wherever it was read before. */
export async function hashOfFile(handle: FileHandle, signal: AbortSignal): Promise<string> {
  const { size, mtimeNs } = await handle.stat({ bigint: true })
  if (size > MOST_HASHED_BYTES) return `${size}-${mtimeNs}`
  const hash = createHash('sha256')
  const block = Buffer.allocUnsafe(Math.min(BLOCK_BYTES, Number(size) + 1))
  for (let position = 0; ;) {
    signal.throwIfAborted()
    const { bytesRead } = await handle.read(block, 0, block.length, position)
    if (bytesRead === 0) return hash.digest('base64url').slice(0, 22)
    hash.update(block.subarray(0, bytesRead))
    position += bytesRead
  }
}

function hashesMetadata(hashes: Readonly<Record<string, string>>): JsonObject {
  return Object.keys(hashes).length === 0 ? {} : { [HASHES]: { ...hashes } }
}
