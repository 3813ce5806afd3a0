import { HarnessError, messageOf } from '#contracts/errors.js'
import { WHOLE_REPLY } from '#providers/http/wire-format.js'
import type { Transport, TransportRequest, WireChunk } from '#providers/http/wire-format.js'
import { markUnsent } from '#providers/http/provider-errors.js'
import { listenToAbort } from '#util/abort.js'
import { byteLength } from '#util/bytes.js'
import type { JsonObject } from '#util/json.js'
import { sleep } from '#util/timeout.js'
import { unknownResult } from './batch-api.js'
import type { BatchApi, BatchResults } from './batch-api.js'

export interface BatchedOptions {
  /** How long requests are gathered after the first one, in ms. Default 5,000. */
  readonly maxWaitMs?: number | undefined
  /** A batch with so many is submitted at once. Default 1,000. */
  readonly maxRequests?: number | undefined
}

/** Bytes of a batch: providers take 200 MB and more. */
const MOST_BYTES = 100_000_000
/** Time between two questions for results, in ms: for two minutes the first, then more and more up to the last. */
const FIRST_WAIT_MS = 15_000
const EVEN_QUESTIONS = 8
const LONGEST_WAIT_MS = 300_000
/** Failed questions in a row after which the requests fail. */
const MOST_FAILURES = 20
const CANCEL_MS = 10_000

/** A request that waits to be submitted. */
interface Gathered {
  readonly id: string
  readonly body: JsonObject
  readonly request: TransportRequest
  readonly done: (batch: Batch) => void
  readonly fail: (error: Error) => void
}

/** Requests that are sent together: of one kind, and with the same headers. */
interface Gathering {
  readonly requests: Gathered[]
  bytes: number
  timer: NodeJS.Timeout | undefined
}

/** A batch that the provider works on. */
interface Batch {
  readonly id: string
  readonly headers: TransportRequest['headers']
  readonly results: Promise<BatchResults>
  /** Requests whose run waits for them here, or has been left for another process. */
  wanted: number
  /** Ends the questions. */
  readonly stop: AbortController
}

/** Gathers the requests of a model's sessions to batches, and asks for their results. */
export class Gatherer {
  readonly #api: BatchApi
  readonly #options: BatchedOptions
  readonly #gathering = new Map<string, Gathering>()
  /** By id. */
  readonly #batches = new Map<string, Batch>()

  constructor(api: BatchApi, options: BatchedOptions) {
    this.#api = api
    this.#options = options
  }

  /** The reply to a request, once its batch has ended. An id is stored as soon as there is one. */
  async reply(own: Transport, request: TransportRequest): Promise<unknown> {
    const { signal } = request
    const id = `r-${globalThis.crypto.randomUUID()}`
    const batch = await this.#submitted(own, id, request)
    try {
      await request.submitted?.(`${batch.id}/${id}`)
    } catch (error) {
      this.#leave(own, batch)
      throw error
    }
    return this.#resultOf(own, { batch, id, signal })
  }

  /** The reply to a request that an earlier process has submitted; null if the provider has it no more. */
  async resumed(own: Transport, submitted: string, request: TransportRequest): Promise<unknown> {
    const slash = submitted.lastIndexOf('/')
    const name = submitted.slice(0, slash)
    // There may be more requests in it than are known here: it is never cancelled.
    const batch = this.#batches.get(name) ?? this.#follow(own, name, { headers: request.headers, wanted: Infinity })
    try {
      return await this.#resultOf(own, { batch, id: submitted.slice(slash + 1), signal: request.signal })
    } catch (error) {
      if (error instanceof HarnessError && error.status === 404) return null
      throw error
    }
  }

