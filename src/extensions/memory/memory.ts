import { resolve } from 'node:path'
import type { Extension } from '#core/extension/extension.js'
import type { LogStore } from '#core/log/log.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { parse } from '#contracts/parse.js'
import { checkPlace, POSTGRES_PLACE } from '#store/postgres-pool.js'
import type { PostgresPlace } from '#store/postgres-pool.js'
import { boolean, either, filledString, functionOf, having, object, oneOf, optional, partial } from '#util/shape.js'
import { Embedder } from './embedder.js'
import type { Embed } from './embedder.js'
import { erase } from './erase.js'
import type { Erased } from './erase.js'
import type { MemoryIndex } from './index-port.js'
import { PostgresIndex } from './postgres/postgres-index.js'
import { SqliteIndex } from './sqlite/sqlite-index.js'
import { Synchroniser } from './synchroniser.js'
import { memoryTools } from './tools.js'
import type { MemoryScope } from './tools.js'

export interface MemoryOptions {
  /** The log of the harness or the sessions: the conversations in it are the memory. */
  readonly log: LogStore
  /**
   * The place of the index, which may be deleted at any time and which several processes can share: the path of a SQLite file, or a
   * schema in PostgreSQL. Default: in memory, and made again by each process at its first search.
   */
  readonly index?: string | PostgresPlace | undefined
  /** The furthest scope that a search may have. `all` shows everybody's conversations to everybody. Default `resource`. */
  readonly scope?: MemoryScope | undefined
  /** Results of tools are found too, except those of failed calls. Default false. */
  readonly results?: boolean | undefined
  /**
   * Makes vectors of texts: `recall_memory` then finds texts of a similar meaning too. Above 50,000 texts it needs the package `sqlite-vec`, or in
   * PostgreSQL always the extension `vector` (pgvector). If it fails, full text is searched alone. Default: full text only.
   */
  readonly embed?: Embed | undefined
  /** `remember` also accepts files of the workspace: text, HTML, PDF and DOCX, with the packages that `read` needs for them. Default false. */
  readonly documents?: boolean | undefined
  /** Removes secrets from a text before it is indexed or remembered. Default: nothing is removed. */
  readonly redact?: ((text: string) => string) | undefined
}

/** A memory, for `use` of a harness. */
export interface Memory extends Extension {
  /** Empties the index, reads all logs again and embeds their texts. */
  reindex(): Promise<void>
  /**
   * Removes everything of an owner: conversations with their forks, runs (also by `metadata.resourceId`), facts, rows of the index and
   * saved outputs; the files of SQLite are written anew. Waits up to 10 s for logs that a process owns.
   * @throws HarnessError `run_owned` if a log is still owned, or another owner's run continues it: everything else has been removed
   * from the log by then, and `erase` can be called again. `store_failure` if another process reads the files of SQLite.
   */
  erase(owner: { readonly resourceId: string }): Promise<Erased>
  /** Closes the index, which opens again at the next use. */
  readonly close: () => Promise<void>
}

const OPTIONS = object<MemoryOptions>({
  log: having<LogStore>('a log store, such as `sqliteLog`', 'append', 'read', 'claim', 'inspect', 'list'),
  index: optional(either(filledString, partial<PostgresPlace>(POSTGRES_PLACE))),
  scope: optional(oneOf('thread', 'resource', 'all')),
  results: optional(boolean),
  documents: optional(boolean),
  embed: optional(functionOf<Embed>()),
  redact: optional(functionOf<(text: string) => string>()),
})

const OWNER = object<{ readonly resourceId: string }>({ resourceId: filledString })

/**
 * The memory of the conversations in a log: the tools `remember`, `recall_memory` and `forget`, over an index that is made from the
 * logs. The owner of a conversation is the `resourceId` of its session, or of the metadata of its runs: the model cannot choose
 * another. Needs `node:sqlite`, or the package `@photostructure/sqlite` if Node has none; for an index in PostgreSQL, the package `pg`
 * unless a pool is passed.
 * @throws HarnessError `invalid_options`. The first use of a tool fails with `missing_dependency`, or if the index is a file
 * or a schema of another program.
 */
export function createMemory(options: MemoryOptions): Memory {
  return new IndexedMemory(parse(OPTIONS, options, '`createMemory`'))
}

/** Only the members of an extension are its own properties: no others are allowed there. */
class IndexedMemory implements Memory {
  readonly name = 'memory'
  readonly tools: readonly ToolSpec[]
  readonly #log: LogStore
  readonly #index: MemoryIndex
  readonly #reading: Synchroniser
  readonly #embedder: Embedder | null

  constructor(options: MemoryOptions) {
    const { log, index: place = ':memory:', embed, redact = same } = options
    const { scope = 'resource', results = false, documents = false } = options
    const index = indexAt(place, embed !== undefined)
    const embedder = embed === undefined ? null : new Embedder(index, embed)
    const reading = new Synchroniser({ log, index, withResults: results, redact })
    this.tools = memoryTools({ log, index, reading, embedder, scope, documents, redact })
    this.#log = log
    this.#index = index
    this.#reading = reading
    this.#embedder = embedder
  }

  async reindex(): Promise<void> {
    await this.#index.clear()
    await this.#reading.sync('all')
    await this.#embedder?.complete('all')
  }

  async erase(owner: { readonly resourceId: string }): Promise<Erased> {
    const { resourceId } = parse(OWNER, owner, '`erase`')
    return erase(this.#log, this.#index, resourceId)
  }

  readonly close = (): Promise<void> => this.#index.close()
}

function indexAt(place: string | PostgresPlace, withVectors: boolean): MemoryIndex {
  if (typeof place === 'string') return new SqliteIndex(place === ':memory:' ? place : resolve(place))
  checkPlace(place, '`index` of `createMemory`')
  return new PostgresIndex(place, withVectors)
}

function same(text: string): string {
  return text
}
