import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { sections } from '../../scripts/pages.js'

/** What somebody asks who builds an agent, and the pages that answer it: one of them has to be found. */
interface Task {
  readonly task: string
  readonly pages: readonly string[]
  /** What the page that is found says about it. */
  readonly says?: string
  /** `tuned` and `more`: the pages were improved by them; `aside`: kept aside until the pages stood. */
  readonly group: 'tuned' | 'aside' | 'more'
}

interface Page {
  readonly name: string
  readonly text: string
  readonly counts: ReadonlyMap<string, number>
  readonly length: number
}

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const tasks = JSON.parse(read('tests/docs/tasks.json')) as readonly Task[]
const COMMON = new Set(
  'a an the of to in on at for and or is are be it its this that with without from by as my i me so when how what which do does not no can if into them they their there has have was'.split(
    ' ',
  ),
)

function wordsOf(text: string): readonly string[] {
  const words = text
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu)
  return (words ?? []).filter((word) => !COMMON.has(word))
}

const names = sections().flatMap(({ pages }) => pages.flatMap(({ path }) => (/^[\w-]+\.md$/.test(path) ? [path] : [])))

const pages: readonly Page[] = names.map((path) => {
  const text = read(`docs/${path}`)
  const title = /^# (.*)$/m.exec(text)?.[1] ?? ''
  const headings = [...text.matchAll(/^##+ (.*)$/gm)].map(([, heading = '']) => heading).join(' ')
  const words = wordsOf(`${text} ${title} ${title} ${title} ${headings}`)
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return { name: path.slice(0, -'.md'.length), text, counts, length: words.length }
})
const average = pages.reduce((sum, { length }) => sum + length, 0) / pages.length

/** Okapi BM25 with its usual constants. */
function scoreOf({ counts, length }: Page, word: string): number {
  const found = counts.get(word) ?? 0
  const having = pages.filter((page) => page.counts.has(word)).length
  const rarity = Math.log(1 + (pages.length - having + 0.5) / (having + 0.5))
  return (rarity * found * 2.2) / (found + 1.2 * (0.25 + (0.75 * length) / average))
}

/** The pages in the order in which a search by words gives them. */
function search(query: string): readonly Page[] {
  const words = [...new Set(wordsOf(query))]
  const scored = pages.map((page) => ({
    page,
    score: words.reduce((sum, word) => sum + scoreOf(page, word), 0),
  }))
  return scored.sort((a, b) => b.score - a.score).map(({ page }) => page)
}

const placeOf = ({ task, pages: answers }: Task): number =>
  search(task).findIndex(({ name }) => answers.includes(name)) + 1
const inFirst = (most: number, among: readonly Task[]): readonly Task[] =>
  among.filter((each) => placeOf(each) > 0 && placeOf(each) <= most)

test('each of 60 tasks of a coding assistant leads to its page by a search on its words', () => {
  const asked = tasks.filter(({ group }) => group !== 'more')
  expect(asked).toHaveLength(60)
  const missed = asked.filter((each) => !inFirst(3, [each]).includes(each))
  const found = missed.map(({ task }) => [
    task,
    ...search(task)
      .slice(0, 3)
      .map(({ name }) => name),
  ])
  // A page that is added moves others by a place; two may be fourth for a while.
  expect(found.slice(2)).toEqual([])
  expect(inFirst(1, asked).length).toBeGreaterThanOrEqual(48)
})

test('of further tasks nineteen of twenty do', () => {
  const asked = tasks.filter(({ group }) => group === 'more')
  expect(inFirst(3, asked).length).toBeGreaterThanOrEqual(Math.floor(asked.length * 0.95))
})

test('the page that is found names what the task needs', () => {
  for (const each of tasks) {
    if (each.says === undefined) continue
    const answers = search(each.task).filter(({ name }) => each.pages.includes(name))
    expect([each.task, answers.some(({ text }) => text.includes(each.says ?? ''))]).toEqual([each.task, true])
  }
})

test('every page has at most 1,500 words beside its code, but those that are made from the source', () => {
  const long = pages.flatMap(({ name, text }) => {
    const words = text
      .replace(/```[^]*?```|<!--[^]*?-->/g, '')
      .split(/\s+/)
      .filter((word) => /[\p{L}\p{N}]/u.test(word)).length
    return words > 1_500 ? [name] : []
  })
  expect(long).toEqual(['built-in-tools'])
})
