import type { Post } from '#core/log/log.js'
import type { LogRef } from '#core/log/ref.js'
import { isObject, parseJson } from '#util/json.js'
import type { JsonValue } from '#util/json.js'
import { isEncoded, placeOfPost } from '../codec/clear.js'
import type { RecordCodec } from '../codec/log-codec.js'
import type { StoreCodec } from '../codec/store-codec.js'
import { fileNameOf, fileNamesIn, makeFolder } from './file-paths.js'
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'

/** A post as its file stores it. */
interface StoredPost {
  readonly id: string
  /** When it was posted, in ms with fractions: the order of the inbox. */
  readonly atMs: number
  readonly body?: JsonValue
  /** In place of the body, if a codec has encoded it. */
  readonly sealed?: string
}

/** The posts to one log: a file for each, named after its id. The file of a post that has left the inbox is empty. */
export class FileInbox {
  readonly #folder: string
  readonly #ref: LogRef
  readonly #codec: RecordCodec

  constructor(folder: string, ref: LogRef, codec: RecordCodec) {
    this.#folder = folder
    this.#ref = ref
    this.#codec = codec
  }

  /** `sync`: waits for the disk. */
  post({ id, body }: Post, sync: boolean): void {
    makeFolder(this.#folder)
    const written = join(this.#folder, `new-${globalThis.crypto.randomUUID()}`)
    const fd = openSync(written, 'wx', 0o600)
    try {
      const stored = this.#codec.encode(JSON.stringify(body), placeOfPost(this.#ref, id))
      writeSync(fd, fileText({ id, atMs: nowMs() }, stored))
      if (sync) fsyncSync(fd)
      linkSync(written, this.#pathOf(id))
    } catch (error) {
      // There is or was a post with this id.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      closeSync(fd)
      unlinkSync(written)
    }
  }

  /** The posts that have not left the inbox, in the order of their arrival. */
  async posts(): Promise<Post[]> {
    const posts = (await this.#stored()).sort((left, right) => left.atMs - right.atMs)
    return posts.map((post) => {
      const json = this.#codec.decode(storedText(post), placeOfPost(this.#ref, post.id))
      return { id: post.id, body: JSON.parse(json) as JsonValue }
    })
  }

  empty(ids: readonly string[]): void {
    for (const id of ids) truncateSync(this.#pathOf(id))
  }

  /** Writes them in the form of the current codec. False if they were in it. */
  async rewrite(codec: StoreCodec): Promise<boolean> {
    let isChanged = false
    for (const post of await this.#stored()) {
      const [before, { id, atMs }] = [storedText(post), post]
      const stored = codec.renewed(before, placeOfPost(this.#ref, id))
      if (stored === before) continue
      const written = join(this.#folder, `new-${globalThis.crypto.randomUUID()}`)
      writeFileSync(written, fileText({ id, atMs }, stored), { mode: 0o600, flush: true })
      renameSync(written, this.#pathOf(id))
      isChanged = true
    }
    return isChanged
  }

  async #stored(): Promise<StoredPost[]> {
    // Nearly always there is none, and the owner of a thread looks often.
    if (statSync(this.#folder, { throwIfNoEntry: false }) === undefined) return []
    const names = (await fileNamesIn(this.#folder)).filter((name) => name.endsWith('.json'))
    return names.flatMap((name) => parsedPost(readFileSync(join(this.#folder, name), 'utf8')) ?? [])
  }

  #pathOf(id: string): string {
    return join(this.#folder, `${fileNameOf(id)}.json`)
  }
}

function parsedPost(text: string): StoredPost | undefined {
  const parsed = parseJson(text)
  return parsed.ok && isObject(parsed.value) ? (parsed.value as unknown as StoredPost) : undefined
}

/** The text of its file; `stored`: its body, as the codec gave it. */
function fileText({ id, atMs }: StoredPost, stored: string): string {
  const post: StoredPost = isEncoded(stored)
    ? { id, sealed: stored, atMs }
    : { id, body: JSON.parse(stored) as JsonValue, atMs }
  return JSON.stringify(post)
}

function storedText({ sealed, body }: StoredPost): string {
  return sealed ?? JSON.stringify(body)
}

let lastMs = 0

/** The time with fractions of a ms, later each time. */
function nowMs(): number {
  lastMs = Math.max(performance.timeOrigin + performance.now(), lastMs + 0.001)
  return lastMs
}
