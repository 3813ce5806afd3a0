import { having, matching, secret, string } from '#util/shape.js'
import type { PartialFields } from '#util/shape.js'
import { invalidOptions } from '#contracts/parse.js'

/** The methods of a pool of the package `pg` that are used here. */
export interface PostgresPool {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: unknown[]; readonly rowCount: number | null }>
}

/** Where the tables are. */
export interface PostgresPlace {
  readonly connectionString?: string | undefined
  readonly pool?: PostgresPool | undefined
  readonly schema?: string | undefined
}

export const POSTGRES_PLACE: PartialFields<PostgresPlace> = {
  connectionString: secret(string),
  pool: having('a pool of `pg`', 'query'),
  schema: matching(/^[a-z_][a-z0-9_]{0,62}$/, 'a name of small letters, digits and `_`'),
}

/** Throws `invalid_options` unless there is one of `connectionString` and `pool`. `name` names the option. */
export function checkPlace({ connectionString, pool }: PostgresPlace, name: string): void {
  if ((connectionString === undefined) !== (pool === undefined)) return
  throw invalidOptions(`Expected ${name} to be given one of \`connectionString\` and \`pool\`.`)
}
