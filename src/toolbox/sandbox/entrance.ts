import { shellQuoted } from '../process/run-process.js'
import type { Environment } from '../process/environment.js'
import { SOCKET_NAME } from './proxy.js'

/** The port of the relay on the loopback device of the sandbox, which no other process has. */
const PORT = 31_280

/** The work in the sandbox before the program begins. */
export interface Entrance {
  /** Absolute path of the shell. */
  readonly sh: string
  /** The file that must be at a path, as device and number: a path that another command has replaced is noticed. */
  readonly identities: ReadonlyMap<string, string>
  readonly relay: Relay | null
}

/** Connects the loopback device of the sandbox with the proxy. */
export interface Relay {
  /** The folder of the proxy's socket. */
  readonly folder: string
  readonly program: 'socat' | 'node'
  /** Absolute. */
  readonly path: string
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

/** Variables that make programs use the relay. */
export function relayEnvironment(hosts: readonly string[]): Environment {
  const address = `http://127.0.0.1:${PORT}`
  const proxies = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'all_proxy']
  const direct = ['localhost', '127.0.0.1', '::1'].filter((host) => !hosts.includes(host)).join(',')
  return {
    ...Object.fromEntries(proxies.map((name) => [name, address])),
    no_proxy: direct,
    NO_PROXY: direct,
    // For `fetch` of Node, from version 24 on.
    NODE_USE_ENV_PROXY: '1',
  }
}

/** Begins the relay as an orphan, so that no \`wait\` of the command waits for it, and waits until it listens. */
function relayScript({ folder, program, path }: Relay): string {
  const socket = `${folder}/${SOCKET_NAME}`
  const listen =
    program === 'socat'
      ? `${shellQuoted(path)} TCP-LISTEN:${PORT},bind=127.0.0.1,fork,reuseaddr ${shellQuoted(`UNIX-CONNECT:${socket}`)}`
      : `${shellQuoted(path)} -e ${shellQuoted(NODE_RELAY)} ${shellQuoted(socket)}`
  const hex = PORT.toString(16).toUpperCase().padStart(4, '0')
  return `(${listen} >/dev/null 2>&1 3>&- &)
n=0; until grep -q ':${hex} ' /proc/net/tcp || [ $n = 300 ]; do n=$((n + 1)); sleep 0.01; done
`
}

const NODE_RELAY = `const net = require('node:net')
net.createServer((inner) => {
  const outer = net.connect(process.argv[1])
  inner.pipe(outer).pipe(inner)
  inner.on('error', () => outer.destroy()).on('close', () => outer.destroy())
  outer.on('error', () => inner.destroy()).on('close', () => inner.destroy())
}).listen(${PORT}, '127.0.0.1')`
