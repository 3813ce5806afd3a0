import { Embedder } from './embedder.js'
import type { Embed } from './embedder.js'
import type { MemoryIndex } from './memory-index.js'
import { PostgresIndex } from './postgres/postgres-index.js'
import { SqliteIndex } from './sqlite/sqlite-index.js'
import { Synchroniser, metadataResource } from './synchroniser.js'
import { searchMemory } from './search-memory.js'
import type { MemoryFound, MemorySearch } from './search-memory.js'
import { memoryTools } from './tools.js'
import type { MemoryScope } from './tools.js'
import { HarnessError } from '#contracts/errors.js'
import { parse } from '#contracts/parse.js'
import type { Extension } from '#core/extension/extension.js'
import type { LogStore } from '#core/log/log.js'
import type { LogRef } from '#core/log/ref.js'
import type { DurableEvent } from '#core/state/events.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { checkPlace, POSTGRES_PLACE } from '#store/postgres-pool.js'
import type { PostgresPlace } from '#store/postgres-pool.js'
import { isObject, jsonObjectIn } from '#util/json.js'
import {
  boolean,
  either,
  filledString,
  functionAtOnce,
  functionOf,
  having,
  integer,
  nullable,
  object,
  oneOf,
  optional,
  partial,
} from '#util/validate.js'
import { resolve } from 'node:path'

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
  /** The texts of an owner that fit a query best, the best first: for hosts. `sources` says whose words they are. */
  search(query: string, options: MemorySearch): Promise<readonly MemoryFound[]>
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
  redact: optional(functionAtOnce<(text: string) => string>('redact')),
})

const SEARCH = object<MemorySearch>({ resourceId: nullable(filledString), k: optional(integer(1)) })
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
    const { log, index: place = ':memory:', embed, redact = sameText } = options
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

  async search(query: string, options: MemorySearch): Promise<readonly MemoryFound[]> {
    const { resourceId, k } = parse(SEARCH, options, 'the options of `search`')
    const ports = { index: this.#index, reading: this.#reading, embedder: this.#embedder }
    return searchMemory(ports, parse(filledString, query, 'the query of `search`'), { resourceId, k })
  }

  async erase(owner: { readonly resourceId: string }): Promise<Erased> {
    const { resourceId } = parse(OWNER, owner, '`erase`')
    return eraseResource(this.#log, this.#index, resourceId)
  }

  readonly close = (): Promise<void> => this.#index.close()
}

function indexAt(place: string | PostgresPlace, withVectors: boolean): MemoryIndex {
  if (typeof place === 'string') return new SqliteIndex(place === ':memory:' ? place : resolve(place))
  checkPlace(place, '`index` of `createMemory`')
  return new PostgresIndex(place, withVectors)
}

function sameText(text: string): string {
  return text
}

/** What was erased of an owner. */
export interface Erased {
  /** Conversations, the log of the memory included. */
  readonly threads: number
  /** Runs at the top; their child runs are erased with them. */
  readonly runs: number
  /** Files with outputs of tools that were too long for the model. */
  readonly files: number
}

/** How long logs that a process owns are waited for, and how often they are looked at, in ms. An idle conversation is released after 5 s. */
const PATIENCE_MS = 10_000
const LOOK_MS = 100

/** Removes everything of an owner from a log, from the files that its runs saved, and from the index. */
async function eraseResource(log: LogStore, index: MemoryIndex, resourceId: string): Promise<Erased> {
  const refs = await resourceLogs(log, resourceId)
  let files = 0
  for (const ref of refs) if (ref.kind === 'run') files += await removeFiles(log, ref.id)
  await removeLogs(log, refs)
  await log.scrub?.()
  for (const { kind, id } of refs) await index.drop(`${kind}:${id}`)
  await index.erase(resourceId)
  const runs = refs.filter(({ kind }) => kind === 'run').length
  return { threads: refs.length - runs, runs, files }
}

/** The logs of an owner, and the runs without an owner that continue its conversations. */
async function resourceLogs(log: LogStore, resourceId: string): Promise<readonly LogRef[]> {
  const refs = new Map<string, LogRef>()
  const addLog = (ref: LogRef): unknown => refs.set(`${ref.kind}:${ref.id}`, ref)
  for await (const { threadId } of log.list({ kind: 'thread', resourceId })) addLog({ kind: 'thread', id: threadId })
  for await (const { runId } of log.list({ parentRunId: null, resourceId })) addLog({ kind: 'run', id: runId })
  // Entries that are added during the iteration are visited too.
  for (const ref of refs.values()) {
    for (const { kind, id } of (await log.referrers?.(ref)) ?? []) {
      const run = kind === 'run' ? await log.inspect({ kind, id }) : null
      if (run?.parent === null && metadataResource(run.metadata) === null) addLog({ kind, id })
    }
  }
  return [...refs.values()]
}

async function removeLogs(log: LogStore, refs: readonly LogRef[]): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; ;) {
    if (refs.length > 0) await log.prune({ only: refs })
    const left: LogRef[] = []
    for (const ref of refs) if ((await log.inspect(ref)) !== null) left.push(ref)
    const [first] = left
    if (first === undefined) return
    await checkIsUnused(log, left, refs)
    if (Date.now() > end)
      throw incompleteError(left, `a process owns ${first.kind} \`${first.id}\`. Close its sessions and try again.`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

/** Waiting does not help if a run of another owner continues one of these. */
async function checkIsUnused(log: LogStore, left: readonly LogRef[], refs: readonly LogRef[]): Promise<void> {
  const erased = new Set(refs.map(({ kind, id }) => `${kind}:${id}`))
  for (const ref of left) {
    const other = (await log.referrers?.(ref))?.find(({ kind, id }) => !erased.has(`${kind}:${id}`))
    if (other === undefined) continue
    throw incompleteError(
      left,
      `${ref.kind} \`${ref.id}\` is continued by ${other.kind} \`${other.id}\` of another owner.`,
    )
  }
}

function incompleteError(left: readonly LogRef[], reason: string): HarnessError {
  return new HarnessError('run_owned', `Logs that could not be erased: ${left.length}. For example, ${reason}`)
}

/** Removes the outputs that a run and its child runs saved. */
async function removeFiles(log: LogStore, runId: string): Promise<number> {
  let removed = 0
  for await (const event of log.read({ kind: 'run', id: runId })) {
    const path = savedHandle(event)
    if (path !== null && (await removeSaved(path))) removed += 1
  }
  for await (const child of log.list({ parentRunId: runId })) removed += await removeFiles(log, child.runId)
  return removed
}

/** The file in which an output was saved. */
function savedHandle(event: DurableEvent): string | null {
  if (event.kind !== 'tool_call_completed') return null
  const { metadata } = jsonObjectIn(event.output)
  const path = isObject(metadata) ? metadata['saved_to'] : undefined
  return typeof path === 'string' ? path : null
}

async function removeSaved(path: string): Promise<boolean> {
  const { removeSavedOutput } = await import('#toolbox/workspace/spill.js')
  return removeSavedOutput(path)
}
