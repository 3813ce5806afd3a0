import { shellQuoted } from '../process/run-process.js'
import { relayScript } from './proxy.js'
import type { Relay } from './proxy.js'

/** The work in the sandbox before the program begins. */
export interface Entrance {
  /** Absolute path of the shell. */
  readonly sh: string
  /** The file that must be at a path, as device and number: a path that another command has replaced is noticed. */
  readonly identities: ReadonlyMap<string, string>
  readonly relay: Relay | null
}

/** Exit code and message of a command whose files were replaced while its sandbox was made. */
const REPLACED = `{ echo 'The sandbox was not entered: a protected file was replaced meanwhile. Try again.' >&2; exit 126; }`

/** The programs of the system are found, whatever the search path of the command. */
const SEARCH = 'path=${PATH-} PATH=${PATH-}:/usr/bin:/bin\n'

/** Says that the sandbox is complete; whoever starts the program may listen at this descriptor. */
const ENTERED = '{ echo >&3; } 2>/dev/null; exec 3>&-\n'

/** Each argument of a program has a limit of 128 KiB. */
const CHECKS_AT_ONCE = 200

/** The program and the arguments before a program and its arguments. */
export function entranceCommand({ sh, identities, relay }: Entrance): readonly string[] {
  const script = `${SEARCH}while [ "$1" != -- ]; do eval "$1"; shift; done; shift
${relay === null ? '' : relayScript(relay)}${ENTERED}PATH=$path\nexec "$@"`
  const checks = inPieces([...identities], CHECKS_AT_ONCE).map((some) => {
    const paths = some.map(([path]) => shellQuoted(path)).join(' ')
    const expected = shellQuoted(some.map(([, identity]) => identity).join('\n'))
    return `[ "$(stat -c %d:%i -- ${paths})" = ${expected} ] || ${REPLACED}`
  })
  return [sh, '-c', script, 'sandbox', ...checks, '--']
}

export function inPieces<T>(all: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size))
}
