import { followError, FollowError, followRun, waitFor } from '../client/follow-run.js'
import type { FollowedEvent } from '../client/follow-run.js'
import { reduceChat } from '#session/thread/reduce-chat.js'
import type { ChatSnapshot } from '#session/thread/reduce-chat.js'
import { nextFrame, sameMembers } from './readable-store.js'
import type { ReadableStore } from './readable-store.js'

/**
 * How a store is connected: `closed` while nobody subscribes; `connecting` until the server answers; `open`; `reconnecting` after a
 * lost connection, without end; `absent` if the server has no such conversation yet; `ended` when the run has paused or ended;
 * `failed` when the server has refused, which `error` explains.
 */
export type ConnectionStatus = 'closed' | 'connecting' | 'open' | 'reconnecting' | 'absent' | 'ended' | 'failed'

/** How a store reaches the server. Functions are called for each request. */
export interface ConnectionOptions {
  /** The address under which `createHandlers` serves `events` and `requests`. Default `/api`. */
  readonly api?: string | undefined
  readonly fetch?: typeof fetch | undefined
  /** Headers of each request; a function can wait for a fresh token. */
  readonly headers?: RequestHeaders | (() => RequestHeaders | Promise<RequestHeaders>) | undefined
  readonly credentials?: 'omit' | 'same-origin' | 'include' | undefined
  /**
   * Listeners are called at most once in so long, in ms; 0: after each event. Default: once in a frame of the page, and four times a
   * second while it is hidden.
   */
  readonly throttleMs?: number | undefined
  /** Called with each event, in order, also with those of the past. */
  readonly onEvent?: ((event: FollowedEvent) => void) | undefined
  /** Called with the error of a connection or of a request. */
  readonly onError?: ((error: Error) => void) | undefined
}

export type RequestHeaders = Readonly<Record<string, string>>

/** What was read on a server, with which a store of the page begins. */
export interface LoadedChat {
  readonly snapshot: ChatSnapshot
  /** The place of the reader after it. */
  readonly cursor: string
}

/** How a request ended. `ok: false`: the server refused it, or could not be reached; nothing was thrown. */
export type RequestOutcome<Result extends object = object> =
  ({ readonly ok: true } & Result) | { readonly ok: false; readonly error: Error }

/** What a live store knows; `own`: of its kind. */
export interface LiveFacts<Own> {
  readonly snapshot: ChatSnapshot | null
  readonly connection: ConnectionStatus
  readonly error: Error | null
  readonly own: Own
}

export interface LiveSetup<Own, State extends object> {
  /** The path of the events below `api`. */
  readonly path: string
  /** 404 means that it has not begun; without, it is an error. */
  readonly canBeAbsent: boolean
  readonly initial?: LoadedChat | null | undefined
  readonly own: Own
  /** Its own facts after an event. */
  readonly ownAfter: (own: Own, event: FollowedEvent) => Own
  readonly stateOf: (facts: LiveFacts<Own>) => State
}

/** How often a run that waits for people is looked at again, in ms: somebody else may have answered. */
const PAUSED_MS = 30_000

/** Follows a conversation or a run for as long as somebody subscribes, and folds its events into a state. */
export class LiveStore<Own, State extends object> implements ReadableStore<State> {
  readonly #setup: LiveSetup<Own, State>
  readonly #listeners = new Set<() => void>()
  readonly #initial: State
  #options: ConnectionOptions
  #facts: LiveFacts<Own>
  #state: State
  #cursor: string | undefined
  #following: AbortController | null = null
  #cancelFrame: (() => void) | null = null

  constructor(options: ConnectionOptions, setup: LiveSetup<Own, State>) {
    this.#options = options
    this.#setup = setup
    this.#cursor = setup.initial?.cursor
    this.#facts = { snapshot: setup.initial?.snapshot ?? null, connection: 'closed', error: null, own: setup.own }
    this.#state = setup.stateOf(this.#facts)
    this.#initial = this.#state
  }

  readonly getSnapshot = (): State => this.#state

  readonly getServerSnapshot = (): State => this.#initial

