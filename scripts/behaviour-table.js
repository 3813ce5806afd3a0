// Generates tests/behaviour.md from the titles of the tests. A title begins with the ids of the promises that its test
// pins (`AP-12 HC-05 …`), and states the promise. Checks the page, or writes it with `--write`.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('..', import.meta.url))
const page = join(root, 'tests/behaviour.md')

/** Promises that no test pins, by id, each with its reason. */
const unpinned = JSON.parse(readFileSync(join(root, 'scripts/behaviour-unpinned.json'), 'utf8'))

/** The areas in the order of the page. Ids of the last one are numbers alone. An id whose promise is gone is not used again. */
const AREAS = [
  ['HC', 'Harness core'],
  ['TM', 'Turns'],
  ['HK', 'Hooks'],
  ['ST', 'Streaming'],
  ['PT', 'Parallel tool execution'],
  ['TR', 'Tool retries'],
  ['SO', 'Structured output'],
  ['AP', 'Approvals'],
  ['RS', 'Resume'],
  ['CV', 'Conversations'],
  ['RI', 'Runs by id'],
  ['DP', 'Dependencies'],
  ['FT', 'File tools and JSONL search'],
  ['BA', 'Shell'],
  ['PR', 'Providers'],
  ['RF', 'Reasoning'],
  ['MC', 'MCP'],
  ['SK', 'Skills'],
  ['SU', 'Subagents'],
  ['PL', 'Parallel LLM'],
  ['TC', 'Tracing'],
  ['XT', 'Extensions'],
  ['XC', 'Long conversations'],
  ['XM', 'Memory'],
  ['PV', 'Provenance'],
  ['RP', 'Replay and fork'],
  ['DU', 'Durable engines'],
  ['CO', 'What readers need of a run'],
  ['XL', 'Laws of all protocols'],
  ['SS', 'Following a run'],
  ['RQ', 'Requests of pages'],
  ['UI', 'AI SDK UI'],
  ['AG', 'AG-UI'],
  ['OR', 'Open Responses'],
  ['AC', 'Agent Client Protocol'],
  ['CL', 'Command line'],
  ['VW', 'Run viewer'],
  ['SB', 'Conversations of sessions'],
  ['EX', 'Example agent'],
  ['', 'Tool boundary, history and failures'],
]

const PREFACE = `# Behaviour

Each row is a promise of the library, and the tests named in its last column pin it. The page is generated from the titles of those tests with \`npm run behaviour -- --write\`, and \`npm run check:behaviour\` fails if it is out of date. A row without a test states the reason.
`

const ID = `(?:(?:${AREAS.flatMap(([area]) => (area === '' ? [] : [area])).join('|')})-\\d{2,3}|1(?:4[4-9]|5\\d|6[0-2]))`
const IDS = new RegExp(`^(?:${ID} )*(?:${ID}(?= |$))`)
const MISPLACED = new RegExp(`\\b${ID.replace('|1(', '|checks? 1(')}\\b`)
const PLACEHOLDER = /%[sjdio]|\$\w+/
/** `: %s, %s`, `(streamed: %s)`: the cases at the end of a title. */
const LAST_PLACEHOLDERS = /(?:^|[:,]? )(?: ?\([^()%$]*(?:%[sjdio]|\$\w+)[^()]*\)|,? ?`?(?:%[sjdio]|\$\w+)`?)+$/

const problems = []
/** By id: the titles of its tests by their groups, and the files. */
const pinned = new Map()
for (const path of testFiles()) readTests(path)
const text = pageText()
if (problems.length > 0) {
  console.error(problems.join('\n'))
  process.exitCode = 1
} else if (process.argv.includes('--write')) {
  writeFileSync(page, text)
} else if (readFileSync(page, 'utf8') !== text) {
  console.error('tests/behaviour.md is out of date: run `npm run behaviour -- --write`.')
  process.exitCode = 1
} else {
  console.log(`${pinned.size} of ${pinned.size + Object.keys(unpinned).length} promises are pinned by a test.`)
}

function testFiles() {
  return ['tests', 'e2e'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((name) => name.endsWith('.test.ts'))
      .sort()
      .map((name) => join(root, folder, name)),
  )
}

/** Finds the titles of a file, those of groups and rows of tables too, and notes the promises among them. */
function readTests(path) {
  const file = relative(root, path)
  const source = ts.createSourceFile(file, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true)
  const visit = (node, groups) => {
    const title = titleOf(node)
    if (title !== undefined) {
      note(file, groups, title)
      for (const row of rowsOf(node.expression)) {
        if (IDS.test(row)) noteRow(file, groups, title, row)
      }
    }
    const inside = title !== undefined && isCallOf(node.expression, ['describe']) ? [...groups, title] : groups
    ts.forEachChild(node, (child) => visit(child, inside))
  }
  visit(source, [])
}

