import { lstatSync, watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { basename, dirname } from 'node:path'

const POLL_MS = 50

/**
 * Notices when a file or folder is replaced, as editors do when they save. Then it is uncovered: what is mounted at a path goes
 * away with the file that was there.
 */
export class ReplacedFiles {
  readonly #controller = new AbortController()
  readonly #identities = new Map<string, string | undefined>()
  readonly #watchers: FSWatcher[] = []
  readonly #timers: NodeJS.Timeout[] = []

  constructor(paths: readonly string[]) {
    const folders = new Map<string, string[]>()
    for (const path of paths) {
      this.#identities.set(path, identityAt(path))
      folders.set(dirname(path), [...(folders.get(dirname(path)) ?? []), path])
    }
    for (const [folder, inside] of folders) this.#watch(folder, inside)
  }

  /** Aborted with the path as its reason. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.close()
    for (const timer of this.#timers) clearInterval(timer)
  }

  #watch(folder: string, paths: readonly string[]): void {
    const names = new Map(paths.map((path) => [basename(path), path]))
    const checkAll = (): void => paths.forEach((path) => this.#check(path))
    try {
      const watcher = watch(folder, { persistent: false }, (_event, name) => {
        const path = name === null ? undefined : names.get(name)
        if (name === null) checkAll()
        else if (path !== undefined) this.#check(path)
      })
      watcher.on('error', () => undefined)
      this.#watchers.push(watcher)
    } catch {
      // The system has no watches left.
      this.#timers.push(setInterval(checkAll, POLL_MS).unref())
    }
  }

  #check(path: string): void {
    if (identityAt(path) !== this.#identities.get(path)) this.#controller.abort(path)
  }
}

function identityAt(path: string): string | undefined {
  try {
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return stats === undefined ? undefined : `${stats.dev}:${stats.ino}`
  } catch {
    return undefined
  }
}
