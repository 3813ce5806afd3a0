import type { ContentSource } from '#contracts/entry.js'
import type { MemoryKind } from './run-reader.js'

/** A piece of a text, as the index stores it. */
export interface MemoryRow {
  readonly handle: string
  /** The place of the piece in its text, from 0. */
  readonly part: number
  readonly kind: MemoryKind
  /** The conversation that it is from. */
  readonly threadId: string
  readonly at: string
  readonly text: string
  readonly sources: readonly ContentSource[]
}

/** What the index knows of a log. */
export interface LogState {
  /** The last event that has been read. */
  readonly seq: number
  /** The time of the first event: another log of the same name has another one. */
  readonly began: string
  readonly threadId: string
  /** Of everything that the conversation had read by then. */
  readonly sources: readonly ContentSource[]
}

/** New rows of a log. */
export interface LogUpdate {
  /** The key of the log (`run:…`). */
  readonly log: string
  readonly resourceId: string | null
  /** The last event that had been read before; 0: none. */
  readonly after: number
  readonly state: LogState
  readonly rows: readonly MemoryRow[]
  /** Handles of texts of this owner that are no longer found. */
  readonly forgotten: readonly string[]
}

/** The rows that a search may find: all, or those of an owner, of one conversation if it is named. */
export type Scope = 'all' | { readonly resourceId: string | null; readonly threadId: string | null }

/** A row that was found. */
export interface FoundRow extends MemoryRow {
  readonly id: number
  readonly resourceId: string | null
}

/** The vector of a row. */
export interface RowVector {
  readonly id: number
  readonly vector: Float32Array
}

/** A number for each erasure: rows that were read before one are not stored after it. */
export type Generation = number

/** The index of a memory: rows that can be made again from the logs at any time. */
export interface MemoryIndex {
  /** Called before it is brought up to date: a file that is gone is made again, empty. */
  prepare(): Promise<Generation>
  state(log: string): Promise<LogState | null>
  /** What it knows of the logs of an owner, or of all; by the keys of the logs. */
  states(scope: Scope): Promise<ReadonlyMap<string, Pick<LogState, 'seq' | 'began'>>>
  /** False, and nothing is stored, if another process has read further in the meantime, or rows were erased. */
  put(update: LogUpdate, generation: Generation): Promise<boolean>
  /** Removes everything of a log. */
  drop(log: string): Promise<void>
  /** Rows that have some of the words, the best first. */
  search(words: readonly string[], scope: Scope, limit: number): Promise<readonly FoundRow[]>
  /** Rows that have all of the words. */
  having(words: readonly string[], scope: Scope, limit: number): Promise<readonly FoundRow[]>
  /** Rows that have no vector yet. */
  withoutVector(scope: Scope, limit: number): Promise<readonly Pick<FoundRow, 'id' | 'text'>[]>
  /** Stores vectors of rows, as far as these are still there. Rejects with `invalid_options` if others have another length. */
  putVectors(vectors: readonly RowVector[]): Promise<void>
  /** Rows with the nearest vectors, the nearest first. */
  near(vector: Float32Array, scope: Scope, limit: number): Promise<readonly FoundRow[]>
  /** The pieces of a text, in their order. */
  text(handle: string, scope: Scope): Promise<readonly FoundRow[]>
  /** Empties the index: the logs are read again. */
  clear(): Promise<void>
  /** Removes everything of an owner, and its traces in the files. */
  erase(resourceId: string): Promise<void>
  close(): Promise<void>
}