/** The title of `test(…)`, `describe(…)` and their chains, such as `test.each(…)(…)`. */
function titleOf(node) {
  if (!ts.isCallExpression(node) || !isCallOf(node.expression, ['test', 'it', 'describe'])) return undefined
  const [first] = node.arguments
  if (first === undefined) return undefined
  if (ts.isStringLiteralLike(first)) return first.text
  if (!ts.isTemplateExpression(first)) return undefined
  return first.head.text + first.templateSpans.map(({ literal }) => `%s${literal.text}`).join('')
}

function isCallOf(expression, names) {
  if (ts.isIdentifier(expression)) return names.includes(expression.text)
  if (!ts.isPropertyAccessExpression(expression) && !ts.isCallExpression(expression)) return false
  return isCallOf(expression.expression, names)
}

/** The names in the rows of `test.each([…])`. */
function rowsOf(expression) {
  if (!ts.isCallExpression(expression)) return []
  const names = []
  const visit = (node) => {
    if (ts.isStringLiteralLike(node)) names.push(node.text)
    else if (ts.isArrayLiteralExpression(node)) node.elements.forEach(visit)
  }
  expression.arguments.forEach(visit)
  return names
}

/** A row belongs to the title of its table, or its name takes the place of the first placeholder. */
function noteRow(file, groups, title, row) {
  if (LAST_PLACEHOLDERS.test(title)) return note(file, [...groups, plain(title)], row)
  const [ids] = IDS.exec(row)
  note(file, groups, `${ids} ${withoutIds(title).replace(PLACEHOLDER, withoutIds(row))}`)
}

function note(file, groups, title) {
  const [ids] = IDS.exec(title) ?? []
  if (MISPLACED.test(withoutIds(title))) problems.push(`${file}: ids stand at the beginning of a title: ${title}`)
  if (ids === undefined) return
  const context = groups
    .filter((group) => group !== '' && !PLACEHOLDER.test(group))
    .map(withoutIds)
    .join(': ')
  for (const id of ids.split(' ')) {
    const { promises, files } = pinned.get(id) ?? { promises: new Map(), files: new Set() }
    promises.set(context, (promises.get(context) ?? new Set()).add(plain(title)))
    pinned.set(id, { promises, files: files.add(file) })
    if (unpinned[id] !== undefined) problems.push(`${file} pins ${id}: remove it from scripts/behaviour-unpinned.json.`)
  }
}

/** Without ids; placeholders of tables are left out at the end, and are dots elsewhere. */
function plain(title) {
  const text = withoutIds(title).replace(LAST_PLACEHOLDERS, '').replaceAll(new RegExp(PLACEHOLDER, 'g'), '…')
  return /^[…, :/]*$/.test(text) ? '' : text
}

/** `Group: one; another.` for each group of tests. */
function sentences(promises) {
  return [...promises]
    .map(([context, titles]) => [context, [...titles].join('; ')].filter((part) => part !== '').join(': '))
    .map(
      (sentence) => `${sentence.replace(/^[a-z]+(?![\w`])/, (word) => word.charAt(0).toUpperCase() + word.slice(1))}.`,
    )
    .join(' ')
}

function withoutIds(title) {
  return title.replace(IDS, '').trim()
}

function pageText() {
  return `${PREFACE}${AREAS.map(([area, heading]) => section(area, heading)).join('')}`
}

function section(area, heading) {
  const ids = [...pinned.keys(), ...Object.keys(unpinned)].filter(
    (id) => (id.split('-')[1] ? id.slice(0, 2) : '') === area,
  )
  const number = (id) => Number(id.split('-').at(-1))
  ids.sort((one, other) => number(one) - number(other))
  const title = area === '' ? heading : `${heading} (${area})`
  return `
## ${title}

<!-- prettier-ignore-start -->

| Id | Promise | Pinned by |
| --- | --- | --- |
${ids.map(row).join('\n')}

<!-- prettier-ignore-end -->
`
}

function row(id) {
  const { promises, files } = pinned.get(id) ?? {}
  const promise = promises === undefined ? unpinned[id].promise : sentences(promises)
  const source = files === undefined ? unpinned[id].reason : [...files].sort().join(', ')
  return `| ${id} | ${promise.replaceAll('|', '\\|')} | ${source} |`
}
