import type { Workspace } from '../workspace/workspace.js'
import type { FileHits } from './hits.js'

/** Characters of all lines that are kept. */
const MAX_KEPT_CHARS = 16_000_000

/** A file that is shown. */
export type ShownFile = FileHits & { readonly shown: string }

/** Collects files in any order, and keeps the first ones by name: memory is bounded. */
export class Shelf {
  readonly #workspace: Workspace
  readonly #maxFiles: number
  #kept: ShownFile[] = []
  #keptChars = 0
  /** The first file by name that was dropped. */
  #firstDropped: string | undefined
  #files = 0
  #matches = 0

  constructor(workspace: Workspace, maxFiles: number) {
    this.#workspace = workspace
    this.#maxFiles = maxFiles
  }

  get totalFiles(): number {
    return this.#files
  }

  get totalMatches(): number {
    return this.#matches
  }

  /** True if a file may still be shown; of the others only the counts matter. */
  wants(path: string): boolean {
    return this.#firstDropped === undefined || this.#workspace.display(path) < this.#firstDropped
  }

  add(hits: FileHits): void {
    this.#files++
    this.#matches += hits.matches
    if (!this.wants(hits.path)) return
    this.#kept.push({ ...hits, shown: this.#workspace.display(hits.path) })
    this.#keptChars += charsOf(hits)
    if (this.#kept.length >= this.#maxFiles * 2 || this.#keptChars > MAX_KEPT_CHARS * 2) this.#trim()
  }

  /** The first files by name. */
  shown(): readonly ShownFile[] {
    this.#trim()
    return this.#kept
  }

  #trim(): void {
    this.#kept.sort((left, right) => (left.shown < right.shown ? -1 : 1))
    let chars = 0
    const cut = this.#kept.findIndex((hits, index) => {
      chars += charsOf(hits)
      return index >= this.#maxFiles || (index > 0 && chars > MAX_KEPT_CHARS)
    })
    if (cut === -1) return
    this.#firstDropped = this.#kept[cut]?.shown
    this.#kept.length = cut
    this.#keptChars = this.#kept.reduce((sum, hits) => sum + charsOf(hits), 0)
  }
}

function charsOf({ lines }: FileHits): number {
  return lines.reduce((sum, { text }) => sum + text.length, 0)
}
