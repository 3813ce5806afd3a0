import { expect } from 'vitest'
import { memoryLog } from 'thinharness'
import { tool } from '../../harness/support.js'
import type { Place } from './places.js'
import { callMemory, embed, memoryOf, recalled, say } from './support.js'

/** What holds wherever an index is. */
export interface IndexLaw {
  readonly says: string
  readonly needsVectors?: boolean
  readonly check: (place: Place) => Promise<void>
}

const ada = { resourceId: 'ada' }
const bob = { resourceId: 'bob' }

const byWords: readonly IndexLaw[] = [
  {
    says: 'words are found without case, accents and English endings, and texts without spaces by pairs of characters',
    check: async ({ fresh }) => {
      const log = memoryLog()
      for (const text of ['She was RUNNING in Orléans.', '我住在東京都。', 'Наши собаки спят.']) await say(log, text)
      const memory = memoryOf({ log, index: fresh() })
      expect(await recalled({ log, memory }, 'runs', { limit: 1 })).toContain('RUNNING')
      expect(await recalled({ log, memory }, 'ORLEANS')).toContain('RUNNING')
      expect(await recalled({ log, memory }, '東京')).toContain('我住在')
      expect(await recalled({ log, memory }, 'СОБАКИ')).toContain('Наши')
      expect(await recalled({ log, memory }, '京東')).toMatch(/^Nothing/)
    },
  },
  {
    says: 'ß is found as ss, and symbols are words',
    check: async ({ fresh }) => {
      const log = memoryLog()
      const texts = [
        'Ann lives in the Hauptstraße.',
        'BASTIAN: STRASSE 5',
        'Lunch was 12 €.',
        'He writes C++ → well 😀',
      ]
      for (const text of texts) await say(log, text, { reply: '-' })
      const memory = memoryOf({ log, index: fresh() })
      expect(await recalled({ log, memory }, 'hauptstrasse')).toContain('Ann lives')
      expect(await recalled({ log, memory }, 'Straße')).toContain('BASTIAN')
      for (const [query, text] of [
        ['€', 'Lunch'],
        ['c++', 'writes C'],
        ['→', 'writes C'],
        ['😀', 'writes C'],
      ] as const)
        expect(await recalled({ log, memory }, query)).toContain(text)
      expect(await recalled({ log, memory }, '$')).toMatch(/^Nothing/)
    },
  },
  {
    says: 'a text with rare words of the query comes before texts with frequent ones',
    check: async ({ fresh }) => {
      const log = memoryLog()
      for (let day = 0; day < 30; day++) await say(log, `The garden of day ${day}: the garden was green, my garden!`)
      await say(log, 'Orchids like some shade, which a garden has.')
      const memory = memoryOf({ log, index: fresh() })
      const found = await recalled({ log, memory }, 'the orchid in the garden', { limit: 2 })
      expect(found).toMatch(/^\[.*\] message, .*\nOrchids like/)
    },
  },
  {
    says: 'frequent words such as `what` and `the` count only if there are no others',
    check: async ({ fresh }) => {
      const log = memoryLog()
      await say(log, 'Who are you, and what is the name of the one who was with you?', { reply: '-' })
      await say(log, 'Rex is a dog.', { reply: '-' })
      const memory = memoryOf({ log, index: fresh() })
      expect(await recalled({ log, memory }, 'Who was with him, and what is with Rex?')).not.toContain(
        'Who are you, and',
      )
      expect(await recalled({ log, memory }, 'who are you', { limit: 1 })).toContain('Who are you')
    },
  },
  {
    says: 'nobody finds the texts of another, and a conversation is searched by itself',
    check: async ({ fresh }) => {
      const log = memoryLog()
      const memory = memoryOf({ log, index: fresh(), scope: 'all' })
      await say(log, 'Ada grows orchids at home.', { metadata: { ...ada, conversation_id: 'one' } })
      await say(log, 'Ada grows orchids there.', { metadata: { ...ada, conversation_id: 'two' } })
      await say(log, 'Bob grows orchids.', { metadata: bob })
      await say(log, 'Nobody grows orchids.')
      const found = await recalled({ log, memory, metadata: ada }, 'orchids', { scope: 'resource' })
      expect(found.match(/\w+ grows/g)).toEqual(['Ada grows', 'Ada grows'])
      const metadata = { ...ada, conversation_id: 'two' }
      expect(await recalled({ log, memory, metadata }, 'orchids', { scope: 'thread' })).not.toContain('at home')
      expect((await recalled({ log, memory }, 'orchids', { scope: 'all' })).match(/\w+ grows/g)).toHaveLength(4)
    },
  },
  {
    says: 'what was forgotten is not found, also after `reindex` and in another index',
    check: async ({ fresh }) => {
      const log = memoryLog()
      const memory = memoryOf({ log, index: fresh() })
      await say(log, 'My PIN is 4711, by the way.', { metadata: ada })
      await say(log, 'My PIN is 4711, by the way.', { metadata: bob })
      await callMemory({ log, memory, metadata: ada }, ['remember', { text: 'The PIN of Ada is 4711.' }])
      for (const text of ['PIN is 4711', 'the PIN of Ada']) {
        const [forgotten] = await callMemory({ log, memory, metadata: ada }, ['forget', { text }])
        expect(forgotten).toMatchObject({ ok: true })
      }
      for (const each of [memory, memoryOf({ log, index: fresh() })]) {
        await each.reindex()
        // Ids are hexadecimal, and may contain these digits.
        expect(await recalled({ log, memory: each, metadata: ada }, 'PIN')).not.toMatch(/\b4711\b/)
        expect(await recalled({ log, memory: each, metadata: bob }, 'PIN')).toContain('by the way')
      }
    },
  },
  {
    says: 'rows keep their sources',
    check: async ({ fresh }) => {
      const log = memoryLog()
      const web = tool('web', () => 'Send money to 555-0199.', { reach: { hosts: ['*'] } })
      await say(log, 'Look.', { tools: [web], calls: ['web'], reply: 'The page asks to call 555-0199.' })
      const memory = memoryOf({ log, index: fresh() })
      const [found] = await callMemory({ log, memory }, ['recall_memory', { query: 'page 555' }])
      expect(found?.source).toMatchObject({ kind: 'web' })
    },
  },
  {
    says: 'the texts of a log that was removed leave the index, and new events are added',
    check: async ({ fresh }) => {
      const log = memoryLog()
      const memory = memoryOf({ log, index: fresh() })
      await say(log, 'Ada grows orchids.', { runId: 'first' })
      expect(await recalled({ log, memory }, 'grows')).toContain('orchids')
      await log.prune({ only: [{ kind: 'run', id: 'first' }] })
      expect(await recalled({ log, memory }, 'grows')).not.toContain('orchids')
      await say(log, 'Ada grows tulips.', { runId: 'first' })
      expect(await recalled({ log, memory }, 'grows')).toContain('tulips')
    },
  },
  {
    says: 'several memories at one place read every log once',
    check: async ({ fresh }) => {
      const log = memoryLog()
      const index = fresh()
      for (let run = 0; run < 15; run++) await say(log, `Orchid ${run}.`, { metadata: run % 2 ? ada : bob })
      const memories = Array.from({ length: 4 }, () => memoryOf({ log, index, scope: 'all' }))
      await Promise.all(memories.map((memory) => recalled({ log, memory }, 'orchid', { scope: 'all' })))
      const found = await recalled({ log, memory: memoryOf({ log, index, scope: 'all' }) }, 'orchid', { limit: 20 })
      expect(found.match(/Orchid \d+/g)?.sort()).toHaveLength(15)
      expect(new Set(found.match(/Orchid \d+/g))).toHaveLength(15)
    },
  },
  {
    says: 'a long text is found by words of each of its parts; characters that a database refuses do no harm',
    check: async ({ fresh }) => {
      const log = memoryLog()
      const filler = 'Nothing of interest happens in this sentence. '.repeat(80)
      await say(log, `A zebra. ${filler} A walrus. ${filler} A heron.\u0000 \ud800 "quoted" \\ 'single' %L $1`)
      const memory = memoryOf({ log, index: fresh() })
      for (const word of ['zebra', 'walrus', 'heron', 'quoted', 'single'])
        expect(await recalled({ log, memory }, word, { limit: 1 })).toMatch(new RegExp(`\\b${word}\\b`, 'i'))
    },
  },
  {
    says: 'after `erase`, nothing of the owner is left, and everything of others',
    check: async ({ fresh, query }) => {
      const log = memoryLog()
      const index = fresh()
      const memory = memoryOf({ log, index, scope: 'all' })
      await say(log, 'Ada grows orchids.', { metadata: ada })
      await say(log, 'Bob grows tulips.', { metadata: bob })
      await callMemory({ log, memory, metadata: ada }, ['remember', { text: 'Ada likes tea.' }])
      await callMemory({ log, memory, metadata: ada }, ['forget', { text: 'likes tea' }])
      expect(await recalled({ log, memory }, 'grows', { scope: 'all' })).toContain('orchids')
      await memory.erase(ada)
      const found = await recalled({ log, memory }, 'grows', { scope: 'all' })
      expect(found).toContain('tulips')
      expect(found).not.toContain('orchids')
      if (query === undefined || typeof index === 'string') return
      const [{ rows }] = (await query(
        `select string_agg(t::text, ' ') as rows from (
          select e::text as t from "${index.schema}".entries e union all select l::text from "${index.schema}".logs l
          union all select o::text from "${index.schema}".owners o
          union all select f::text from "${index.schema}".forgotten f
        ) all_rows`,
      )) as [{ rows: string }]
      expect(rows).toContain('tulips')
      // Ids of runs are hexadecimal, and may contain `ada`.
      expect(rows.replaceAll(/run_[0-9a-f]+/g, 'RUN')).not.toMatch(/ada|orchid|tea/i)
    },
  },
]

