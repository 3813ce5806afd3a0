import { afterAll, describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import { createMemory } from 'thinharness/memory'
import { indexLaws } from './index-laws.js'
import { embeddedPlace, files, servedPlace } from './places.js'
import { memoryOf, recalled, say } from './support.js'

const served = await servedPlace()
const embedded = await embeddedPlace()
afterAll(async () => {
  await served?.stop()
  await embedded.stop()
}, 60_000)

const databases = [embedded.place, ...(served === null ? [] : [served.place])]

describe.each([files, ...databases])('an index in $name', (place) => {
  for (const { says, needsVectors = false, check } of indexLaws)
    test.skipIf(needsVectors && !place.hasVectors)(`XM-32 ${says}: ${place.name}`, () => check(place), 60_000)
})

describe.each(databases)('an index in $name', (place) => {
  test(`XM-33 the schema of an index can be removed at any time: ${place.name}`, async () => {
    const log = memoryLog()
    const index = place.fresh()
    await say(log, 'Ada grows orchids.')
    const memory = memoryOf({ log, index })
    expect(await recalled({ log, memory }, 'Ada')).toContain('orchids')
    await place.query?.(`drop schema "${typeof index === 'string' ? '' : index.schema}" cascade`)
    expect(await recalled({ log, memory }, 'Ada')).toContain('orchids')
  })

  test(`XM-34 a schema of another program is refused, and stays as it is: ${place.name}`, async () => {
    const index = place.fresh()
    const schema = typeof index === 'string' ? '' : index.schema
    for (const table of ['notes', 'meta']) {
      await place.query?.(`create schema if not exists "${schema}"; create table "${schema}".${table} (text text)`)
      await place.query?.(`insert into "${schema}".${table} values ('mine')`)
      await expect(memoryOf({ log: memoryLog(), index }).reindex()).rejects.toMatchObject({ code: 'invalid_options' })
      expect(await place.query?.(`select text from "${schema}".${table}`)).toEqual([{ text: 'mine' }])
    }
  })
})

describe('the place of an index', () => {
  test('XM-35 is a path, or one of a connection string and a pool', () => {
    const log = memoryLog()
    for (const index of [{}, { connectionString: 'postgres://x', pool: { query: () => null } }, { path: 'x' }, 5, ''])
      // @ts-expect-error: most of these are no places
      expect(() => createMemory({ log, index })).toThrow(/index/)
    const secret = 'postgres://ada:hunter2@x'
    expect(() => createMemory({ log, index: { connectionString: secret, schema: 'No' } })).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining('hunter2') as string }) as Error,
    )
  })

  test('XM-36 a server that cannot be reached is a failure of the call, and is tried again', async () => {
    const log = memoryLog()
    const memory = memoryOf({ log, index: { connectionString: 'postgres://postgres@127.0.0.1:1/postgres' } })
    for (let attempt = 0; attempt < 2; attempt++)
      await expect(memory.reindex()).rejects.toMatchObject({ code: 'store_failure' })
  })
})
