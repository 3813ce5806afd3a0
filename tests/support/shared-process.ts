import { afterAll, vi } from 'vitest'

/** What tests replace: the names of the properties by object. */
const REPLACED: readonly (readonly [object, readonly string[]])[] = [
  [globalThis, ['setTimeout', 'setInterval', 'setImmediate', 'fetch', 'Date', 'performance']],
  [console, ['log', 'warn', 'error']],
  [process, ['emitWarning', 'kill', 'exit', 'cwd']],
  [process.stdout, ['write']],
  [Math, ['random']],
]

const EVENTS = ['unhandledRejection', 'uncaughtException', 'warning', 'SIGTERM', 'SIGINT']

/**
 * Loaded before each test file that shares its process with others. A file that leaves its process changed fails, since otherwise a file
 * after it would, for a reason that it does not show.
 */
const before = processState()

afterAll(() => {
  vi.resetConfig()
  const after = processState()
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (name) => before.get(name) !== after.get(name),
  )
  if (changed.length > 0) throw new Error(`The tests of this file left their process changed: ${changed.join(', ')}.`)
})

function processState(): ReadonlyMap<string, unknown> {
  return new Map<string, unknown>([
    ['the working directory', process.cwd()],
    ...Object.entries(process.env).map(([name, value]) => [`the variable ${name}`, value] as const),
    ...REPLACED.flatMap(([of, names]) => names.map((name) => [`\`${name}\``, Reflect.get(of, name)] as const)),
    ...EVENTS.map((event) => [`listeners of \`${event}\``, process.listenerCount(event)] as const),
  ])
}
