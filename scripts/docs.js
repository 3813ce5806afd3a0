// Fills the marked blocks of README.md and docs/ from source files, so that the code on a page has been compiled and run:
//   <!-- snippet: docs/snippets/first.ts -->      the file
//   <!-- event: run_started -->                   the fields of an event, from src/core/state/events.ts
// each followed by a ```ts block. With `--check` nothing is written, and outdated blocks fail. Links to files and headings of
// this project are checked in both cases, and so is the list of pages, from which `docs/llms.txt` is written. `homepage` and `bugs` of package.json follow from its `repository`, the only place to set.
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as prettier from 'prettier'
import { eventDeclarations } from './event-declarations.js'
import { llmsText, problemsOfList } from './pages.js'

const EVENTS_PAGE = 'docs/event-reference.md'
const BLOCK = /<!-- (snippet|event): (\S+) -->\n+```tsx?\n[\s\S]*?\n?```/g
const MARK = /<!-- (snippet|event): (\S+) -->/g

const checkOnly = process.argv.includes('--check')
const problems = []
const events = eventDeclarations()
const pages = [
  'README.md',
  'CONTEXT.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...markdownIn('docs'),
].filter((page) => existsSync(page))
let blocks = 0
// Before the pages, which link to it.
fillList()
for (const page of pages) await fill(page)
checkEvents()
problems.push(...problemsOfList())
fillManifest()

if (problems.length === 0) console.log(`${pages.length} pages with ${blocks} blocks.`)
else {
  console.error(problems.join('\n'))
  process.exitCode = 1
}

async function fill(page) {
  const text = readFileSync(page, 'utf8')
  const filled = new Map()
  for (const [, kind, name] of text.matchAll(MARK)) {
    const mark = `${kind}: ${name}`
    filled.set(mark, kind === 'snippet' ? snippet(page, name) : await event(page, name))
    blocks += 1
  }
  const marks = [...text.matchAll(MARK)].length
  if ([...text.matchAll(BLOCK)].length !== marks) {
    problems.push(`${page}: a \`<!-- snippet: … -->\` or \`<!-- event: … -->\` must be followed by a \`\`\`ts block.`)
    return
  }
  if ([...text.matchAll(/^```(?:tsx?|jsx?|typescript|javascript)$/gm)].length !== marks)
    problems.push(`${page}: a block of code has no \`<!-- snippet: … -->\`, so that nothing compiles it.`)
  const written = text.replace(BLOCK, (block, kind, name) => {
    const code = filled.get(`${kind}: ${name}`)
    const language = name.endsWith('.tsx') ? 'tsx' : 'ts'
    return code === undefined ? block : `<!-- ${kind}: ${name} -->\n\n\`\`\`${language}\n${code}\n\`\`\``
  })
  checkLinks(page, text)
  for (const [, path] of text.matchAll(/`((?:tests|e2e)\/[^`*<{]*?\.ts)`/g)) {
    if (!existsSync(path)) problems.push(`${page} names \`${path}\`, which does not exist.`)
  }
  if (written === text) return
  if (checkOnly) problems.push(`${page} has outdated snippets: run \`npm run docs\`.`)
  else writeFileSync(page, written)
}

function snippet(page, path) {
  if (existsSync(path)) return readFileSync(path, 'utf8').trimEnd()
  problems.push(`${page} shows \`${path}\`, which does not exist.`)
  return undefined
}

async function event(page, kind) {
  const declaration = events.get(kind)
  if (declaration === undefined) problems.push(`${page} documents an event \`${kind}\`, which does not exist.`)
  else
    return (
      await prettier.format(declaration, { ...(await prettier.resolveConfig(page)), parser: 'typescript' })
    ).trimEnd()
  return undefined
}

/** Every event is documented on the page on events. */
function checkEvents() {
  const text = existsSync(EVENTS_PAGE) ? readFileSync(EVENTS_PAGE, 'utf8') : ''
  for (const kind of events.keys()) {
    if (!text.includes(`<!-- event: ${kind} -->`))
      problems.push(`${EVENTS_PAGE} does not document the event \`${kind}\`.`)
  }
}

/** `docs/llms.txt` follows from the list of pages. */
function fillList() {
  const path = 'docs/llms.txt'
  const text = llmsText()
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return
  if (checkOnly) problems.push(`\`${path}\` differs from the list of pages: run \`npm run docs\`.`)
  else writeFileSync(path, text)
}

/** `homepage` and `bugs` follow from `repository`. */
function fillManifest() {
  const text = readFileSync('package.json', 'utf8')
  const manifest = JSON.parse(text)
  const address = manifest.repository.url.replace(/^git\+/, '').replace(/\.git$/, '')
  const expected = { homepage: `${address}#readme`, bugs: `${address}/issues` }
  if (Object.entries(expected).every(([name, value]) => manifest[name] === value)) return
  if (checkOnly)
    problems.push('`homepage` and `bugs` of package.json differ from its `repository`: run `npm run docs`.')
  else writeFileSync('package.json', `${JSON.stringify({ ...manifest, ...expected }, null, 2)}\n`)
}

function checkLinks(page, text) {
  for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)[^)]*\)/g)) {
    if (/^[a-z]+:/.test(target)) continue
    const [path = '', anchor] = target.split('#')
    const file = path === '' ? page : join(dirname(page), path)
    if (!existsSync(file)) problems.push(`${page} links to \`${target}\`, which does not exist.`)
    else if (anchor !== undefined && !anchorsOf(file).includes(anchor))
      problems.push(`${page} links to \`${target}\`, but \`${file}\` has no such heading.`)
  }
}

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(file) {
  return [...readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  )
}

function markdownIn(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))
    .sort()
}
