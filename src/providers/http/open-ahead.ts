import type { Agent, AgentOptions } from 'node:http'
import { isIP } from 'node:net'
import type { Socket } from 'node:net'
import type { RequestGuard } from './request-guard.js'

/** A server, and the agent that opens connections to it. */
export interface Destination {
  readonly agent: Agent
  readonly host: string
  readonly port: number
  /** The socket's event for an open connection. */
  readonly opened: 'connect' | 'secureConnect'
}

/**
 * Opens a connection to a server and keeps it in `idle`, for the next request that the agent has no connection for. Nothing is sent
 * over it. Does nothing if the agent has an idle one. Rejects with the error of the connection.
 */
export async function openAhead(
  { agent, host, port, opened }: Destination,
  idle: Map<string, Socket>,
  guard: RequestGuard,
): Promise<void> {
  const name = `${host}:${port}`
  const isThere = Object.keys(agent.freeSockets).some((free) => free.startsWith(`${name}:`)) || idle.has(name)
  if (isThere) return
  const open = takingFrom(agent, idle)
  const { options: settings } = agent as unknown as { readonly options: AgentOptions }
  const socket = open({ ...settings, host, port, servername: isIP(host) === 0 ? host : '' })
  guard.onStop(() => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    socket.once(opened, resolve)
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('it was closed')))
  })
  guard.finish()
  idle.set(name, socket)
  socket.once('close', () => {
    if (idle.get(name) === socket) idle.delete(name)
  })
  socket.on('error', leave)
  socket.on('timeout', destroy)
  // A socket that is not read does not notice that the server has closed it.
  socket.resume().unref()
}

interface Opening extends AgentOptions {
  readonly host: string
  readonly servername: string
}

type Open = (options: Opening, done?: unknown) => Socket

/** The agents' own way to open connections. */
const ways = new WeakMap<Agent, Open>()

/** How the agent opens a connection. From now on it takes one of `idle` first. */
function takingFrom(agent: Agent, idle: Map<string, Socket>): Open {
  const known = ways.get(agent)
  if (known !== undefined) return known
  const own = agent as unknown as { createConnection: Open }
  const open = own.createConnection.bind(agent)
  own.createConnection = (options, done) => taken(idle, `${options.host}:${options.port}`) ?? open(options, done)
  ways.set(agent, open)
  return open
}

function taken(idle: Map<string, Socket>, name: string): Socket | undefined {
  const socket = idle.get(name)
  idle.delete(name)
  if (socket === undefined || socket.destroyed || !socket.writable) return undefined
  return socket.off('error', leave).off('timeout', destroy).ref()
}

function leave(): void {
  // The next request opens another one.
}

function destroy(this: Socket): void {
  this.destroy()
}
