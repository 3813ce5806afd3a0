import type { PostgresPool } from '../../contracts/postgres-place.js'
import { chosenWords, WordCounts } from '../chosen-words.js'
import type { FoundRow, Row, Scope } from '../index-port.js'
import { indexedWords } from '../words.js'

const NO_OWNER = ''
/** The size of a count that says enough about a word. */
const MOST_COUNTED = 1_000_000

interface Owner {
  readonly number: number
  readonly rows: number
}

interface RawRow extends Omit<Row, 'threadId'> {
  readonly id: string
  readonly thread: string
  readonly resource: string
}

/** Reads the rows of an index. */
export class PostgresSearch {
  readonly #pool: PostgresPool
  readonly #schema: string
  readonly #counts = new WordCounts()

  constructor(pool: PostgresPool, schema: string) {
    this.#pool = pool
    this.#schema = schema
  }

  /** Undefined: it has no rows. Null: all owners. */
  async ownerIn(scope: Scope): Promise<Owner | null | undefined> {
    if (scope === 'all') return null
    const sql = `select number, rows from ${this.#table('owners')} where resource = $1`
    return (await this.#rows<Owner>(sql, [scope.resourceId ?? NO_OWNER]))[0]
  }

  /** Rows with some of the words: those with rare words and few others first. */
  async some(words: readonly string[], scope: Scope, limit: number): Promise<readonly FoundRow[]> {
    const owner = await this.ownerIn(scope)
    if (owner === undefined || words.length === 0) return []
    const rows = owner?.rows ?? (await this.#total())
    const counted = await this.#countsOf(words, owner, rows)
    const chosen = chosenWords(counted, rows)
    if (chosen.length === 0) return []
    const place = new Values()
    const query = (word: string): string =>
      `plainto_tsquery('"${this.#schema}".stems', ${place.of(indexedWords(word))})`
    const queries = chosen.map(({ word, weight }) => ({ sql: query(word), weight: place.of(weight) }))
    const score = queries.map(({ sql, weight }) => `${weight}::real * ts_rank(e.words, ${sql}, 1)`).join(' + ')
    const condition = [`e.words @@ (${queries.map(({ sql }) => sql).join(' || ')})`, ...conditions(scope, owner, place)]
    const best = `select e.id, ${score} as score from ${this.#table('entries')} e where ${condition.join(' and ')}
      order by score desc, e.id desc limit ${place.of(limit)}`
    return this.#found(`join (${best}) best on best.id = e.id order by best.score desc, e.id desc`, place)
  }

  /** Rows that have all of the words. */
  async all(words: readonly string[], scope: Scope, limit: number): Promise<readonly FoundRow[]> {
    const owner = await this.ownerIn(scope)
    if (owner === undefined || words.length === 0) return []
    const place = new Values()
    const query = `plainto_tsquery('"${this.#schema}".stems', ${place.of(words.map(indexedWords).join(' '))})`
    const condition = [`e.words @@ ${query}`, ...conditions(scope, owner, place)]
    return this.#found(`where ${condition.join(' and ')} order by e.id desc limit ${place.of(limit)}`, place)
  }

  async text(handle: string, scope: Scope): Promise<readonly FoundRow[]> {
    const owner = await this.ownerIn(scope)
    if (owner === undefined) return []
    const place = new Values()
    const condition = [`e.handle = ${place.of(handle)}`, ...conditions(scope, owner, place)]
    return this.#found(`where ${condition.join(' and ')} order by e.part`, place)
  }

  async withoutVector(scope: Scope, limit: number): Promise<readonly FoundRow[]> {
    const owner = await this.ownerIn(scope)
    if (owner === undefined) return []
    const place = new Values()
    const condition = ['not e.has_vector', ...conditions(scope, owner, place)]
    return this.#found(`where ${condition.join(' and ')} order by e.owner, e.id limit ${place.of(limit)}`, place)
  }

  /** Rows in the order of their ids. */
  async rows(ids: readonly number[]): Promise<readonly FoundRow[]> {
    const place = new Values()
    const given = `unnest(${place.of(ids)}::bigint[]) with ordinality as given (id, place)`
    return this.#found(`join ${given} on given.id = e.id order by given.place`, place)
  }

  forgetCounts(): void {
    this.#counts.clear()
  }

  /** The number of rows that have each word, as far as it is not known. */
  async #countsOf(words: readonly string[], owner: Owner | null, rows: number): Promise<ReadonlyMap<string, number>> {
    const name = owner === null ? 'all' : String(owner.number)
    return this.#counts.of(words, { name, rows }, async (unknown) => {
      const place = new Values()
      const given = `unnest(${place.of(unknown)}::text[], ${place.of(unknown.map(indexedWords))}::text[]) as given (word, words)`
      const isOwner = owner === null ? '' : `and e.owner = ${place.of(owner.number)}`
      const counted = `select from ${this.#table('entries')} e
        where e.words @@ plainto_tsquery('"${this.#schema}".stems', given.words) ${isOwner} limit ${MOST_COUNTED}`
      const sql = `select given.word, (select count(*)::integer from (${counted}) counted) as count from ${given}`
      const found = await this.#rows<{ word: string; count: number }>(sql, place.values)
      return new Map(found.map(({ word, count }) => [word, count]))
    })
  }

  async #total(): Promise<number> {
    const sql = `select coalesce(sum(rows), 0)::integer as total from ${this.#table('owners')}`
    return (await this.#rows<{ total: number }>(sql, []))[0]?.total ?? 0
  }

  async #found(rest: string, { values }: Values): Promise<readonly FoundRow[]> {
    const sql = `
      select e.id::text as id, e.thread, e.handle, e.part, e.kind, e.at, e.sources, e.text, o.resource
      from ${this.#table('entries')} e join ${this.#table('owners')} o on o.number = e.owner ${rest}`
    return (await this.#rows<RawRow>(sql, values)).map(({ id, thread: threadId, resource, ...row }) => ({
      ...row,
      id: Number(id),
      threadId,
      resourceId: resource === NO_OWNER ? null : resource,
    }))
  }

  #table(name: string): string {
    return `"${this.#schema}".${name}`
  }

  async #rows<T>(sql: string, values: readonly unknown[]): Promise<T[]> {
    return (await this.#pool.query(sql, [...values])).rows as T[]
  }
}

/** The values of a statement, by their places. */
class Values {
  readonly values: unknown[] = []

  of(value: unknown): string {
    return `$${this.values.push(value)}`
  }
}

/** The rows `e` of an owner and a thread. */
function conditions(scope: Scope, owner: Owner | null, place: Values): readonly string[] {
  return [
    ...(owner === null ? [] : [`e.owner = ${place.of(owner.number)}`]),
    ...(scope === 'all' || scope.threadId === null ? [] : [`e.thread = ${place.of(scope.threadId)}`]),
  ]
}
