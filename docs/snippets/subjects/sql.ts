import { defineTool } from 'thinharness'
import type { ToolSpec } from 'thinharness'
import { z } from 'zod'

/** A pool of `pg`, connected as a user who may only read. */
export interface Database {
  query(text: string): Promise<{ readonly rows: readonly object[] }>
}

export function sqlTool(database: Database): ToolSpec {
  return defineTool({
    name: 'query_database',
    description:
      'Run one SELECT on PostgreSQL. Tables: customers (id, name), orders (id, customer_id, cents, created_at).',
    parameters: z.object({ sql: z.string() }),
    annotations: { readOnly: true },
    timeoutMs: 15_000,
    async handler({ sql }) {
      const { rows } = await database.query(sql)
      return { rows: rows.slice(0, 100), total: rows.length }
    },
  })
}
