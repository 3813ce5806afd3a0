import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fileLog, memoryLog } from 'thinharness'
import type { LogStore, ToolSpec } from 'thinharness'
import { sqliteLog } from 'thinharness/store/sqlite'
import { tool } from '../../harness/support.js'
import { temporaryFolder } from '../../support/folder.js'
import { ada, plant } from './secrets.js'
import { callMemory, memoryOf, recalled, say } from './support.js'

const bob = { resourceId: 'bob' }
const stores: readonly (readonly [string, (folder: string) => LogStore])[] = [
  ['file', (folder) => fileLog(join(folder, 'runs'))],
  ['SQLite', (folder) => sqliteLog(join(folder, 'runs.db'))],
]

/** All bytes of all files in a folder, as one text. */
function bytesIn(folder: string): string {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path))
  return paths.map((path) => (statSync(path).isFile() ? readFileSync(path, 'latin1') : '')).join('\n')
}

describe('erasing', () => {
  test.each(stores)(
    'XM-22 after `erase`, no byte of a secret is left in a log, an index or a saved output: %s',
    async (_name, open) => {
      const folder = temporaryFolder()
      const index = join(folder, 'memory.db')
      const log = open(folder)
      const planted = await plant(log, index, join(folder))
      expect(planted.length).toBeGreaterThanOrEqual(1000)
      await say(log, 'Bob keeps his words.', { metadata: bob })
      const before = bytesIn(folder)
      expect(planted.filter((secret) => !before.includes(secret))).toEqual([])
      const memory = memoryOf({ log, index })
      expect(await recalled({ log, memory, metadata: ada }, 'words')).toContain(planted.at(-1)?.slice(0, 2))
      const erased = await memory.erase(ada)
      expect(erased).toMatchObject({ threads: 11, files: 15 })
      const after = bytesIn(folder)
      expect(planted.filter((secret) => after.includes(secret))).toEqual([])
      expect(await recalled({ log, memory, metadata: ada }, 'words')).not.toMatch(/zq\d/)
      expect(await recalled({ log, memory, metadata: bob }, 'words')).toContain('Bob keeps')
      expect(await memory.erase(ada)).toMatchObject({ threads: 0, files: 0 })
    },
    60_000,
  )

  test('XM-23 a run that another owner continues is not removed, and `erase` says so', async () => {
    const log = memoryLog()
    await say(log, 'Ada grows orchids.', { metadata: ada, runId: 'first' })
    await say(log, 'Go on.', { metadata: bob, history: { runId: 'first' } })
    await expect(memoryOf({ log }).erase(ada)).rejects.toMatchObject({
      code: 'run_owned',
      message: expect.stringContaining('first') as string,
    })
  })

  test('XM-24 a file that is not a saved output is not removed, whatever a tool says', async () => {
    const root = temporaryFolder()
    const log = memoryLog()
    const path = join(root, 'long-1700000000000-01234567.txt')
    writeFileSync(path, 'This is a file of the user.')
    const call: ToolSpec['call'] = () =>
      Promise.resolve({ kind: 'succeeded', content: 'ok', metadata: { saved_to: path } })
    const lying = { ...tool('lying'), call }
    await say(log, 'Go.', { metadata: ada, tools: [lying], calls: ['lying'] })
    expect(await memoryOf({ log }).erase(ada)).toMatchObject({ runs: 1, files: 0 })
    expect(existsSync(path)).toBe(true)
  })

  test('XM-25 owners with any name have a memory of their own in a file log', async () => {
    const log = fileLog(temporaryFolder())
    const memory = memoryOf({ log, scope: 'all' })
    for (const resourceId of ['a/../b', 'é', 'x'.repeat(300), 'a:b']) {
      const metadata = { resourceId }
      await callMemory({ log, memory, metadata }, [
        'remember',
        { text: `The owner ${resourceId.slice(0, 8)} likes tea.` },
      ])
      expect(await recalled({ log, memory, metadata }, 'tea', { scope: 'resource' })).toContain('likes tea')
    }
    const other = memoryOf({ log, scope: 'all' })
    expect((await recalled({ log, memory: other }, 'tea', { limit: 20 })).match(/fact_/g)).toHaveLength(4)
  })
})
