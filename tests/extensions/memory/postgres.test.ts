import pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { postgresLog } from 'thinharness/store/postgres'
import { startPostgres } from '../../support/postgres.js'
import { temporaryFolder } from '../../support/folder.js'
import { ada, plant } from './secrets.js'
import { memoryOf, recalled, say } from './support.js'

const server = await startPostgres()
afterAll(() => server?.stop())

/** All rows of all tables of schemas whose names begin so, as one text. */
async function rowsIn(url: string, schema: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const tables = await client.query<{ name: string }>(
      'select schemaname || \'"."\' || tablename as name from pg_tables where schemaname like $1',
      [`${schema}%`],
    )
    const texts = []
    for (const { name } of tables.rows) {
      const { rows } = await client.query<{ row: string }>(`select t::text as row from "${name}" t`)
      texts.push(...rows.map(({ row }) => row))
    }
    return texts.join('\n')
  } finally {
    await client.end()
  }
}

describe.skipIf(server === null)('a memory over PostgreSQL', () => {
  test('XM-31 finds what was said; after `erase`, no row of any table has a secret, in the log or the index', async () => {
    const url = server?.url ?? ''
    const root = temporaryFolder()
    const index = { connectionString: url, schema: 'memory_index' }
    await using log = postgresLog({ connectionString: url, schema: 'memory' })
    const planted = await plant(log, index, root)
    await say(log, 'Bob keeps his words.', { metadata: { resourceId: 'bob' } })
    const before = await rowsIn(url, 'memory')
    // Those in the middle of a long output are in its file alone.
    expect(planted.filter((secret) => before.includes(secret)).length).toBeGreaterThan(500)
    const memory = memoryOf({ log, index })
    expect(await recalled({ log, memory, metadata: ada }, 'words')).toMatch(/zq\d/)
    expect(await recalled({ log, memory, metadata: { resourceId: 'bob' } }, 'words')).toContain('Bob keeps')
    await memory.erase(ada)
    const after = await rowsIn(url, 'memory')
    expect(planted.filter((secret) => after.includes(secret))).toEqual([])
    expect(after.match(/Bob keeps his words\./g)?.length).toBeGreaterThan(1)
  }, 180_000)
})
