import { realpathSync, statSync } from 'node:fs'

/** The files of an open database, by what had their names when it was opened. */
export class DatabaseFiles {
  readonly #paths: readonly string[]
  readonly #opened: readonly string[]

  constructor(path: string) {
    const real = realpathSync(path)
    this.#paths = [path, `${real}-wal`, `${real}-shm`]
    this.#opened = this.#present()
  }

  /** One of them was removed, moved or replaced. */
  get haveMoved(): boolean {
    return this.#present().some((file, index) => file !== this.#opened[index])
  }

  /** The file itself was, not only its write-ahead log. */
  get isMoved(): boolean {
    return this.#present()[0] !== this.#opened[0]
  }

  #present(): readonly string[] {
    return this.#paths.map((path) => {
      const stats = statSync(path, { throwIfNoEntry: false })
      return stats === undefined ? '' : `${stats.dev}:${stats.ino}`
    })
  }
}