  readonly subscribe = (listener: () => void): (() => void) => {
    // Two subscriptions of one function are two.
    const told = (): void => listener()
    this.#listeners.add(told)
    if (this.#following === null) this.reconnect()
    return () => {
      this.#listeners.delete(told)
      // A component that is mounted again at once, as in StrictMode, keeps the connection.
      queueMicrotask(() => {
        if (this.#listeners.size === 0) this.#close()
      })
    }
  }

  /** Other options of the connection, from the next request on. */
  readonly configure = (options: ConnectionOptions): void => {
    this.#options = options
  }

  /** Opens the connection anew, if somebody subscribes. */
  readonly reconnect = (): void => {
    this.#following?.abort()
    this.#following = null
    if (this.#listeners.size === 0) return
    this.#following = new AbortController()
    void this.#follow(this.#following.signal)
  }

  readonly clearError = (): void => this.set({ error: null })

  get own(): Own {
    return this.#facts.own
  }

  get snapshot(): ChatSnapshot | null {
    return this.#facts.snapshot
  }

  /** Changes what the store knows; listeners are called in the next frame. */
  set(change: Partial<LiveFacts<Own>>): void {
    this.#facts = { ...this.#facts, ...change }
    if (this.#options.throttleMs === 0) this.#publish()
    else this.#cancelFrame ??= nextFrame(() => this.#publish(), this.#options.throttleMs)
  }

  /** Sends a request; what it answers. A refusal is the `error` of the store too. */
  async post<Result extends object = object>(path: string, body: object): Promise<RequestOutcome<Result>> {
    try {
      const response = await request(this.#options, path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      if (!response.ok) throw await followError(response)
      const result = (await response.json()) as Result
      this.clearError()
      // The server can be reached, and has something new to tell.
      if (this.#facts.connection !== 'open') this.reconnect()
      return { ok: true, ...result }
    } catch (cause) {
      const error =
        cause instanceof FollowError ? cause : new Error('The server could not be reached. Try again.', { cause })
      this.#fail(error)
      return { ok: false, error }
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const isOver = (): boolean => signal.aborted
    for (let turn = 0; !isOver(); turn++) {
      try {
        const send = this.#watchedFetch(signal, turn > 0)
        for await (const event of followRun(this.#setup.path, { after: this.#cursor, fetch: send, signal }))
          if (!isOver()) this.#take(event)
      } catch (error) {
        if (!isOver()) this.#stopped(error)
        return
      }
      if (isOver()) return
      this.#connected('ended')
      if (this.#facts.snapshot?.runs.at(-1)?.status !== 'paused') return
      await waitFor(PAUSED_MS, signal)
    }
  }

  /** Requests that tell what becomes of the connection. `isAgain`: nothing is shown of them before they fail. */
  #watchedFetch(signal: AbortSignal, isAgain: boolean): typeof fetch {
    let count = 0
    return async (_path, init = {}) => {
      count += 1
      if (!isAgain || count > 1) this.#connected(count === 1 ? 'connecting' : 'reconnecting')
      const response = await request(this.#options, this.#setup.path, init)
      if (response.ok && response.body !== null && !signal.aborted && !isAgain) this.#connected('open')
      return response
    }
  }

  #connected(connection: ConnectionStatus): void {
    if (connection !== this.#facts.connection) this.set({ connection })
  }

  #take(event: FollowedEvent): void {
    const { snapshot, own } = this.#facts
    const after = reduceChat(snapshot ?? undefined, event)
    if ('threadId' in event || event.durable) this.#cursor = event.cursor
    this.set({ snapshot: after, own: this.#setup.ownAfter(own, event), connection: 'open' })
    const { onEvent } = this.#options
    // An error of the listener is its own.
    if (onEvent !== undefined) queueMicrotask(() => onEvent(event))
  }

  #stopped(error: unknown): void {
    if (this.#setup.canBeAbsent && error instanceof FollowError && error.status === 404) {
      this.#connected('absent')
      return
    }
    this.#connected('failed')
    this.#fail(error instanceof Error ? error : new Error(String(error)))
  }

  #fail(error: Error): void {
    this.set({ error })
    const { onError } = this.#options
    if (onError !== undefined) queueMicrotask(() => onError(error))
  }

  #close(): void {
    this.#following?.abort()
    this.#following = null
    this.#cancelFrame?.()
    this.#facts = { ...this.#facts, connection: 'closed' }
    this.#publish()
  }

  #publish(): void {
    this.#cancelFrame?.()
    this.#cancelFrame = null
    const state = this.#setup.stateOf(this.#facts)
    if (sameMembers(state, this.#state)) return
    this.#state = state
    for (const listener of this.#listeners) listener()
  }
}

/** A request to a path below `api`, with the options of the connection as they are now. */
export async function request(options: ConnectionOptions, path: string, init: RequestInit): Promise<Response> {
  const { api = '/api', fetch: send = fetch, headers: common = {}, credentials } = options
  const headers = new Headers(typeof common === 'function' ? await common() : common)
  new Headers(init.headers).forEach((value, name) => headers.set(name, value))
  const url = `${api.replace(/\/$/, '')}/${path}`
  return send(url, { ...init, headers, ...(credentials !== undefined && { credentials }) })
}
