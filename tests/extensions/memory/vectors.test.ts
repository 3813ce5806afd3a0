import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { memoryLog } from 'thinharness'
import { temporaryFolder } from '../../support/folder.js'
import { callMemory, embed, memoryOf, recalled, say } from './support.js'

const ada = { resourceId: 'ada' }
const bob = { resourceId: 'bob' }

describe('vectors', () => {
  test('XM-26 with `embed`, a text is found by its meaning, and by its words', async () => {
    const log = memoryLog()
    await say(log, 'The puppy sleeps.')
    await say(log, 'The vehicle is broken, says zylka.')
    const memory = memoryOf({ log, embed })
    expect(await recalled({ log, memory }, 'my hound', { limit: 1 })).toContain('puppy')
    expect(await recalled({ log, memory }, 'zylka auto', { limit: 1 })).toContain('vehicle')
    expect(await recalled({ log, memory: memoryOf({ log }) }, 'hound beverage', { limit: 1 })).not.toContain('puppy')
  })

  test('XM-27 vectors of others are not searched; forgotten and erased texts have none', async () => {
    const log = memoryLog()
    const index = join(temporaryFolder(), 'memory.db')
    const memory = memoryOf({ log, index, embed, scope: 'all' })
    await say(log, 'The puppy of Ada.', { metadata: ada, runId: 'first' })
    await say(log, 'The hound of Bob.', { metadata: bob })
    const found = await recalled({ log, memory, metadata: bob }, 'dog', { scope: 'resource' })
    expect(found).toContain('Bob')
    expect(found).not.toContain('Ada')
    expect(await recalled({ log, memory, metadata: bob }, 'dog', { scope: 'all' })).toContain('puppy of Ada')
    await callMemory({ log, memory, metadata: ada }, ['forget', { handle: 'first.prompt' }])
    expect(await recalled({ log, memory, metadata: bob }, 'dog', { scope: 'all' })).not.toContain('puppy of Ada')
    await memory.erase(ada)
    expect(await recalled({ log, memory, metadata: bob }, 'dog', { scope: 'all', limit: 1 })).toMatch(/dog|hound/)
  })

  test('XM-28 a search of one conversation finds the nearest of its texts', async () => {
    const log = memoryLog()
    for (let index = 0; index < 30; index++)
      await say(log, `A puppy, number ${index}.`, { metadata: { conversation_id: 'many' } })
    await say(log, 'A cup of tea.', { metadata: { conversation_id: 'one' } })
    const memory = memoryOf({ log, embed })
    const found = await recalled({ log, memory, metadata: { conversation_id: 'one' } }, 'hound', { scope: 'thread' })
    expect(found).toContain('cup of tea')
    expect(found).not.toContain('puppy')
  })

  test('XM-29 if `embed` fails, full text finds the rest, and the vectors follow later', async () => {
    const log = memoryLog()
    await say(log, 'The puppy sleeps.')
    let isDown = true
    const memory = memoryOf({
      log,
      embed: (texts, options) => (isDown ? Promise.reject(new Error('down')) : embed(texts, options)),
    })
    expect(await recalled({ log, memory }, 'puppy')).toContain('sleeps')
    await expect(memory.reindex()).rejects.toMatchObject({ code: 'store_failure' })
    isDown = false
    expect(await recalled({ log, memory }, 'a hound', { limit: 1 })).toContain('puppy')
  })

  test('XM-30 vectors of another length need `reindex`; a model of the wrong shape is refused', async () => {
    const log = memoryLog()
    const index = join(temporaryFolder(), 'memory.db')
    await say(log, 'The puppy sleeps.')
    await memoryOf({ log, index, embed }).reindex()
    await say(log, 'The car drives.')
    const longer = memoryOf({
      log,
      index,
      embed: async (texts) => (await embed(texts, {})).map((each) => [...each, 0, 0]),
    })
    const [failed] = await callMemory({ log, memory: longer }, ['recall_memory', { query: 'hound' }])
    expect(failed).toMatchObject({ ok: false })
    await longer.reindex()
    expect(await recalled({ log, memory: longer }, 'hound', { limit: 2 })).toContain('puppy')
    rmSync(index)
    for (const wrong of [[], [[1], [2, 3]], [[Number.NaN]]])
      await expect(memoryOf({ log, embed: () => Promise.resolve(wrong) }).reindex()).rejects.toMatchObject({
        code: 'store_failure',
      })
  })
})
