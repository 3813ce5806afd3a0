// From the files of the repository to the pages of the site: which file becomes which page, and links that lead there.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { entries } from './entries.js'
import { llmsText, sections } from './pages.js'

/** Where the site is built, and where its pages are staged. */
export const SITE = process.env['SITE_FOLDER'] ?? '.build/site'
export const SOURCE = `${SITE}-source`
const LANDING = 'docs/.vitepress/index.md'
const ASSETS = ['docs/pictures', 'docs/tracing']
/** Files outside of `docs`, and pages that have another name on the site. */
const RENAMED = {
  [LANDING]: 'index.md',
  'docs/README.md': 'pages.md',
  'docs/decisions/README.md': 'decisions/index.md',
  'CONTEXT.md': 'glossary.md',
  'CHANGELOG.md': 'changelog.md',
  'SECURITY.md': 'security.md',
  'CONTRIBUTING.md': 'contributing.md',
  'README.md': 'index.md',
  'examples/README.md': 'examples/index.md',
}

/** The pages: from the path of a file to that of its page. */
export function pageMap() {
  const markdown = (folder) => readdirSync(folder).filter((name) => name.endsWith('.md'))
  const examples = readdirSync('examples').filter((name) => existsSync(`examples/${name}/README.md`))
  return new Map([
    ...markdown('docs').map((name) => [`docs/${name}`, name]),
    ...markdown('docs/decisions').map((name) => [`docs/decisions/${name}`, `decisions/${name}`]),
    ...examples.map((name) => [`examples/${name}/README.md`, `examples/${name}.md`]),
    ...Object.entries(RENAMED).filter(([file]) => existsSync(file)),
  ])
}

/** Writes every page but the API reference, and the assets. */
export function stagePages() {
  const pages = pageMap()
  const summaries = new Map(
    sections().flatMap(({ pages: listed }) => listed.map(({ path, summary }) => [posix.join('docs', path), summary])),
  )
  for (const folder of ASSETS) cpSync(folder, join(SOURCE, folder.slice('docs/'.length)), { recursive: true })
  cpSync('docs/.vitepress/public', join(SOURCE, 'public'), { recursive: true })
  const base = process.env['SITE_BASE'] ?? '/'
  write(
    'public/llms.txt',
    llmsText((path) => `${base}${(pages.get(posix.join('docs', path)) ?? path).replace(/\/index\.md$/, '.md')}`),
  )
  for (const [file, page] of pages) if (file !== 'README.md') write(page, staged(file, pages, summaries.get(file)))
}

function write(page, text) {
  mkdirSync(dirname(join(SOURCE, page)), { recursive: true })
  writeFileSync(join(SOURCE, page), text)
}

