import { HarnessError } from '#contracts/errors.js'
import type { LogKind, LogRef } from '#core/log/ref.js'
import { isObject, jsonObjectIn } from '#util/json.js'
import { HIDDEN_OWNER, placeOfDigest, placeOfEvent, placeOfPost } from './clear.js'
import type { LogCodec, RecordCodec, RecordPlace, Rewriting } from './log-codec.js'
import { StoreCodec } from './store-codec.js'

/** The rows that are written anew, of a log and of its events and posts. */
export interface RewrittenRow {
  readonly id: string
  readonly lastSeq: number
  readonly resourceId: string | null
  /** JSON, or what the codec made of it. */
  readonly digest: string | null
  /** Who has claimed it, if that claim has not expired and its process is not known to have ended. */
  readonly owner: string | null
}

export interface StoredEvent {
  readonly seq: number
  /** JSON, or what the codec made of it. */
  readonly event: string
}

export interface StoredPost {
  readonly id: string
  /** JSON, or what the codec made of it. */
  readonly body: string
}

/** A record in another form. */
export interface RenewedRecord<Key> {
  readonly key: Key
  readonly before: string
  readonly after: string
}

export type MaybePromise<T> = T | Promise<T>

/** Each change is made if the record is still there in its former form. */
export interface RewrittenTables {
  events(ref: LogRef, after: number, limit: number): MaybePromise<readonly StoredEvent[]>
  posts(ref: LogRef): MaybePromise<readonly StoredPost[]>
  /** The logs that have posts. */
  inboxes(): MaybePromise<readonly LogRef[]>
  changeEvents(ref: LogRef, changes: readonly RenewedRecord<number>[]): MaybePromise<void>
  changePosts(ref: LogRef, changes: readonly RenewedRecord<string>[]): MaybePromise<void>
  /** Changes the columns `resource_id` and `digest` if the log still has this last event. */
  changeRow(kind: LogKind, row: RewrittenRow): MaybePromise<void>
}

interface Database {
  readonly codec: StoreCodec
  readonly use: <T>(work: (tables: RewrittenTables) => MaybePromise<T>) => Promise<T>
  readonly rows: (kind: LogKind) => AsyncIterable<RewrittenRow>
}

const PAGE = 100

/** The codec of a log from now on, which reads what the former one wrote too. */
export async function renewedCodec(former: RecordCodec, cipher: LogCodec): Promise<StoreCodec> {
  const codec = former instanceof StoreCodec ? former : new StoreCodec(former)
  await codec.change(cipher)
  return codec
}

/** Writes the logs of a database that nobody owns anew in the form of the current codec. */
export async function rewriteTables(database: Database): Promise<Omit<Rewriting, 'erased'>> {
  const left: LogRef[] = []
  let rewritten = 0
  const count = async (ref: LogRef, rewriting: Promise<boolean>): Promise<void> => {
    const isRewritten = await rewriting.catch(unlessUnreadable)
    if (isRewritten === null) left.push(ref)
    else if (isRewritten) rewritten += 1
  }
  for (const kind of ['run', 'thread'] as const)
    for await (const row of database.rows(kind)) {
      const ref = { kind, id: row.id }
      if (row.owner === null) await count(ref, rewriteLog(database, ref, row))
      else left.push(ref)
    }
  const isLeft = new Set(left.map(({ kind, id }) => `${kind}:${id}`))
  for (const ref of await database.use((tables) => tables.inboxes()))
    if (!isLeft.has(`${ref.kind}:${ref.id}`)) await count(ref, rewritePosts(database, ref))
  return { rewritten, left }
}

function unlessUnreadable(error: unknown): null {
  if (error instanceof HarnessError && error.code === 'invalid_log') return null
  throw error
}

async function rewriteLog({ codec, use }: Database, ref: LogRef, row: RewrittenRow): Promise<boolean> {
  let isChanged = false
  let first: string | null = null
  for (let after = 0; ;) {
    const from = after
    const events = await use((tables) => tables.events(ref, from, PAGE))
    const changes = renewedRecords(
      codec,
      events.map(({ seq, event }) => [seq, event, placeOfEvent(ref, seq)]),
    )
    if (changes.length > 0) await use((tables) => tables.changeEvents(ref, changes))
    isChanged ||= changes.length > 0
    const [begin] = events
    if (after === 0 && begin !== undefined) first = codec.decode(begin.event, placeOfEvent(ref, begin.seq))
    after = events.at(-1)?.seq ?? after
    if (events.length < PAGE) break
  }
  const changedRow = renewedRow(codec, ref, { row, first })
  if (changedRow !== row) await use((tables) => tables.changeRow(ref.kind, changedRow))
  return isChanged || changedRow !== row
}

/** The row itself if it is in the form of the current codec. */
function renewedRow(
  codec: StoreCodec,
  ref: LogRef,
  { row, first }: { readonly row: RewrittenRow; readonly first: string | null },
): RewrittenRow {
  const place = placeOfDigest(ref, row.lastSeq)
  const digest = row.digest === null ? null : codec.renewed(row.digest, place)
  const summary = row.digest === null ? first : codec.decode(row.digest, place)
  const owner = ownerIn(summary) ?? (row.resourceId?.startsWith(HIDDEN_OWNER) === true ? null : row.resourceId)
  const resourceId = owner === null ? row.resourceId : codec.ownerText(owner)
  return digest === row.digest && resourceId === row.resourceId ? row : { ...row, digest, resourceId }
}

/** The owner in the digest of a log or in the first event of a run. */
function ownerIn(json: string | null): string | null {
  const { resourceId, metadata } = jsonObjectIn(json ?? '')
  const owner = resourceId ?? (isObject(metadata) ? metadata['resourceId'] : undefined)
  return typeof owner === 'string' ? owner : null
}

async function rewritePosts({ codec, use }: Database, ref: LogRef): Promise<boolean> {
  const posts = await use((tables) => tables.posts(ref))
  const changes = renewedRecords(
    codec,
    posts.map(({ id, body }) => [id, body, placeOfPost(ref, id)]),
  )
  if (changes.length > 0) await use((tables) => tables.changePosts(ref, changes))
  return changes.length > 0
}

function renewedRecords<Key>(
  codec: StoreCodec,
  records: readonly (readonly [Key, string, RecordPlace])[],
): RenewedRecord<Key>[] {
  return records.flatMap(([key, before, place]) => {
    const after = codec.renewed(before, place)
    return after === before ? [] : [{ key, before, after }]
  })
}