  #submitted(own: Transport, id: string, request: TransportRequest): Promise<Batch> {
    const { signal, headers } = request
    const { stream: _, stream_options: __, ...body } = request.body as JsonObject
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const key = JSON.stringify(headers)
      const gathering = this.#gathering.get(key) ?? this.#open(own, key)
      const stop = listenToAbort(signal, () => {
        stop()
        const index = gathering.requests.indexOf(gathered)
        if (index === -1) return
        gathering.requests.splice(index, 1)
        reject(markUnsent(signal.reason as Error))
      })
      const gathered: Gathered = {
        ...{ id, body, request },
        done: (batch) => {
          stop()
          resolve(batch)
        },
        fail: (error) => {
          stop()
          reject(error)
        },
      }
      gathering.requests.push(gathered)
      gathering.bytes += byteLength(JSON.stringify(body))
      const { maxRequests = 1_000 } = this.#options
      if (gathering.requests.length >= maxRequests || gathering.bytes >= MOST_BYTES) void this.#submit(own, key)
    })
  }

  #open(own: Transport, key: string): Gathering {
    const { maxWaitMs = 5_000 } = this.#options
    const gathering: Gathering = {
      requests: [],
      bytes: 0,
      timer: setTimeout(() => void this.#submit(own, key), maxWaitMs),
    }
    this.#gathering.set(key, gathering)
    return gathering
  }

  async #submit(own: Transport, key: string): Promise<void> {
    const gathering = this.#gathering.get(key)
    this.#gathering.delete(key)
    clearTimeout(gathering?.timer)
    const requests = gathering?.requests.splice(0) ?? []
    const [first] = requests
    if (first === undefined) return
    const { headers } = first.request
    try {
      const id = await this.#api.submit(requests, sender(own, headers), new AbortController().signal)
      const batch = this.#follow(own, id, { headers, wanted: requests.length })
      for (const { done } of requests) done(batch)
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error))
      for (const { fail } of requests) fail(failure)
    }
  }

  #follow(own: Transport, id: string, { headers, wanted }: Pick<Batch, 'headers' | 'wanted'>): Batch {
    const stop = new AbortController()
    const results = this.#ended(own, id, { headers, signal: stop.signal })
    const batch: Batch = { id, headers, results, wanted, stop }
    this.#batches.set(id, batch)
    const forget = (): unknown => this.#batches.delete(id)
    results.then(forget, forget)
    return batch
  }

  async #ended(
    own: Transport,
    id: string,
    { headers, signal }: Pick<TransportRequest, 'headers' | 'signal'>,
  ): Promise<BatchResults> {
    let failures = 0
    for (let asked = 0, waitMs = FIRST_WAIT_MS; ; asked++) {
      if (asked >= EVEN_QUESTIONS) waitMs = Math.min(waitMs * 1.4, LONGEST_WAIT_MS)
      await sleep(waitMs, signal)
      try {
        const results = await this.#api.results(id, sender(own, headers), signal)
        failures = 0
        if (results !== null) return results
      } catch (error) {
        if (!(error instanceof HarnessError) || !error.retryable || ++failures > MOST_FAILURES) throw error
      }
    }
  }

  async #resultOf(
    own: Transport,
    { batch, id, signal }: { readonly batch: Batch; readonly id: string; readonly signal: AbortSignal },
  ): Promise<unknown> {
    const results = await new Promise<BatchResults>((resolve, reject) => {
      const abort = (): void => {
        const reason: unknown = signal.reason
        // A run that is left goes on in another process.
        if (!(reason instanceof HarnessError && reason.code === 'interrupted')) this.#leave(own, batch)
        reject(signal.reason as Error)
      }
      if (signal.aborted) return abort()
      const stop = listenToAbort(signal, () => {
        stop()
        abort()
      })
      batch.results.then(resolve, reject).finally(stop)
    })
    const result = results.get(id) ?? { error: unknownResult() }
    if ('error' in result) throw result.error
    return result.reply
  }

  /** A request of the batch is wanted no more: without any, the batch is cancelled. */
  #leave(own: Transport, batch: Batch): void {
    batch.wanted -= 1
    if (batch.wanted > 0) return
    this.#batches.delete(batch.id)
    batch.stop.abort(new Error('Nobody waits for the batch.'))
    const within = AbortSignal.timeout(CANCEL_MS)
    // Nobody waits for it: it has ended already, or the provider is out of reach.
    this.#api.cancel(batch.id, sender(own, batch.headers), within).catch(messageOf)
  }
}

function sender(own: Transport, common: TransportRequest['headers']): Parameters<BatchApi['submit']>[1] {
  return ({ headers = {}, ...request }) => {
    if (own.call === undefined) throw new TypeError('Expected a connection that has other requests.')
    return own.call({ ...request, headers: { ...common, ...headers } })
  }
}

/** A connection whose requests are gathered. Of one session. */
export class BatchTransport implements Transport {
  readonly bodies = 'json'
  readonly #own: Transport
  readonly #gatherer: Gatherer
  /** What an earlier process has submitted, and was asked for: a repetition is a request of its own. */
  #resumed: string | null = null

  constructor(own: Transport, gatherer: Gatherer) {
    this.#own = own
    this.#gatherer = gatherer
  }

  async send(request: TransportRequest): Promise<unknown> {
    const { resume } = request
    if (resume !== undefined && resume !== this.#resumed) {
      this.#resumed = resume
      const reply = await this.#gatherer.resumed(this.#own, resume, request)
      if (reply !== null) return reply
    }
    return this.#gatherer.reply(this.#own, request)
  }

  async *stream(request: TransportRequest): AsyncGenerator<readonly WireChunk[], void, void> {
    yield [{ event: WHOLE_REPLY, data: await this.send(request) }]
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
