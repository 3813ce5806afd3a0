import { Harness, HarnessError } from 'thinharness'
import type { DurableEvent, LogRef, ReadOptions, RunLog } from 'thinharness'
import { anthropic } from 'thinharness/providers'

/** `ctx.storage.sql` of a Durable Object with SQLite. */
export interface Sql {
  exec(query: string, ...values: (string | number)[]): Iterable<Record<string, unknown>>
}

/** The runs of one Durable Object, a row for each event. It needs no `claim`: an object exists once. */
export class DurableObjectLog implements RunLog {
  readonly outlives = true
  readonly #sql: Sql

  constructor(sql: Sql) {
    this.#sql = sql
    sql.exec('create table if not exists events (log text, seq integer, event text, primary key (log, seq))')
  }

  append({ kind, id }: LogRef, events: readonly DurableEvent[]): Promise<void> {
    const [found] = this.#sql.exec('select max(seq) as last from events where log = ?', `${kind}:${id}`)
    let last = found?.['last'] as number | null | undefined
    for (const { seq } of events) {
      if (typeof last === 'number' && seq !== last + 1)
        return Promise.reject(new HarnessError(seq === 1 ? 'run_exists' : 'store_failure', `${id} is at ${last}.`))
      last = seq
    }
    for (const event of events)
      this.#sql.exec('insert into events values (?, ?, ?)', `${kind}:${id}`, event.seq, JSON.stringify(event))
    return Promise.resolve()
  }

  async *read({ kind, id }: LogRef, { after = 0 }: ReadOptions = {}): AsyncGenerator<DurableEvent> {
    const query = 'select event from events where log = ? and seq > ? order by seq'
    for (const { event } of await Promise.resolve([...this.#sql.exec(query, `${kind}:${id}`, after)]))
      yield JSON.parse(event as string) as DurableEvent
  }
}

/** The class of the Durable Object: `POST { "prompt": … }` begins its run, or continues it if the object was evicted. */
export class Agent {
  readonly #harness: Harness

  constructor(ctx: { readonly storage: { readonly sql: Sql } }, env: { readonly ANTHROPIC_API_KEY: string }) {
    const model = anthropic('claude-sonnet-5', { apiKey: env.ANTHROPIC_API_KEY })
    this.#harness = new Harness({ model, builtinTools: [], log: new DurableObjectLog(ctx.storage.sql) })
  }

  async fetch(request: Request): Promise<Response> {
    const { prompt } = (await request.json()) as { prompt: string }
    const { text, status, pending } = await this.#harness.run(prompt, { runId: 'run', ifExists: 'continue' })
    return Response.json({ text, status, pending })
  }
}
