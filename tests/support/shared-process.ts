import { afterAll, vi } from 'vitest'

/** What tests replace: the names of the properties by object. */
const REPLACED: readonly (readonly [object, readonly string[]])[] = [
  [globalThis, ['setTimeout', 'clearTimeout', 'setInterval', 'setImmediate', 'fetch', 'Date', 'performance']],
  [Date, ['now']],
  [JSON, ['stringify', 'parse']],
  [console, ['log', 'warn', 'error']],
  [process, ['emitWarning', 'kill', 'cwd']],
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
  const changed = changedSince(before)
  if (changed.length > 0) throw new Error(`The tests of this file left their process changed: ${changed.join(', ')}.`)
})

// After that, vitest restores every spy of the file once more: to a fake timer, say, if that is what the spy had replaced.
const shared = globalThis as { functionsOfTheProcess?: ReadonlyMap<string, unknown> }
const earlier = changedSince((shared.functionsOfTheProcess ??= replaced()), replaced())
if (earlier.length > 0) throw new Error(`A file before this one left their process changed: ${earlier.join(', ')}.`)

/** The names of what differs. */
function changedSince(then: ReadonlyMap<string, unknown>, now = processState()): string[] {
  return [...new Set([...then.keys(), ...now.keys()])].filter((name) => then.get(name) !== now.get(name))
}

function processState(): ReadonlyMap<string, unknown> {
  return new Map<string, unknown>([
    ['the working directory', process.cwd()],
    ...Object.entries(process.env).map(([name, value]) => [`the variable ${name}`, value] as const),
    ...replaced(),
    ...EVENTS.map((event) => [`listeners of \`${event}\``, process.listenerCount(event)] as const),
  ])
}

function replaced(): ReadonlyMap<string, unknown> {
  return new Map(
    REPLACED.flatMap(([of, names]) => names.map((name) => [`\`${name}\``, Reflect.get(of, name)] as const)),
  )
}
