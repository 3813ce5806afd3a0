import type { LogRef } from '../run/log/ref.js'
import { keyOf } from '../run/log/ref.js'

/**
 * Posts that owners have taken here and that are still in their inboxes. They leave the inbox when the owner stores an
 * event or releases its claim: if its process ends before that, the next owner takes them again.
 */
export class TakenPosts {
  readonly #taken = new Map<string, { readonly owner: string; readonly ids: Set<string> }>()

  /** The posts that `owner` has not taken yet; they count as taken from now on. */
  take<Post extends { readonly id: string }>(ref: LogRef, owner: string, posts: readonly Post[]): readonly Post[] {
    const known = this.#taken.get(keyOf(ref))
    const ids = known?.owner === owner ? known.ids : new Set<string>()
    const fresh = posts.filter(({ id }) => !ids.has(id))
    for (const { id } of fresh) ids.add(id)
    if (ids.size > 0) this.#taken.set(keyOf(ref), { owner, ids })
    return fresh
  }

  /** The ids of the posts that `owner` has taken, and that are to leave the inbox. */
  of(ref: LogRef, owner: string | undefined): readonly string[] {
    if (this.#taken.size === 0) return []
    const taken = this.#taken.get(keyOf(ref))
    return taken !== undefined && taken.owner === owner ? [...taken.ids] : []
  }

  /** These posts have left the inbox. */
  forget(ref: LogRef, ids: readonly string[]): void {
    const taken = this.#taken.get(keyOf(ref))
    for (const id of ids) taken?.ids.delete(id)
    if (taken?.ids.size === 0) this.#taken.delete(keyOf(ref))
  }
}
