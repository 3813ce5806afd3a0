// Builds the page of the chat example into one HTML file for `thinharness serve`, `dist/command/chat-page.html` or the path that is
// given: script and style inside, and a content security policy that allows these two by their digests, and requests to its server.
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = resolve(root, 'examples/chat')
const target = resolve(root, process.argv[2] ?? 'dist/command/chat-page.html')

const { outputFiles } = await build({
  entryPoints: [resolve(folder, 'page/page.tsx')],
  ...{
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'inline',
    write: false,
  },
  ...{ jsx: 'automatic', tsconfigRaw: {}, define: { 'process.env.NODE_ENV': '"production"' } },
})
const style = readFileSync(resolve(folder, 'page.css'), 'utf8')
// `</script` in a string of the program would end it.
const script = (outputFiles[0]?.text ?? '').replaceAll(/<\/(?=script)/gi, String.raw`<\/`)
const policy = [
  "default-src 'none'",
  `script-src ${digestOf(script)}`,
  `style-src ${digestOf(style)}`,
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

const page = replaced(
  replaced(
    replaced(
      readFileSync(resolve(folder, 'page.html'), 'utf8'),
      /<script type="module" src="[^"]*"><\/script>/,
      `<script type="module">${script}</script>`,
    ),
    /<link rel="stylesheet" href="[^"]*" \/>/,
    `<style>${style}</style>`,
  ),
  /(?=<meta name="viewport")/,
  `<meta http-equiv="content-security-policy" content="${policy}" />\n    `,
)
mkdirSync(dirname(target), { recursive: true })
writeFileSync(target, page)

/** As a function: `$` in a script is no pattern. */
function replaced(text, form, value) {
  if (!form.test(text)) throw new Error(`The page of the chat example has no ${form}.`)
  return text.replace(form, () => value)
}

function digestOf(text) {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}
