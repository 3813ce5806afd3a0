import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { ownVersion } from '#util/platform/packages.js'
import { CommandError, EXIT } from './exit-codes.js'
import type { Terminal } from './terminal/terminal.js'

/** An example of `examples/examples.json`. */
interface Example {
  /** One line for somebody who chooses. */
  readonly shows: string
  /** Scripts of its `package.json`. Default: TypeScript that `start` runs without a build. */
  readonly scripts?: Readonly<Record<string, string>>
  /** In addition to this package and `zod`. */
  readonly dependencies?: Readonly<Record<string, string>>
}

export interface InitFlags {
  readonly example?: string
}

const STARTER = 'starter'
/** Runs TypeScript on every version of Node, without a build. */
const TYPESCRIPT = {
  scripts: { start: 'node --import tsx start.ts' },
  devDependencies: { '@types/node': '^22.0.0', tsx: '^4.20.0' },
}
const TSCONFIG = {
  compilerOptions: {
    ...{ target: 'ES2022', lib: ['ES2023', 'ESNext.Disposable', 'DOM', 'DOM.Iterable'], jsx: 'react-jsx' },
    ...{ module: 'NodeNext', types: ['node'], strict: true, skipLibCheck: true, noEmit: true },
  },
}

/**
 * `init [FOLDER]`: an example to begin with, which works without a key. Asks for one on a terminal; without a terminal it is the
 * starter. Nothing that is there is overwritten.
 */
export async function init(folder: string | undefined, flags: InitFlags, terminal: Terminal): Promise<number> {
  const home = join(dirname(createRequire(import.meta.url).resolve('thinharness/package.json')), 'examples')
  const examples = JSON.parse(readFileSync(join(home, 'examples.json'), 'utf8')) as Readonly<Record<string, Example>>
  if (flags.example !== undefined && !Object.hasOwn(examples, flags.example))
    throw new CommandError(`There is no example \`${flags.example}\`. There are:\n${listOf(examples)}`)
  if (folder !== undefined) checkEmpty(folder)
  const name = flags.example ?? (terminal.canAsk ? await asked(examples, terminal) : STARTER)
  if (name === null) return EXIT.interrupted
  const place = folder ?? (name === STARTER ? 'my-agent' : name)
  checkEmpty(place)
  make(place, { home, name, example: examples[name] ?? { shows: '' } })
  terminal.say(`Made ${place}. Next:`)
  terminal.out(`${place === '.' ? '' : `cd ${place}\n`}npm install\nnpm start\n`)
  return EXIT.done
}

function listOf(examples: Readonly<Record<string, Example>>): string {
  return Object.entries(examples)
    .map(([name, { shows }]) => `  ${name.padEnd(14)}${shows}`)
    .join('\n')
}

/** Version control may be there. */
function checkEmpty(folder: string): void {
  const place = resolve(folder)
  if (existsSync(place) && readdirSync(place).some((name) => name !== '.git'))
    throw new CommandError(`The folder \`${folder}\` is not empty: name a new one.`)
}

/** Null: the person has stopped. */
async function asked(examples: Readonly<Record<string, Example>>, terminal: Terminal): Promise<string | null> {
  const { isCancel, select } = await import('@clack/prompts')
  const options = Object.entries(examples).map(([value, { shows }]) => ({ value, label: `${value}: ${shows}` }))
  const name = await select({ ...terminal.questions, message: 'Which example?', options })
  return isCancel(name) ? null : name
}

interface Copied {
  readonly home: string
  readonly name: string
  readonly example: Example
}

function make(folder: string, { home, name, example: { scripts, dependencies } }: Copied): void {
  const place = resolve(folder)
  // What is for the repository alone stays there.
  const filter = (path: string): boolean => basename(path) !== 'tsconfig.json'
  cpSync(join(home, name), place, { recursive: true, filter })
  if (scripts === undefined) {
    cpSync(join(home, 'start.ts'), join(place, 'start.ts'))
    writeFileSync(join(place, 'tsconfig.json'), jsonOf(TSCONFIG))
  }
  const manifest = {
    name: basename(place)
      .toLowerCase()
      .replace(/[^a-z0-9-]+/g, '-'),
    ...{ private: true, type: 'module' },
    ...(scripts === undefined ? TYPESCRIPT : { scripts }),
    dependencies: { thinharness: `^${ownVersion()}`, zod: '^4.0.0', ...dependencies },
  }
  writeFileSync(join(place, 'package.json'), jsonOf(manifest))
  writeFileSync(join(place, '.gitignore'), 'node_modules/\n.thinharness/\ndata/\n')
}

function jsonOf(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