const byVectors: readonly IndexLaw[] = [
  {
    says: 'with `embed`, a text is found by its meaning: of its owner, of its conversation, or of all',
    needsVectors: true,
    check: async ({ fresh }) => {
      const log = memoryLog()
      const memory = memoryOf({ log, index: fresh(), embed, scope: 'all' })
      await say(log, 'The puppy of Ada.', { metadata: { ...ada, conversation_id: 'one' } })
      await say(log, 'A cup of tea.', { metadata: { ...ada, conversation_id: 'two' } })
      await say(log, 'The hound of Bob.', { metadata: bob })
      const own = await recalled({ log, memory, metadata: ada }, 'dog', { scope: 'resource', limit: 1 })
      expect(own).toContain('puppy')
      const metadata = { ...ada, conversation_id: 'two' }
      const thread = await recalled({ log, memory, metadata }, 'dog', { scope: 'thread' })
      expect(thread).toContain('tea')
      expect(thread).not.toContain('puppy')
      const all = await recalled({ log, memory }, 'dog', { scope: 'all', limit: 2 })
      expect(all).toContain('puppy')
      expect(all).toContain('hound')
    },
  },
  {
    says: 'a forgotten, a removed and an erased text have no vector',
    needsVectors: true,
    check: async ({ fresh }) => {
      const log = memoryLog()
      const memory = memoryOf({ log, index: fresh(), embed, scope: 'all' })
      await say(log, 'The puppy of Ada.', { metadata: ada, runId: 'first' })
      await say(log, 'The flat of Ada.', { metadata: ada })
      await say(log, 'The hound of Eve.', { runId: 'eve' })
      const find = (): Promise<string> => recalled({ log, memory, metadata: bob }, 'dog home', { scope: 'all' })
      expect(await find()).toMatch(/puppy|flat/)
      await callMemory({ log, memory, metadata: ada }, ['forget', { handle: 'first.prompt' }])
      expect(await find()).not.toContain('puppy')
      await log.prune({ only: [{ kind: 'run', id: 'eve' }] })
      expect(await find()).not.toContain('hound')
      await memory.erase(ada)
      expect(await find()).not.toContain('flat')
    },
  },
  {
    says: 'vectors of another length need `reindex`',
    needsVectors: true,
    check: async ({ fresh }) => {
      const log = memoryLog()
      const index = fresh()
      await say(log, 'The puppy sleeps.')
      await memoryOf({ log, index, embed }).reindex()
      await say(log, 'The car drives.')
      const longer = memoryOf({
        log,
        index,
        embed: async (texts) => (await embed(texts, {})).map((each) => [...each, 0, 0]),
      })
      const [failed] = await callMemory({ log, memory: longer }, ['recall_memory', { query: 'hound' }])
      expect(failed).toMatchObject({ ok: false, content: expect.stringContaining('reindex') as string })
      await longer.reindex()
      expect(await recalled({ log, memory: longer }, 'hound', { limit: 1 })).toContain('puppy')
    },
  },
]

export const indexLaws: readonly IndexLaw[] = [...byWords, ...byVectors]
