import type { Agent, request as HttpRequest } from 'node:http'
import type { Socket } from 'node:net'

/** The connections of one protocol. */
export interface Connections {
  readonly request: typeof HttpRequest
  readonly agent: Agent
  readonly defaultPort: number
  /** The socket's event for an open connection. */
  readonly opened: 'connect' | 'secureConnect'
}

/** Idle connections are closed before common load balancers drop them, after a minute; in ms. */
export const KEPT_FOR_MS = 55_000

const AGENT_OPTIONS = { keepAlive: true, scheduling: 'lifo', timeout: KEPT_FOR_MS } as const

const connectionsByProtocol = new Map<string, Promise<Connections>>()

/** Loaded on first use: `node:https` alone takes longer to load than a small harness. */
export function connectionsFor(protocol: string): Promise<Connections> {
  let connections = connectionsByProtocol.get(protocol)
  if (connections === undefined) {
    connections = protocol === 'https:' ? secureConnections() : plainConnections()
    connectionsByProtocol.set(protocol, connections)
  }
  return connections
}

async function plainConnections(): Promise<Connections> {
  const { Agent, request } = await import('node:http')
  return { request, agent: new Agent(AGENT_OPTIONS), defaultPort: 80, opened: 'connect' }
}

async function secureConnections(): Promise<Connections> {
  const { Agent, request } = await import('node:https')
  return { request, agent: new Agent(AGENT_OPTIONS), defaultPort: 443, opened: 'secureConnect' }
}

/** Open connections that no request has taken yet, by host and port. */
export const ahead = { connect: new Map<string, Socket>(), secureConnect: new Map<string, Socket>() }

export async function closeKept(): Promise<void> {
  destroyAll([[...ahead.connect.values()], [...ahead.secureConnect.values()]])
  for (const { agent } of await Promise.all(connectionsByProtocol.values())) {
    destroyAll(Object.values(agent.freeSockets))
  }
}

/** The agent's keys of connections begin with host and port. */
export function dropKept({ agent, defaultPort }: Connections, url: URL): void {
  const { host, port = defaultPort } = requestTarget(url)
  const names = Object.keys(agent.freeSockets).filter((name) => name.startsWith(`${host}:${port}:`))
  destroyAll(names.map((name) => agent.freeSockets[name]))
}

function destroyAll(lists: readonly (readonly Socket[] | undefined)[]): void {
  // A destroyed socket is removed from its list.
  for (const socket of lists.flatMap((list) => [...(list ?? [])])) socket.destroy()
}

interface Target {
  readonly host: string
  readonly port: number | undefined
  readonly path: string
  /** Host and port as in the URL. */
  readonly authority: string
}

/** A `URL` computes its properties on each access, and a model has few URLs. */
const targets = new WeakMap<URL, Target>()

export function requestTarget(url: URL): Target {
  let target = targets.get(url)
  if (target === undefined) {
    // The URL has brackets around an IPv6 address, the resolver expects none.
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const port = url.port === '' ? undefined : Number(url.port)
    target = { host, port, path: `${url.pathname}${url.search}`, authority: url.host }
    targets.set(url, target)
  }
  return target
}
