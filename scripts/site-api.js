// The API reference: a page for each import path, from the doc comments of its exports.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { entries } from './entries.js'
import { SOURCE, apiPage, described } from './staging.js'

const KEPT = '.build/site-api'

/** Writes `api/`. */
export async function stageApi() {
  if (described().length > 0) await prepare()
  mkdirSync(join(SOURCE, 'api'), { recursive: true })
  const what = summaries()
  for (const { specifier } of described()) {
    const page = `${apiPage(specifier)}.md`
    const head = { editLink: false, prev: false, next: false, description: `The exports of ${specifier}` }
    const text = readFileSync(join(KEPT, 'raw', page), 'utf8').replace(/^# .*$/m, `# ${specifier}`)
    writeFileSync(join(SOURCE, 'api', page), `---\n${JSON.stringify(head)}\n---\n\n${text}`)
  }
  const rows = described().map(
    ({ specifier }) => `| [\`${specifier}\`](./${apiPage(specifier)}.md) | ${what.get(specifier) ?? ''} |`,
  )
  const head = { editLink: false, description: 'Each import path with its exports' }
  writeFileSync(
    join(SOURCE, 'api/index.md'),
    `---\n${JSON.stringify(head)}\n---\n\n# API\n\nMade from the doc comments of the source.\n\n| Import | Contains |\n| --- | --- |\n${rows.join('\n')}\n`,
  )
}

/** What each import path contains, by the table of docs/README.md, in which a row can name several. */
function summaries() {
  const rows = [...readFileSync('docs/README.md', 'utf8').matchAll(/^\| (`thinharness.*?) +\| (.*?) +\|$/gm)]
  return new Map(
    rows.flatMap(([, paths = '', text = '']) =>
      [...paths.matchAll(/`([^`]+)`/g)].map(([, path = '']) => [path.replace('…', 'thinharness'), text]),
    ),
  )
}

/** Generates the pages, unless an earlier build did for the same source. */
async function prepare() {
  const key = keyOf(['src', 'scripts/site-api.js', 'scripts/staging.js', 'package-lock.json'])
  const mark = join(KEPT, 'key')
  if (!existsSync(mark) || readFileSync(mark, 'utf8') !== key) {
    rmSync(KEPT, { recursive: true, force: true })
    await generate()
    writeFileSync(mark, key)
  }
}

function keyOf(paths) {
  const hash = createHash('sha256')
  for (const path of paths.flatMap(filesBelow).sort()) hash.update(path).update(readFileSync(path))
  return hash.digest('hex')
}

function filesBelow(path) {
  if (path !== 'src') return [path]
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

async function generate() {
  const { Application } = await import('typedoc')
  const app = await Application.bootstrapWithPlugins({
    entryPoints: entries.map(({ source }) => source),
    tsconfig: 'tsconfig.json',
    // The types are checked elsewhere.
    skipErrorChecking: true,
    plugin: ['typedoc-plugin-markdown', 'typedoc-vitepress-theme'],
    out: join(KEPT, 'raw'),
    docsRoot: KEPT,
    readme: 'none',
    disableSources: true,
    excludeInternal: true,
    excludePrivate: true,
    excludeExternals: true,
    hideGenerator: true,
    hideBreadcrumbs: true,
    hidePageHeader: true,
    useHTMLAnchors: true,
    tableColumnSettings: { hideModifiers: true, hideDefaults: true },
    groupOrder: ['Functions', 'Classes', 'Variables', '*'],
    parametersFormat: 'table',
    interfacePropertiesFormat: 'table',
    classPropertiesFormat: 'table',
    propertyMembersFormat: 'table',
    typeDeclarationFormat: 'table',
    outputFileStrategy: 'modules',
    flattenOutputFiles: true,
    entryFileName: 'overview',
    logLevel: 'Error',
  })
  const project = await app.convert()
  if (project === undefined) throw new Error('typedoc could not read the import paths.')
  // The pages have the names of the import paths, not those of the files.
  for (const { name, specifier } of entries) {
    const module = project.children?.find((child) => child.name === name.replace(/\/index$/, ''))
    if (module !== undefined) module.name = apiPage(specifier)
  }
  await app.generateOutputs(project)
}
