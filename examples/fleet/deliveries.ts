import pg from 'pg'

export interface Delivery {
  readonly key: string
  readonly report: string
  readonly customer: string
  readonly worker: string
}

const TABLE = `
  create schema if not exists fleet;
  create table if not exists fleet.deliveries (
    key text primary key, report text not null, customer text not null, worker text not null
  )`

/** What was delivered, in a table. In your program this is whatever the work of a job leaves behind. */
export class Deliveries implements AsyncDisposable {
  readonly #pool: pg.Pool

  private constructor(pool: pg.Pool) {
    this.#pool = pool
  }

  static async open(connectionString: string): Promise<Deliveries> {
    const pool = new pg.Pool({ connectionString, max: 2 })
    // A connection that is idle when the server stops.
    pool.on('error', () => undefined)
    const { rows } = await pool.query<{ found: string | null }>(`select to_regclass('fleet.deliveries')::text as found`)
    if (rows[0]?.found === null) await pool.query(TABLE)
    return new Deliveries(pool)
  }

  /** The same key is the same delivery. */
  async add({ key, report, customer, worker }: Delivery): Promise<void> {
    const values = [key, report, customer, worker]
    await this.#pool.query('insert into fleet.deliveries values ($1, $2, $3, $4) on conflict (key) do nothing', values)
  }

  /** The reports of a batch by the worker that delivered them. */
  async of(batch: string): Promise<ReadonlyMap<string, readonly string[]>> {
    const { rows } = await this.#pool.query<Delivery>(
      'select * from fleet.deliveries where report like $1 order by length(worker), worker, report',
      [`${batch}-%`],
    )
    const found = new Map<string, string[]>()
    for (const { worker, report } of rows) found.set(worker, [...(found.get(worker) ?? []), report])
    return found
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end()
  }
}
