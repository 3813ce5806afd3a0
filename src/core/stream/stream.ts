import { HarnessError } from '#contracts/errors.js'
import type { HarnessResult } from '#contracts/result.js'
import type { RunAbort } from '#util/abort.js'
import type { StreamEvent } from '../state/events.js'
import type { InputMessage, InputPort } from './input.js'
import type { EventQueue } from './queue.js'

/**
 * The events of a run in progress. The run has begun when the stream exists. A reader that stops before the end cancels the
 * run by `break` in `for await`, `cancel()`, `close()` or `await using`. A slow reader slows the run down, unless `result`
 * is awaited: then the run never waits for its reader, and no reader is needed.
 */
export interface HarnessStream<Output = string> extends AsyncIterable<StreamEvent>, AsyncDisposable {
  readonly runId: string
  /** The result of the run; rejects with the `HarnessError` that also ends the iteration. */
  readonly result: Promise<HarnessResult<Output>>
  /** The same events as the iteration, all that wait at once: for readers of many small deltas. */
  batches(): AsyncIterable<readonly StreamEvent[]>
  /**
   * Gives the model a message at its next turn. Resolves when the run has accepted it, and rejects if an extension refuses it
   * (`guard_blocked`); nobody has to wait for that. Throws once the run has ended.
   */
  steer(message: InputMessage): Promise<void>
  /** Cancels the run, unless it has ended, and resolves when it has cleaned up. Never rejects. */
  cancel(): Promise<void>
  /** The same as `cancel`. */
  close(): Promise<void>
}

/** A run as `openStream` needs it. */
export interface StreamedRun<Output> {
  readonly runId: string
  readonly queue: EventQueue
  readonly abort: RunAbort
  readonly input: InputPort
  readonly outcome: Promise<HarnessResult<Output>>
}

export function openStream<Output>(run: StreamedRun<Output>): HarnessStream<Output> {
  return new RunStream(run)
}

class RunStream<Output> implements HarnessStream<Output> {
  readonly runId: string
  readonly #run: StreamedRun<Output>
  #closing: Promise<void> | null = null

  constructor(run: StreamedRun<Output>) {
    this.runId = run.runId
    this.#run = run
    // A reader of the events alone learns of a failure there; without this it would also be an unhandled rejection.
    run.outcome.catch(() => undefined)
  }

  get result(): Promise<HarnessResult<Output>> {
    this.#run.queue.keepUnread()
    return this.#run.outcome
  }

  batches(): AsyncIterable<readonly StreamEvent[]> {
    return { [Symbol.asyncIterator]: () => this.#readBatches() }
  }

  [Symbol.asyncIterator](): AsyncIterator<StreamEvent, undefined> {
    const batches = this.#readBatches()
    let events: readonly StreamEvent[] = []
    let index = 0
    let reading: Promise<unknown> = Promise.resolve()
    const read = async (): Promise<IteratorResult<StreamEvent, undefined>> => {
      for (;;) {
        const event = events[index++]
        if (event !== undefined) return { done: false, value: event }
        const batch = await batches.next()
        if (batch.done === true) return { done: true, value: undefined }
        events = batch.value
        index = 0
      }
    }
    let asked = 0
    // One after the other, also for who asks for several at once: each event is given once, in order.
    const next = (): Promise<IteratorResult<StreamEvent, undefined>> => {
      const event = asked === 0 ? events[index] : undefined
      if (event !== undefined) {
        index += 1
        return Promise.resolve({ done: false, value: event })
      }
      asked += 1
      const result = reading.then(read).finally(() => (asked -= 1))
      reading = result.catch(() => undefined)
      return result
    }
    return { next, return: () => this.#return() }
  }

  steer(message: InputMessage): Promise<void> {
    return this.#run.input.send(message)
  }

  async cancel(): Promise<void> {
    this.#closing ??= this.#cancel()
    await this.#closing
  }

  close(): Promise<void> {
    return this.cancel()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #readBatches(): AsyncIterator<readonly StreamEvent[], undefined> {
    const { queue } = this.#run
    queue.startReading()
    const next = async (): Promise<IteratorResult<readonly StreamEvent[], undefined>> => {
      const value = this.#closing === null ? await queue.take() : []
      if (value.length > 0) return { done: false, value }
      // The last event has been read: a run that failed fails its reader too.
      if (this.#closing === null) await this.#run.outcome
      return { done: true, value: undefined }
    }
    return { next, return: () => this.#return() }
  }

  async #return(): Promise<{ done: true; value: undefined }> {
    await this.close()
    return { done: true, value: undefined }
  }

  async #cancel(): Promise<void> {
    const { queue, abort, outcome } = this.#run
    queue.drop()
    abort.cancel(new HarnessError('cancelled', 'The stream was closed by its reader.'))
    await outcome.then(
      () => undefined,
      () => undefined,
    )
  }
}
