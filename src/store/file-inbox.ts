import { closeSync, fsyncSync, linkSync, openSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { unlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Post } from '#core/log/log.js'
import { isObject, parseJson } from '#util/json.js'
import { fileNameOf } from './file-paths.js'
import { makeFolder, namesIn } from './folder.js'

interface DatedPost extends Post {
  /** When it was posted, in ms with fractions: the order of the inbox. */
  readonly atMs: number
}

/** The posts to one log: a file for each, named after its id. The file of a post that has left the inbox is empty. */
export class FileInbox {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** `sync`: waits for the disk. */
  post({ id, body }: Post, sync: boolean): void {
    makeFolder(this.#folder)
    const written = join(this.#folder, `new-${globalThis.crypto.randomUUID()}`)
    const fd = openSync(written, 'wx', 0o600)
    try {
      const post: DatedPost = { id, body, atMs: nowMs() }
      writeSync(fd, JSON.stringify(post))
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
    // Nearly always there is none, and the owner of a thread looks often.
    if (statSync(this.#folder, { throwIfNoEntry: false }) === undefined) return []
    const names = (await namesIn(this.#folder)).filter((name) => name.endsWith('.json'))
    const posts = names.flatMap((name) => postIn(readFileSync(join(this.#folder, name), 'utf8')) ?? [])
    return posts.sort((left, right) => left.atMs - right.atMs).map(({ id, body }) => ({ id, body }))
  }

  empty(ids: readonly string[]): void {
    for (const id of ids) truncateSync(this.#pathOf(id))
  }

  #pathOf(id: string): string {
    return join(this.#folder, `${fileNameOf(id)}.json`)
  }
}

function postIn(text: string): DatedPost | undefined {
  const parsed = parseJson(text)
  return parsed.ok && isObject(parsed.value) ? (parsed.value as unknown as DatedPost) : undefined
}

let lastMs = 0

/** The time with fractions of a ms, later each time. */
function nowMs(): number {
  lastMs = Math.max(performance.timeOrigin + performance.now(), lastMs + 0.001)
  return lastMs
}
