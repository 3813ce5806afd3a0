import { AsyncLocalStorage } from 'node:async_hooks'

/** The text files of a folder as another program has them, such as an editor with changes that are not saved. */
export interface TextFiles {
  /** The folder: absolute, links resolved. Files elsewhere are those of the disk. */
  readonly root: string
  /** Absent: files are read from the disk. Null: the program has no such file. */
  readonly read?: ((path: string, signal: AbortSignal) => Promise<string | null>) | undefined
  /** Absent: files are written to the disk. Creates the file if there is none. */
  readonly write?: ((path: string, text: string, signal: AbortSignal) => Promise<void>) | undefined
}

/** Created when it is first needed: there is none in browsers. */
let current: AsyncLocalStorage<TextFiles | null> | undefined

/** Does some work whose text files are those of another program. Null: those of the disk, whatever the caller's are. */
export function withTextFiles<T>(files: TextFiles | null, work: () => T): T {
  current ??= new AsyncLocalStorage()
  return current.run(files, work)
}

/** Null: text files are those of the disk. */
export function textFiles(): TextFiles | null {
  return current?.getStore() ?? null
}
