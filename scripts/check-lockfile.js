// The lockfile says which packages, and no registry: an address of a registry in it would bind everybody to
// that registry.
import { readFileSync } from 'node:fs'

const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
const bound = Object.entries(packages).filter(([, { resolved, link }]) => resolved !== undefined && link !== true)
if (bound.length === 0) console.log(`${Object.keys(packages).length} packages, none bound to a registry.`)
else {
  const names = bound.slice(0, 5).map(([name]) => name)
  console.error(`package-lock.json has \`resolved\` for ${bound.length} packages, such as ${names.join(', ')}.`)
  process.exitCode = 1
}
