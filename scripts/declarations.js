// The declarations of `dist` name each other by relative paths: what `#core/…` means stands in a package.json that points to the source.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, posix } from 'node:path'

const files = readdirSync('dist', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.d.ts'))
for (const file of files.map((name) => name.replaceAll('\\', '/'))) {
  const text = readFileSync(`dist/${file}`, 'utf8')
  const relative = (path) => {
    const target = posix.relative(dirname(file), path)
    return target.startsWith('.') ? target : `./${target}`
  }
  const written = text.replace(/(['"])#([\w./-]+)\1/g, (_, quote, path) => `${quote}${relative(path)}${quote}`)
  if (written !== text) writeFileSync(`dist/${file}`, written)
}
