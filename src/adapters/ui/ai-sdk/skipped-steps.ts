import type { AnyRunEvent, Projection } from '../projection.js'
import type { UiChunk } from './chunk.js'

/** A replay of the last steps of a run: the steps before them are left out, and a data part says so. */
export class SkippedSteps implements Projection<UiChunk> {
  readonly #whole: Projection<UiChunk>
  readonly #data: { readonly steps: number; readonly url?: string | undefined }
  /** Steps that have begun. */
  #steps = 0
  #hasSkippedPart = false
  /** Ids of calls and approvals that the client does not have. */
  readonly #skipped = new Set<string>()

  /** `steps`: how many are left out. `url`: where the whole conversation is. */
  constructor(whole: Projection<UiChunk>, data: { readonly steps: number; readonly url?: string | undefined }) {
    this.#whole = whole
    this.#data = data
  }

  next(event: AnyRunEvent): readonly UiChunk[] {
    return this.#of(this.#whole.next(event))
  }

  end(): readonly UiChunk[] {
    return this.#of(this.#whole.end())
  }

  join(earlier: UiChunk, later: UiChunk): UiChunk | null {
    return this.#whole.join(earlier, later)
  }

  #of(chunks: readonly UiChunk[]): readonly UiChunk[] {
    return chunks.flatMap((chunk): readonly UiChunk[] => {
      if (chunk.type === 'start-step') this.#steps += 1
      if (chunk.type === 'start') return [chunk, ...this.#skippedPart()]
      return this.#isShown(chunk) ? [chunk] : []
    })
  }

  #isShown(chunk: UiChunk): boolean {
    const ids = [
      ...('toolCallId' in chunk ? [chunk.toolCallId] : []),
      ...('approvalId' in chunk ? [chunk.approvalId] : []),
    ]
    if (this.#steps > this.#data.steps) return ids.every((id) => !this.#skipped.has(id))
    for (const id of ids) this.#skipped.add(id)
    return chunk.type === 'message-metadata'
  }

  #skippedPart(): readonly UiChunk[] {
    if (this.#hasSkippedPart) return []
    this.#hasSkippedPart = true
    const { steps, url } = this.#data
    return [{ type: 'data-skipped', id: 'skipped', data: { steps, ...(url !== undefined && { url }) } }]
  }
}
