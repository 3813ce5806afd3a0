// Checks docs/behaviour.md against the names of the tests: every promise is pinned by a test whose name has its id, or
// says in which part of the work it falls. With `--write` the files are filled in; a promise that no test pins any more
// must be given its part by hand.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('..', import.meta.url))
const page = join(root, 'docs/behaviour.md')

/** Parts of the work in which a promise without a test falls. */
const PARTS = [
  'approvals and resume',
  'providers',
  'structured output',
  'subagents',
  'skills',
  'MCP',
  'shell',
  'parallel_llm',
  'tracing',
  'file tools',
  'examples',
  'session layer',
  'live check (needs a key)',
]

const ROW = /^\| (\w\w-\d\d|\d{3}) \| (.*) \| (.*) \|$/

const text = readFileSync(page, 'utf8')
/** The ids in the table, by area: two letters, or '' for the numbered checks of the tool boundary. */
const areas = areasIn(text)
const found = idsInTests()
const problems = []
const written = text.split('\n').map(rowWithFiles).join('\n')
checkIds()
if (problems.length > 0) {
  console.error(problems.join('\n'))
  process.exitCode = 1
} else if (process.argv.includes('--write')) {
  writeFileSync(page, written)
} else if (written !== text) {
  console.error('docs/behaviour.md does not name the tests as they are: run `node scripts/behaviour-table.js --write`.')
  process.exitCode = 1
} else {
  const rows = text.split('\n').filter((line) => ROW.test(line))
  const pinned = rows.filter((line) => line.includes('tests/') || line.includes('e2e/'))
  console.log(`${pinned.length} of ${rows.length} promises are pinned by a test.`)
}

/** The line as it is, or with the files whose tests pin its promise. */
function rowWithFiles(line) {
  const [, id, promise, where] = ROW.exec(line) ?? []
  if (id === undefined) return line
  const files = found.get(id)
  if (files !== undefined) return `| ${id} | ${promise} | ${[...files].sort().join(', ')} |`
  if (/\b(tests|e2e)\//.test(where)) problems.push(`${id} is said to be pinned by ${where}, where no test names it.`)
  else if (!PARTS.includes(where) && !where.startsWith('not applicable: ')) {
    problems.push(`${id} falls in no known part: \`${where}\`. Known: ${PARTS.join(', ')}, not applicable: <reason>.`)
  }
  return line
}

/** The numbers of the table's ids, in the order of its rows. */
function areasIn(table) {
  const numbers = new Map()
  for (const line of table.split('\n')) {
    const [, area = '', number] = /^\| (?:(\w\w)-)?(\d\d\d?) \|/.exec(line) ?? []
    if (number !== undefined) numbers.set(area, [...(numbers.get(area) ?? []), Number(number)])
  }
  return numbers
}

/** The numbers of an area have no gaps and no duplicates, and tests name only ids of the table. */
function checkIds() {
  for (const [area, numbers] of areas) {
    const first = area === '' ? Math.min(...numbers) : 1
    const wrong = numbers.sort((a, b) => a - b).find((number, index) => number !== first + index)
    if (wrong !== undefined) problems.push(`docs/behaviour.md has a gap or a duplicate at ${area} ${wrong}.`)
  }
  for (const [id, files] of found) {
    const [, area = '', number] = /^(?:(\w\w)-)?(\d+)$/.exec(id) ?? []
    if (!areas.get(area)?.includes(Number(number))) {
      problems.push(`${[...files].join(', ')} names ${id}, which is not in docs/behaviour.md.`)
    }
  }
}

/** The test files by the ids that stand in the names of their tests. */
function idsInTests() {
  const files = new Map()
  for (const folder of ['tests', 'e2e']) {
    for (const name of readdirSync(join(root, folder), { recursive: true })) {
      const path = join(root, folder, name)
      if (!path.endsWith('.test.ts')) continue
      for (const title of titlesIn(path)) {
        for (const id of idsIn(title)) {
          files.set(id, (files.get(id) ?? new Set()).add(relative(root, path)))
        }
      }
    }
  }
  return files
}

/** The ids in a title: those of areas anywhere, those of checks at its beginning or behind the word `check`. */
function idsIn(title) {
  const lettered = [...title.matchAll(/\b([A-Z]{2})-\d\d\b/g)].flatMap(([id, area]) => (areas.has(area) ? [id] : []))
  const [head] = /^(?:(?:[A-Z]{1,2}-\d\d|checks?|\d{3}),? )*/.exec(title) ?? ['']
  const named = [...title.matchAll(/\bchecks? (\d{3}(?:, \d{3})*)/g)].map(([, numbers]) => numbers)
  const numbers = `${head} ${named.join(' ')}`.match(/\b\d{3}\b/g) ?? []
  return [...lettered, ...numbers.filter((number) => areas.get('')?.includes(Number(number)))]
}

/** The names of the tests of a file, and the texts in the tables from which names are made. */
function titlesIn(path) {
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true)
  const titles = []
  const visit = (node) => {
    if (ts.isCallExpression(node) && isTestCall(node.expression)) collectTexts(node, titles)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return titles
}

/** `test(…)`, `describe(…)` and what is chained to them: `test.each(…)(…)`, `test.skipIf(…)(…)`. */
function isTestCall(expression) {
  if (ts.isIdentifier(expression)) return ['test', 'it', 'describe'].includes(expression.text)
  if (ts.isPropertyAccessExpression(expression) || ts.isCallExpression(expression)) {
    return isTestCall(expression.expression)
  }
  return false
}

/** The name that is given, or the texts of the rows of a table; not what the test does. */
function collectTexts({ arguments: [first] }, titles) {
  const visit = (node) => {
    if (ts.isStringLiteralLike(node)) titles.push(node.text)
    else if (ts.isTemplateExpression(node)) titles.push(node.head.text)
    else if (ts.isArrayLiteralExpression(node)) node.elements.forEach(visit)
  }
  if (first !== undefined) visit(first)
}
