import type { Workspace } from '../workspace/workspace.js'
import type { FileCount } from './engine.js'

export interface CollectorOptions<File> {
  readonly maxFiles: number
  /** Characters of a file that are kept; default none. */
  readonly charsOf?: (file: File) => number
}

/** A file that may be shown. */
export type CollectedFile<File> = File & {
  /** The path for the model. */
  readonly shown: string
}

/** Characters of all files that are kept. */
const MAX_KEPT_CHARS = 16_000_000

/** Collects files in any order, and keeps the first ones by name: memory is bounded. */
export class ResultCollector<File extends FileCount = FileCount> {
  readonly #workspace: Workspace
  readonly #maxFiles: number
  readonly #charsOf: (file: File) => number
  #kept: CollectedFile<File>[] = []
  #keptChars = 0
  /** The first file by name that was dropped. */
  #firstDropped: string | undefined
  #files = 0
  #matches = 0

  constructor(workspace: Workspace, { maxFiles, charsOf = () => 0 }: CollectorOptions<File>) {
    this.#workspace = workspace
    this.#maxFiles = maxFiles
    this.#charsOf = charsOf
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

  add(file: File): void {
    this.#files++
    this.#matches += file.matches
    if (!this.wants(file.path)) return
    this.#kept.push({ ...file, shown: this.#workspace.display(file.path) })
    this.#keptChars += this.#charsOf(file)
    if (this.#kept.length >= this.#maxFiles * 2 || this.#keptChars > MAX_KEPT_CHARS * 2) this.#trim()
  }

  /** The first files by name. */
  firstFiles(): readonly CollectedFile<File>[] {
    this.#trim()
    return this.#kept
  }

  #trim(): void {
    this.#kept.sort((left, right) => (left.shown < right.shown ? -1 : 1))
    let chars = 0
    const cut = this.#kept.findIndex((file, index) => {
      chars += this.#charsOf(file)
      return index >= this.#maxFiles || (index > 0 && chars > MAX_KEPT_CHARS)
    })
    if (cut === -1) return
    this.#firstDropped = this.#kept[cut]?.shown
    this.#kept.length = cut
    this.#keptChars = this.#kept.reduce((sum, file) => sum + this.#charsOf(file), 0)
  }
}