/** The text of a page: with its description, without marks, with the parts that it includes, and with links of the site. */
function staged(file, pages, summary) {
  const text = readFileSync(file, 'utf8')
    .replace(/<!-- include: (\S+?)#(\S+) -->/g, (_, from, heading) => relocated(section(from, heading), from, file))
    .replace(/<!-- picture: (.+?) \| (.+?) -->\n/g, (_, names, caption) => picture(names.split(' '), caption))
    .replace(/<!-- (snippet|event): \S+ -->\n+/g, '')
  const linked = withLinks(text, (target) => linkOf(target, file, pages))
  // Tests are not part of the site.
  const written = linked.replace(
    /(?<![[`])(\(?)`((?:tests|e2e)\/[^`*<{]*?\.ts)`(?!\])/g,
    (_, open, path) => `${open}[${open === '' ? `\`${path}\`` : 'test'}](${repository()}/blob/main/${path})`,
  )
  if (file === LANDING) return written
  const head = { edit: `${repository()}/edit/main/${file}`, ...(summary === undefined ? {} : { description: summary }) }
  return `---\n${JSON.stringify(head)}\n---\n\n${written}`
}

/** A picture of docs/pictures, or two of them for the two themes; nothing as long as it was not taken. */
function picture(names, caption) {
  const files = names.map((name) =>
    ['svg', 'png'].map((end) => `docs/pictures/${name}.${end}`).find((path) => existsSync(path)),
  )
  if (files.includes(undefined)) return ''
  const themes = files.length === 1 ? [''] : [' class="only-light"', ' class="only-dark"']
  const images = files.map(
    (path, at) =>
      `<img${themes[at]} src="../${path.slice('docs/'.length)}" alt="${caption.replaceAll('`', '')}" loading="lazy">`,
  )
  return `<figure>\n${images.join('\n')}\n<figcaption>${caption.replace(/`([^`]+)`/g, '<code>$1</code>')}</figcaption>\n</figure>\n`
}

/** The text below a heading of a page, without the heading. */
function section(file, heading) {
  const found = readFileSync(file, 'utf8')
    .split(/^## /m)
    .find((part) => slugOf(part.split('\n', 1)[0] ?? '') === heading)
  if (found === undefined) throw new Error(`${file} has no section \`${heading}\`.`)
  return found.slice(found.indexOf('\n')).trim()
}

/** Links of one file, as they are written in another. */
function relocated(text, from, to) {
  return withLinks(text, (target) =>
    isAddress(target) || target.startsWith('#')
      ? target
      : posix.relative(posix.dirname(to), posix.join(posix.dirname(from), target)),
  )
}

/** Replaces the targets of links and pictures outside of code. */
function withLinks(text, change) {
  return text
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part, at) =>
      at % 2 === 1
        ? part
        : part
            .replace(/\]\(([^)\s]+)\)/g, (_, target) => `](${change(target)})`)
            .replace(
              /\b(src|srcset|href)="([^"]+)"/g,
              (_, name, target) => `${name}="${change(target).replace(/\.md(?=#|$)/, '.html')}"`,
            ),
    )
    .join('')
}

const isAddress = (target) => /^[a-z]+:/.test(target)

const isPicture = (path) => /\.(svg|png)$/.test(path) && ASSETS.some((folder) => path.startsWith(`${folder}/`))

function linkOf(target, file, pages) {
  if (isAddress(target) || target.startsWith('#')) return target
  const [path = '', anchor] = target.split('#')
  const to = posix.join(posix.dirname(file), path)
  const here = posix.dirname(pages.get(file) ?? '')
  const end = anchor === undefined ? '' : `#${anchor}`
  const page = pages.get(to) ?? (isPicture(to) ? to.slice('docs/'.length) : null)
  if (page !== null) return `./${posix.relative(here, page)}${end}`
  if (to === 'docs/llms.txt') return '/llms.txt'
  if (!existsSync(to)) throw new Error(`${file} links to \`${target}\`, which does not exist.`)
  return `${repository()}/blob/main/${to}${end}`
}

export function repository() {
  const { repository: place } = JSON.parse(readFileSync('package.json', 'utf8'))
  return place.url.replace(/^git\+/, '').replace(/\.git$/, '')
}

/** The anchor of a heading, as GitHub makes it: one link works in both places. */
export function slugOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')
}

/** The sidebar: the list of pages, and the import paths below `/api/`. */
export function sidebar() {
  const pages = pageMap()
  const lists = sections().map(({ heading, pages: listed }, at) => ({
    text: heading,
    collapsed: at > 0,
    items: listed.map(({ title, path }) => ({
      text: title,
      link: `/${(pages.get(posix.join('docs', path)) ?? path).replace(/(index)?\.md$/, '')}`,
    })),
  }))
  const paths = described().map(({ specifier }) => ({ text: specifier, link: `/api/${apiPage(specifier)}` }))
  return { '/': lists, '/api/': [{ text: 'API', link: '/api/', items: paths }] }
}

/** The import paths that have a page: none of them with `SITE_API=no`, which saves some seconds. */
export const described = () => (process.env['SITE_API'] === 'no' ? [] : entries)

/** `thinharness/ui/client` is described on `api/ui-client.md`. */
export const apiPage = (specifier) => specifier.split('/').slice(1).join('-') || 'thinharness'
