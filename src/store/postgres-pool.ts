import { HarnessError } from '#contracts/errors.js'
import { invalidOptions } from '#contracts/parse.js'
import { having, matching, secret, string } from '#util/validate.js'
import type { PartialFields } from '#util/validate.js'

export interface OwnPool extends PostgresPool {
  end(): Promise<void>
}

/** How long connecting and a statement may take, in ms: so that nothing waits for a server that does not respond. */
const CONNECT_MS = 10_000
const QUERY_MS = 30_000

/** A pool of our own, for `name`. Throws `missing_dependency` if `pg` is not installed. */
export async function openPool(connectionString: string, name: string): Promise<OwnPool> {
  const { Pool } = await loadPackage(name)
  const pool = new Pool({
    connectionString,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
    keepAlive: true,
    allowExitOnIdle: true,
  })
  // An idle connection that is lost is replaced when it is needed; without a listener it would end the process.
  pool.on('error', () => undefined)
  return pool
}

async function loadPackage(name: string) {
  try {
    return (await import('pg')).default
  } catch (cause) {
    throw new HarnessError('missing_dependency', `${name} needs the package \`pg\` (npm install pg).`, { cause })
  }
}

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
