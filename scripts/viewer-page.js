// Builds the page of the run viewer into one HTML file, `dist/viewer/page.html` or the path that is given: script and style inside,
// and a content security policy that allows these two by their digests and nothing else. `viewer()` puts the logs in place of
// `<!--logs-->`; for a page that is served live it replaces `connect-src 'none'` by `connect-src 'self'`.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const MOST_BYTES = 300_000
const root = fileURLToPath(new URL('..', import.meta.url))
const folder = resolve(root, 'src/viewer/page')
const target = resolve(root, process.argv[2] ?? 'dist/viewer/page.html')

/** `#util/json.js` names the source. */
const rooms = {
  name: 'rooms',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^#/ }, ({ path }) => ({ path: resolve(root, 'src', `${path.slice(1, -'.js'.length)}.ts`) })),
}

const { outputFiles } = await build({
  entryPoints: [resolve(folder, 'main.tsx')],
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['es2022', 'chrome120', 'firefox120', 'safari17'],
  charset: 'utf8',
  legalComments: 'none',
  outdir: resolve(root, '.build/viewer'),
  write: false,
  define: { 'process.env.NODE_ENV': '"production"' },
  jsx: 'automatic',
  jsxImportSource: 'preact',
  plugins: [rooms],
})
const script = textOf('.js')
const style = textOf('.css')
const policy = [
  "default-src 'none'",
  `script-src ${digestOf(script)}`,
  `style-src ${digestOf(style)}`,
  'img-src data: blob:',
  "connect-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

// As functions: `$` in a script is no pattern.
const page = readFileSync(resolve(folder, 'page.html'), 'utf8')
  .replace('/*policy*/', () => policy)
  .replace(/\s*\/\*style\*\/\s*/, () => style)
  .replace(/\s*\/\*script\*\/\s*/, () => script)
const bytes = Buffer.byteLength(page)
if (bytes > MOST_BYTES) throw new Error(`The page of the viewer has ${bytes} bytes; the most is ${MOST_BYTES}.`)
mkdirSync(dirname(target), { recursive: true })
writeFileSync(target, page)

function textOf(extension) {
  const found = outputFiles.find(({ path }) => path.endsWith(extension))
  if (found === undefined) throw new Error(`Expected the build of the viewer to give a ${extension} file.`)
  return found.text.trim()
}

function digestOf(text) {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}
