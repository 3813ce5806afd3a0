// Real command lines against the policy: for every line of a folder's files, no rule that allows some of its commands may let
// another command through, and a rule that denies one of them must not miss it. What a line executes is found out by bash
// itself, in a sandbox without programs: every command is recorded, and does nothing.
//   npm run build:js && node .build/rigs/commands/run.js <folder> [--most 5000]
// The folder has `*.json` files, each a list of command lines. Nothing of it is kept.
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { explain } from 'thinharness/policy'
import type { Rule } from 'thinharness/policy'
import { executedBy } from './execute.js'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { most: { type: 'string', default: '5000' }, processes: { type: 'string', default: '2' } },
})
const [folder = '.'] = positionals

const lines = (await commandLines(folder)).slice(0, Number(values.most))
const problems: string[] = []
const counts = { lines: lines.length, executing: 0, commands: 0, allowed: 0, asked: 0, alone: 0 }
const queue = lines.entries()
await Promise.all(Array.from({ length: Number(values.processes) }, work))
console.log(JSON.stringify(counts))
for (const problem of problems.slice(0, 50)) console.log(problem)
console.log(`${lines.length} lines, ${problems.length} problems`)
process.exitCode = problems.length === 0 ? 0 : 1

async function work(): Promise<void> {
  for (const [, line] of queue) check(line, await executedBy(line))
}

function check(line: string, executed: ReadonlySet<string>): void {
  const names = [...executed]
  counts.commands += names.length
  if (names.length > 0) counts.executing++
  const all = decide(names.map(allowing), line)
  if (all === 'allow') counts.allowed++
  if (decide([{ decision: 'allow', tool: 'bash' }], line) === 'ask') counts.asked++
  for (const name of names) {
    const others = names.filter((other) => other !== name)
    // Every command but one is allowed, and only one is.
    if (decide(others.map(allowing), line) === 'allow')
      problems.push(`lets \`${name}\` through: ${JSON.stringify(line)}`)
    if (others.length > 0 && decide([allowing(name)], line) === 'allow')
      problems.push(`\`${name}\` lets others through: ${JSON.stringify(line)}`)
    if (others.length === 0 && all === 'allow') counts.alone++
    const denied = decide(
      [
        { decision: 'allow', tool: 'bash' },
        { decision: 'deny', command: pattern(name) },
      ],
      line,
    )
    if (denied === 'allow' || denied === null) problems.push(`a deny misses \`${name}\`: ${JSON.stringify(line)}`)
  }
}

function allowing(name: string): Rule {
  return { decision: 'allow', command: pattern(name) }
}

/** A pattern for all commands of a program. */
function pattern(name: string): string {
  return `'${name.replaceAll("'", `'\\''`)}' *`
}

function decide(rules: readonly Rule[], command: string): string | null {
  return explain(rules, { tool: 'bash', args: { command } }).decision
}

async function commandLines(from: string): Promise<readonly string[]> {
  const files = (await readdir(from)).filter((name) => name.endsWith('.json')).sort()
  const lists = await Promise.all(
    files.map(async (name) => JSON.parse(await readFile(join(from, name), 'utf8')) as readonly string[]),
  )
  return [...new Set(lists.flat())]
}
