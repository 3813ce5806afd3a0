import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer, request as httpRequest } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { connect, isIP } from 'node:net'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { messageOf } from '#contracts/errors.js'
import type { Environment } from '../process/environment.js'
import { shellQuoted } from '../process/run-process.js'
import { isAmong, plainHost } from '../web/host-list.js'
import { isPublicAddress } from '../web/addresses.js'
import type { HostAddress, Lookup } from '../web/options.js'

/** Name of the socket in the folder of the proxy. */
export const SOCKET_NAME = 'proxy.sock'

/** A refused host is remembered for the result, up to this many. */
const MOST_REFUSED = 20
/** Time to connect to one address, in ms. */
const CONNECT_MS = 15_000
/** The paths of Unix sockets have at most 107 bytes. */
const LONGEST_FOLDER = 80
/** Headers of one connection, which are not passed on. */
const HOP_BY_HOP = ['connection', 'proxy-connection', 'keep-alive', 'proxy-authorization', 'te', 'trailer', 'upgrade']

/**
 * The way out of a sandbox without a network: an HTTP proxy at a Unix socket, for one command, that connects to named hosts
 * only. Names are looked up here, and connections use the checked addresses. An address that is not public must be named itself,
 * as address or `localhost`; a name that leads to one is not enough.
 */
export class SandboxProxy {
  /** Contains nothing but the socket. */
  readonly folder: string
  readonly #server: Server
  readonly #hosts: readonly string[]
  readonly #lookup: Lookup
  readonly #sockets = new Set<Duplex>()
  readonly #refused = new Set<string>()

  private constructor(folder: string, hosts: readonly string[], lookup: Lookup) {
    this.folder = folder
    this.#hosts = hosts
    this.#lookup = lookup
    this.#server = createServer((request, response) => void this.#forward(request, response))
    this.#server.on('connect', (request, socket, head) => void this.#tunnel(request, socket, head))
    this.#server.on('connection', (socket) => this.#keep(socket))
    this.#server.on('clientError', (_error, socket) => socket.destroy())
  }

  static async open(hosts: readonly string[], lookup: Lookup): Promise<SandboxProxy> {
    const parent = Buffer.byteLength(tmpdir()) > LONGEST_FOLDER ? '/tmp' : tmpdir()
    const folder = await mkdtemp(join(parent, 'thinharness-network-'))
    const proxy = new SandboxProxy(folder, hosts, lookup)
    const path = join(folder, SOCKET_NAME)
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject)
      proxy.#server.listen(path, resolve)
    })
    proxy.#server.unref()
    await chmod(path, 0o600)
    return proxy
  }

  /** Hosts that were asked for and are not allowed, in the order of the first request. */
  get refused(): readonly string[] {
    return [...this.#refused]
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
    await rm(this.folder, { recursive: true, force: true })
  }

  #keep(socket: Duplex): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    socket.on('error', () => socket.destroy())
  }

  async #tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    try {
      const url = targetUrl(`http://${request.url ?? ''}`)
      const server = await this.#connect(url, url.port === '' ? 80 : Number(url.port))
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      server.write(head)
      server.pipe(client).pipe(server)
      server.once('close', () => client.destroy())
      client.once('close', () => server.destroy())
    } catch (error) {
      const { status, text } = answerTo(error)
      client.end(`HTTP/1.1 ${status}\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n${text}\n`)
    }
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const url = targetUrl(request.url ?? '')
      const socket = await this.#connect(url, url.port === '' ? 80 : Number(url.port))
      const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !HOP_BY_HOP.includes(name)))
      const { method } = request
      const path = url.pathname + url.search
      const host = { ...headers, host: url.host, connection: 'close' }
      const outer = httpRequest({ createConnection: () => socket, method, path, headers: host })
      outer.once('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      outer.on('error', () => response.destroy())
      response.once('close', () => socket.destroy())
      request.pipe(outer)
    } catch (error) {
      const { status, text } = answerTo(error)
      const [code = '502'] = status.split(' ')
      response.writeHead(Number(code), { 'content-type': 'text/plain', connection: 'close' }).end(`${text}\n`)
    }
  }

  async #connect(url: URL, port: number): Promise<Socket> {
    const host = plainHost(url.hostname)
    if (!isAmong(host, this.#hosts)) throw this.#refusal(host, 'it is not among the hosts of `network`')
    const literal = isIP(host)
    const addresses: readonly HostAddress[] =
      literal === 0 ? await this.#lookup(host) : [{ address: host, family: literal === 6 ? 6 : 4 }]
    const closed = addresses.find(({ address }) => !isPublicAddress(address) && !this.#mayReach(host, address))
    if (closed !== undefined) throw this.#refusal(host, 'it has an address that is not public')
    let failure: unknown = new Error('it has no address')
    for (const { address } of addresses) {
      try {
        const socket = await connectTo(address, port)
        this.#keep(socket)
        return socket
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  /** An address that is not public is reached by being named. */
  #mayReach(host: string, address: string): boolean {
    return isAmong(address, this.#hosts) || host === 'localhost'
  }

  #refusal(host: string, reason: string): Refusal {
    if (this.#refused.size < MOST_REFUSED) this.#refused.add(host)
    return new Refusal(`The sandbox refuses connections to \`${host}\`: ${reason}.`)
  }
}

class Refusal extends Error {}

function targetUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'http:' && url.hostname !== '') return url
  throw new Refusal('The sandbox forwards HTTP requests and tunnels only.')
}

function answerTo(error: unknown): { readonly status: string; readonly text: string } {
  if (error instanceof Refusal) return { status: '403 Forbidden', text: error.message }
  return { status: '502 Bad Gateway', text: `The host could not be reached: ${messageOf(error)}` }
}

function connectTo(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    socket.setTimeout(CONNECT_MS, () => socket.destroy(new Error('it does not answer')))
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.setTimeout(0)
      socket.off('error', reject)
      resolve(socket)
    })
  })
}

/** The port of the relay on the loopback device of the sandbox, which no other process has. */
const PORT = 31_280

/** Connects the loopback device of the sandbox with the proxy. */
export interface Relay {
  /** The folder of the proxy's socket. */
  readonly folder: string
  readonly program: 'socat' | 'node'
  /** Absolute. */
  readonly path: string
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

/** Begins the relay as an orphan, so that no `wait` of the command waits for it, and waits until it listens. */
export function relayScript({ folder, program, path }: Relay): string {
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
