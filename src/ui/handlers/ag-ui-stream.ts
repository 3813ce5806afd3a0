import { agUiProjection } from '../ag-ui/ag-ui-projection.js'
import type { AgUiEvent } from '../ag-ui/event.js'
import type { AgUiMessage } from '../ag-ui/message.js'
import { toAgUiMessages } from '../ag-ui/messages.js'
import type { HeldMessage } from '../ag-ui/message-fold.js'
import type { AgUiOptions } from '../ag-ui/options.js'
import { untilBroken } from '../ag-ui/stream.js'
import type { AnyRunEvent, Projection } from '../projection.js'
import type { StoredRun } from '../hub/continued-runs.js'
import type { Taken, ThreadPort } from './back-end.js'
import { storedRun } from './messages.js'

export interface AgUiStreamOptions {
  readonly run: Taken['run']
  /** Number of the last event that is told by a snapshot alone. Default: the place of the run when the stream begins. */
  readonly after: number | undefined
  readonly warnings: readonly string[] | undefined
  readonly signal: AbortSignal
  readonly shown: AgUiOptions
  /** The messages of the client. */
  readonly messages: readonly HeldMessage[]
}

/** The stream of a request: its run may begin later, and with it what the client has to be told of the runs before. */
export class AgUiThreadStream implements Projection<AgUiEvent> {
  readonly #thread: ThreadPort
  readonly #options: AgUiStreamOptions
  #projection: Projection<AgUiEvent>
  #warnings: readonly string[]

  constructor(thread: ThreadPort, options: AgUiStreamOptions) {
    this.#thread = thread
    this.#options = options
    this.#warnings = options.warnings ?? []
    this.#projection = agUiProjection(options.shown)
  }

  /** The events of the run. A source that breaks ends the stream: clients do not notice that an end is missing. */
  batches(): AsyncIterable<readonly AnyRunEvent[]> {
    return untilBroken(this.#batches())
  }

  next(event: AnyRunEvent): readonly AgUiEvent[] {
    return this.#withWarnings(this.#projection.next(event))
  }

  end(): readonly AgUiEvent[] {
    return this.#withWarnings(this.#projection.end())
  }

  join(earlier: AgUiEvent, later: AgUiEvent): AgUiEvent | null {
    return this.#projection.join(earlier, later)
  }

  async *#batches(): AsyncGenerator<readonly AnyRunEvent[]> {
    const { run, signal, shown, messages } = this.#options
    const found = await run
    if (found === null || signal.aborted) return
    const { runId } = found
    const after = this.#options.after ?? found.beyond ?? (await this.#placeOf(runId))
    const { history, messageIds } = await this.#before(runId)
    const isFirst = history.length === 0 && after === 0
    const held = isFirst ? undefined : messages
    this.#projection = agUiProjection({ ...shown, after, history, held, messageIds: () => messageIds })
    yield* this.#thread.follow(runId, { signal, children: true, beyond: found.beyond })
  }

  async #placeOf(runId: string): Promise<number> {
    const runs = await this.#thread.runs()
    return runs.find((run) => run.runId === runId)?.seq ?? 0
  }

  /** The messages of the runs before one. */
  async #before(
    runId: string,
  ): Promise<{ readonly history: readonly AgUiMessage[]; readonly messageIds: readonly string[] }> {
    let history: readonly AgUiMessage[] = []
    const add = ({ events, messageIds }: StoredRun): void => {
      history = toAgUiMessages(events, { ...this.#options.shown, history, messageIds: () => messageIds })
    }
    for (const earlier of (await this.#thread.continued?.()) ?? []) add(earlier)
    for (const earlier of await this.#thread.runs()) {
      if (earlier.runId === runId) break
      add(await storedRun(this.#thread, earlier.runId))
    }
    return { history, messageIds: await this.#thread.messageIds(runId) }
  }

  #withWarnings(events: readonly AgUiEvent[]): readonly AgUiEvent[] {
    if (this.#warnings.length === 0 || events.length === 0) return events
    const [first, ...others] = events
    const warnings = this.#warnings.map((message): AgUiEvent => {
      return { type: 'CUSTOM', name: 'thinharness.warning', value: { message } }
    })
    this.#warnings = []
    return first === undefined ? events : [first, ...warnings, ...others]
  }
}
