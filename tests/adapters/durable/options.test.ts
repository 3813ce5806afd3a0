import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import type { HarnessError } from 'thinharness'
import { dbosRuns } from 'thinharness/durable/dbos'
import type { DbosEngine, DbosRunsOptions } from 'thinharness/durable/dbos'
import { harnessOf } from '../../harness/support.js'

const dbos = { isInitialized: () => true } as DbosEngine
const good: DbosRunsOptions = { harness: harnessOf({}), log: memoryLog(), dbos }

describe('options of runs on DBOS', () => {
  test.each<[string, object, string]>([
    ['an unknown one', { harnes: 1 }, 'Unknown option of `dbosRuns`: `harnes`. Did you mean `harness`?'],
    [
      'no harness',
      { harness: undefined },
      'Expected `harness` of `dbosRuns` to be a harness or a function, got nothing.',
    ],
    [
      'no log',
      { log: undefined },
      'Expected `log` of `dbosRuns` to be a log that all processes share, such as `postgresLog`, got nothing.',
    ],
    [
      'a log without claims',
      { log: {} },
      'Expected `log` of `dbosRuns` to be a log that all processes share, such as `postgresLog`, got an object.',
    ],
    [
      'a name that is none',
      { name: 'a b' },
      'Expected `name` of `dbosRuns` to be 1 to 64 letters, digits, `_`, `-` or `.`, got `a b`.',
    ],
    [
      'a launch without a database',
      { launch: {} },
      'Expected `launch.databaseUrl` of `dbosRuns` to be a string, got nothing.',
    ],
    [
      'a misspelt limit',
      { queue: { concurency: 1 } },
      'Unknown option of `dbosRuns`: `queue.concurency`. Did you mean `concurrency`?',
    ],
    [
      'a limit of nothing',
      { queue: { concurrency: 0 } },
      'Expected `queue.concurrency` of `dbosRuns` to be a whole number from 1 up, got `0`.',
    ],
    [
      'a rate without a period',
      { queue: { rateLimit: { limit: 1 } } },
      'Expected `queue.rateLimit.periodMs` of `dbosRuns` to be a whole number from 1 to 2147483647, got nothing.',
    ],
    [
      'a time that is none',
      { takeOverEveryMs: true },
      'Expected `takeOverEveryMs` of `dbosRuns` to be a whole number from 1 to 2147483647 or `false`, got `true`.',
    ],
  ])('%s is rejected', async (_name, given, message) => {
    const error: unknown = await dbosRuns({ ...good, ...given }).catch((thrown: unknown) => thrown)
    expect({ code: (error as HarnessError).code, message: (error as HarnessError).message }).toEqual({
      code: 'invalid_options',
      message,
    })
  })
})
