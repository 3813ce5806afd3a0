// The relative links of every packed page, and of `docs/llms.txt`, lead to packed files: the pages are read in `node_modules` and on the registry too.
import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join, posix } from 'node:path'

const packing = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'ignore'],
})
const [{ files }] = JSON.parse(packing)
const packed = new Set(files.map(({ path }) => path))
const pages = [...packed].filter((path) => /\.md$|llms\.txt$/.test(path))
const problems = pages.flatMap((page) =>
  [...readFileSync(join('.', page), 'utf8').matchAll(/\]\(([^)\s#]+)[^)]*\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target) && !packed.has(posix.join(posix.dirname(page), target)))
    .map((target) => `${page} links to \`${target}\`, which is not in the package.`),
)
// Every page of docs/ is in the package.
problems.push(
  ...readdirSync('docs')
    .filter((name) => name.endsWith('.md') && !packed.has(`docs/${name}`))
    .map((name) => `docs/${name} is not in the package.`),
)
if (problems.length === 0) console.log(`The links of ${pages.length} packed pages lead to packed files.`)
else {
  console.error(problems.join('\n'))
  process.exitCode = 1
}
