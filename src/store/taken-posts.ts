import type { LogRef } from '../run/log/ref.js'
import { keyOf } from '../run/log/ref.js'

interface Taken {
  readonly owner: string
  /** They leave the inbox with the owner's next event. */
  readonly leaving: Set<string>
}

/**
 * Posts that owners have taken here and that are still in their inboxes. If the process of the owner ends before they have
 * left the inbox, the next owner takes them again.
 */
export class TakenPosts {
  readonly #taken = new Map<string, Taken>()

  /** The posts that `owner` has not taken yet. They count as taken from now on, unless they are kept. */
  take<Post extends { readonly id: string }>(
    ref: LogRef,
    { owner, keep }: { readonly owner: string; readonly keep: boolean },
    posts: readonly Post[],
  ): readonly Post[] {
    const known = this.#taken.get(keyOf(ref))
    const leaving = known?.owner === owner ? known.leaving : new Set<string>()
    const fresh = posts.filter(({ id }) => !leaving.has(id))
    if (keep || fresh.length === 0) return fresh
    for (const { id } of fresh) leaving.add(id)
    this.#taken.set(keyOf(ref), { owner, leaving })
    return fresh
  }

  /** The ids of the posts that leave the inbox with an event of `owner` which names some. */
  of(ref: LogRef, owner: string | undefined, named: readonly string[] = []): readonly string[] {
    if (this.#taken.size === 0) return named
    const taken = this.#taken.get(keyOf(ref))
    return taken !== undefined && taken.owner === owner ? [...taken.leaving, ...named] : named
  }

  /** These posts have left the inbox. */
  forget(ref: LogRef, ids: readonly string[]): void {
    const taken = this.#taken.get(keyOf(ref))
    if (taken === undefined) return
    for (const id of ids) taken.leaving.delete(id)
    if (taken.leaving.size === 0) this.#taken.delete(keyOf(ref))
  }
}
