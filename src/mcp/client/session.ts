import { HarnessError, messageOf } from '../../contracts/errors.js'
import { withoutTerminalCodes } from '../../util/terminal.js'
import { isUnauthorized } from './call-failure.js'
import type { ConnectionSetup, McpConnection, McpSdk } from './connection.js'

/** How a session opens connections. */
export interface SessionOptions extends Omit<ConnectionSetup, 'onClosed' | 'onStderr' | 'onProblem'> {
  readonly serverId: string
  readonly loadSdk: () => Promise<McpSdk>
  /** Called for every connection that is opened; its tools may differ from those before. */
  readonly onOpened: () => void
}

/**
 * At most one connection to a server at a time, shared by all users: opened when first needed, and reopened after it was
 * lost. After a failure the next attempt waits, from half a second up to half a minute; requests in the meantime get the
 * same error.
 */
export class McpSession {
  readonly #options: SessionOptions
  #connection: McpConnection | null = null
  #opening: Promise<McpConnection> | null = null
  #failures = 0
  #failed: { readonly error: HarnessError; readonly until: number } | null = null
  #lastStderr = ''
  #lastProblem = ''

  constructor(options: SessionOptions) {
    this.#options = options
  }

  /** The connection, opened when there is none. Rejects with a `HarnessError` that names the server. */
  connection(): Promise<McpConnection> {
    if (this.#connection !== null) return Promise.resolve(this.#connection)
    if (this.#opening !== null) return this.#opening
    if (this.#failed !== null && Date.now() < this.#failed.until) return Promise.reject(this.#failed.error)
    this.#opening = this.#open().finally(() => (this.#opening = null))
    return this.#opening
  }

  /** Gives up a connection that no longer works: the next use opens another. */
  drop(connection: McpConnection): void {
    if (this.#connection === connection) this.#connection = null
    void connection.close()
  }

  /** Recent output that was not a message, for errors; may be empty. */
  get lastProblem(): string {
    return this.#lastProblem
  }

  /** Ends the connection, also one that is being opened. Never rejects. */
  async close(): Promise<void> {
    await this.#opening?.catch(() => undefined)
    const connection = this.#connection
    this.#connection = null
    this.#failed = null
    await connection?.close()
  }

  async #open(): Promise<McpConnection> {
    this.#lastStderr = ''
    this.#lastProblem = ''
    try {
      const sdk = await this.#options.loadSdk()
      let isClosed = false
      const hasClosed = (): boolean => isClosed
      let opened: McpConnection | null = null
      const connection = await sdk.open({
        ...this.#options,
        onClosed: () => {
          isClosed = true
          // The connection has been replaced.
          if (this.#connection === opened) this.#connection = null
        },
        onStderr: (text) => (this.#lastStderr = (this.#lastStderr + text).slice(-LONGEST_STDERR)),
        onProblem: (problem) => (this.#lastProblem = withoutTerminalCodes(problem).slice(0, 200)),
      })
      if (hasClosed()) throw new Error('It exited immediately.')
      opened = connection
      this.#connection = connection
      this.#failures = 0
      this.#failed = null
      this.#options.onOpened()
      return connection
    } catch (error) {
      throw this.#failure(error)
    }
  }

  #failure(error: unknown): HarnessError {
    const failure = error instanceof HarnessError ? error : this.#unreachable(error)
    this.#failures += 1
    const waitMs = Math.min(LONGEST_WAIT_MS, SHORTEST_WAIT_MS * 2 ** (this.#failures - 1))
    this.#failed = { error: failure, until: Date.now() + waitMs }
    return failure
  }

  #unreachable(error: unknown): HarnessError {
    const name = `MCP server \`${this.#options.serverId}\``
    if (isUnauthorized(error)) {
      const message = `${name} requires authorization: pass \`auth\`, and call \`finishAuth\` with the parameters of the callback.`
      return new HarnessError('error', message, { cause: error, retryable: false })
    }
    const wrote = withoutTerminalCodes(this.#lastStderr).trim()
    const output = wrote === '' ? '' : ` It wrote: ${wrote}`
    const message = `${name} could not be reached: ${messageOf(error)}${output}`
    return new HarnessError('error', message, { cause: error, retryable: true })
  }
}

/** Characters of a process's last output that an error shows. */
const LONGEST_STDERR = 500
const SHORTEST_WAIT_MS = 500
const LONGEST_WAIT_MS = 30_000
