import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { groupExists, signalGroup } from '#toolbox/process/process-group.js'
import { LARGEST_MESSAGE } from './connection.js'
import type { ProcessCommand } from './connection.js'
import { failedAnswer, soundMessage } from './messages.js'

/** Time for a server to end by itself, in ms, and again after it was asked. */
const GRACE_MS = 2_000
const POLL_MS = 10

/**
 * A server that is a process group of this machine, with one message of JSON per line. The client library recognizes it by the members
 * `_serverParams` and `_dispose`: it starts a second one, for a moment, to ask for the revision.
 */
export class ProcessTransport implements Transport {
  onclose: Transport['onclose']
  onerror: Transport['onerror']
  onmessage: Transport['onmessage']
  readonly stderr = new PassThrough()
  readonly _serverParams: ProcessCommand
  readonly #lines = new MessageLines({
    onLine: (text) => this.#read(text),
    onTooLarge: (id) => this.onmessage?.(failedAnswer(id, 'too_large')),
    onEndless: () => {
      this.#child?.stdout?.destroy()
      void this._dispose()
    },
  })
  #child: ChildProcess | null = null

  constructor(command: ProcessCommand) {
    this._serverParams = command
    // The library reads nothing of the second process.
    this.stderr.resume()
  }

  get pid(): number | null {
    return this.#child?.pid ?? null
  }

  start(): Promise<void> {
    const { command, args, env, cwd } = this._serverParams
    return new Promise((resolve, reject) => {
      const child = spawn(command, args, { env: { ...env }, ...(cwd !== null && { cwd }), detached: true })
      this.#child = child
      child.on('spawn', resolve)
      child.on('error', (error) => {
        this.onerror?.(error)
        reject(error)
      })
      child.on('close', () => this.onclose?.())
      for (const stream of [child.stdin, child.stdout]) stream.on('error', (error) => this.onerror?.(error))
      child.stdout.on('data', (chunk: Buffer) => this.#lines.take(chunk))
      child.stderr.pipe(this.stderr)
    })
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin
    if (!stdin?.writable) return Promise.reject(Object.assign(new Error('Not connected'), { code: 'NOT_CONNECTED' }))
    return new Promise((resolve) => {
      if (stdin.write(`${JSON.stringify(message)}\n`)) resolve()
      else stdin.once('drain', resolve)
    })
  }

  /** Closes the input of the group, then asks it to end, then kills it. */
  close(): Promise<void> {
    return this.#end(GRACE_MS)
  }

  /** Ends a server that has no work to complete. */
  _dispose(): Promise<void> {
    return this.#end(0)
  }

  async #end(graceMs: number): Promise<void> {
    const child = this.#child
    if (child?.pid === undefined) return
    child.stdin?.end()
    if (await hasEnded(child, graceMs)) return
    signalGroup(child.pid, 'SIGTERM')
    if (await hasEnded(child, graceMs || GRACE_MS / 2)) return
    signalGroup(child.pid, 'SIGKILL')
    await hasEnded(child, 20 * POLL_MS)
    // A process that left the group may keep them open.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy()
  }

  #read(text: string): void {
    if (text.trim() === '') return
    try {
      this.onmessage?.(soundMessage(JSON.parse(text)) as JSONRPCMessage)
    } catch (error) {
      this.onerror?.(error as Error)
    }
  }
}

/** True once a program and all of its group have ended. */
async function hasEnded(child: ChildProcess, withinMs: number): Promise<boolean> {
  const isAlive = (): boolean => (child.exitCode === null && child.signalCode === null) || groupExists(child.pid)
  const until = performance.now() + withinMs
  while (isAlive()) {
    if (performance.now() >= until) return false
    await sleep(POLL_MS)
  }
  return true
}

interface LineListener {
  readonly onLine: (text: string) => void
  /** A line that is too large was the answer to this request. */
  readonly onTooLarge: (id: number) => void
  /** A line has no end, or it is too large and not known to be an answer. */
  readonly onEndless: () => void
}

const NEWLINE = 10
/** Characters at the start and the end of a line that is too large, which may have its id. */
const EDGE = 1_000
/** A line of more bytes has no end. */
const ENDLESS = 8 * LARGEST_MESSAGE

/** Splits output into lines. Of a line that is too large only its start and end are kept. */
class MessageLines {
  readonly #listener: LineListener
  #pieces: Buffer[] = []
  #bytes = 0

  constructor(listener: LineListener) {
    this.#listener = listener
  }

  take(chunk: Buffer): void {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#add(chunk.subarray(start, end))
      this.#finish()
      start = end + 1
    }
    this.#add(chunk.subarray(start))
  }

  #add(piece: Buffer): void {
    this.#bytes += piece.length
    this.#pieces.push(piece)
    if (this.#bytes <= LARGEST_MESSAGE) return
    const kept = Buffer.concat(this.#pieces)
    this.#pieces = [Buffer.concat([kept.subarray(0, EDGE), kept.subarray(EDGE).subarray(-EDGE)])]
    if (this.#bytes > ENDLESS) this.#listener.onEndless()
  }

  #finish(): void {
    const text = Buffer.concat(this.#pieces).toString()
    const isTooLarge = this.#bytes > LARGEST_MESSAGE
    this.#pieces = []
    this.#bytes = 0
    if (!isTooLarge) return this.#listener.onLine(text)
    const ids = [...text.matchAll(/"id"\s*:\s*"?(\d+)/g)]
    const id = (ids.find(({ index }) => index < EDGE) ?? ids.at(-1))?.[1]
    if (id === undefined) this.#listener.onEndless()
    else this.#listener.onTooLarge(Number(id))
  }
}
