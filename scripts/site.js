// Builds the site into `.build/site`: the pages of docs/, the API reference from the doc comments, `llms.txt` and `llms-full.txt`.
// A link to a page or a heading that does not exist fails the build.
//   npm run site
//   npm run site:dev        serves it, and follows what is written
// `SITE_BASE=/thinharness/` for a site below a path; `SITE_FOLDER` for another folder; `SITE_API=no` without the API reference.
import { readFileSync, readdirSync, rmSync, watch } from 'node:fs'
import { join, posix } from 'node:path'
import { build, createServer } from 'vitepress'
import { stageApi } from './site-api.js'
import { SITE, SOURCE, stagePages } from './staging.js'

const base = process.env['SITE_BASE'] ?? '/'

rmSync(SOURCE, { recursive: true, force: true })
stagePages()
await stageApi()
if (process.argv.includes('--dev')) await serve()
else {
  rmSync(SITE, { recursive: true, force: true })
  await build('docs')
  report(problemsOfSite())
}

async function serve() {
  const server = await createServer('docs', { host: '127.0.0.1' })
  await server.listen()
  server.printUrls()
  watch('docs', { recursive: true }, () => {
    // A page that is half written is read again at its next change.
    try {
      stagePages()
    } catch (error) {
      console.error(error)
    }
  })
}

/** What VitePress does not check: links to headings, and to files that are not pages. */
function problemsOfSite() {
  const files = new Set(readdirSync(SITE, { recursive: true }).map((name) => name.replaceAll('\\', '/')))
  const html = [...files].filter((name) => name.endsWith('.html') && name !== '404.html')
  const texts = new Map(html.map((name) => [name, readFileSync(join(SITE, name), 'utf8')]))
  const anchors = new Map([...texts].map(([name, text]) => [name, new Set(matches(text, /\sid="([^"]+)"/g))]))
  return html.flatMap((name) =>
    matches(texts.get(name) ?? '', /<(?:a|img|link|script)\b[^>]*?\s(?:href|src)="([^"]*)"/g)
      .filter((target) => !/^([a-z]+:|$)/.test(target) && !isThere(decodeURI(target), name, files, anchors))
      .map((target) => ({ name, target })),
  )
}

function matches(text, pattern) {
  return [...text.matchAll(pattern)].map(([, found = '']) => found.replaceAll('&amp;', '&'))
}

function isThere(target, from, files, anchors) {
  const [path = '', anchor] = target.split('#')
  const whole = path.startsWith(base) ? path.slice(base.length) : posix.join(posix.dirname(from), path)
  const file = [path === '' ? from : whole, `${whole}.html`, posix.join(whole, 'index.html')].find((each) =>
    files.has(each),
  )
  if (file === undefined || !anchors.has(file)) return file !== undefined
  return anchor === undefined || anchor === '' || anchors.get(file).has(anchor)
}

function report(problems) {
  if (problems.length === 0) return console.log(`The site is in ${SITE}.`)
  // A link of the sidebar is on every page.
  for (const target of new Set(problems.map((problem) => problem.target))) {
    const pages = problems.filter((problem) => problem.target === target).map(({ name }) => name)
    const others = pages.length === 1 ? '' : ` and ${pages.length - 1} other pages`
    console.error(`${pages[0]}${others}: the link \`${target}\` leads nowhere.`)
  }
  process.exitCode = 1
}
