import { extname } from 'node:path'
import { FileFailure } from '../workspace/failure.js'
import type { Environment } from '../process/environment.js'
import { findProgram } from '../process/find-program.js'
import type { SkillsOptions } from './options.js'

/** A program and its first arguments; nothing for a script that is run itself. */
export type Runner = readonly string[]

const PYTHON = [['uv', 'run'], ['python3'], ['python']]
const JAVASCRIPT = [['node'], [process.execPath]]
const TYPESCRIPT = [...(knowsTypeScript() ? [[process.execPath]] : []), ['tsx'], ['bun']]

/** From Node 22.18 on. */
function knowsTypeScript(): boolean {
  return Boolean(Reflect.get(process.features, 'typescript'))
}

/** Which runner of a list is there is found out for each call: programs come and go. */
const RUNNERS: ReadonlyMap<string, readonly Runner[]> = new Map([
  ['.py', PYTHON],
  ['.sh', [['bash'], ['sh']]],
  ['.bash', [['bash']]],
  ['.js', JAVASCRIPT],
  ['.mjs', JAVASCRIPT],
  ['.cjs', JAVASCRIPT],
  ['.ts', TYPESCRIPT],
  ['.mts', TYPESCRIPT],
  ['.cts', TYPESCRIPT],
  ['.go', [['go', 'run']]],
])

/**
 * How a script is run here, its program with its whole path.
 * @throws FileFailure `RunnerMissing`, which names what would run it.
 */
export async function runnerFor(
  script: string,
  own: SkillsOptions['runners'],
  environment: Environment,
): Promise<Runner> {
  const ending = extname(script).toLowerCase()
  const candidates = own?.[ending] === undefined ? (RUNNERS.get(ending) ?? []) : [own[ending]]
  for (const [name = '', ...first] of candidates) {
    const program = await findProgram(name, environment['PATH'] ?? '')
    if (program !== undefined) return [program, ...first]
  }
  if (candidates.length === 0) return []
  const names = candidates.map(([name]) => `\`${String(name)}\``).join(' or ')
  throw new FileFailure('RunnerMissing', `\`${ending}\` scripts cannot be run on this machine: it has no ${names}.`)
}
