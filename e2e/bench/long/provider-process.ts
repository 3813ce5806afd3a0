// The provider in a process of its own, so that the CPU time of the other side can be measured. Prints its addresses.
import { exploringProvider } from './explorer.js'
import type { Exploration } from './explorer.js'

const provider = await exploringProvider(JSON.parse(process.argv[2] ?? '') as Exploration)
console.log(JSON.stringify(provider.url))
// The process that started this one has ended.
process.stdin.resume().on('end', () => process.exit())
