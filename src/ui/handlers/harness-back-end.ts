import { inputPort } from '../../index.js'
import type {
  Answer,
  HarnessDescription,
  HarnessStream,
  InputMessage,
  InputPort,
  LogStore,
  Prompt,
  ResumeOptions,
  RunOptions,
  RunSummary,
} from '../../index.js'
import { clientToolsIn } from '../../session/tools/client-tools.js'
import { sha256 } from '../../util/platform/sha256.js'
import type { FollowRunOptions } from '../hub/follow.js'
import type { Hub } from '../hub/hub.js'
import { storedEvents } from '../hub/stored.js'
import type { AnyRunEvent } from '../projection.js'
import { LOCAL, RequestError } from './back-end.js'
import type { Access, BackEnd, NewMessage, RunInfo, Taken, ThreadPort } from './back-end.js'
import { Inputs } from './inputs.js'
import { codeOf, givenBefore, notFound } from './sessions-back-end.js'

/** The part of a harness that handlers call. */
export interface ServedHarness {
  stream(prompt: Prompt, options?: RunOptions): HarnessStream<unknown>
  streamResume(runId: string, answers: readonly Answer[], options?: ResumeOptions): HarnessStream<unknown>
  streamRecover(runId: string, options?: ResumeOptions): HarnessStream<unknown>
  cancel(runId: string, options?: Pick<RunOptions, 'log'>): Promise<boolean>
  describe?(): Promise<HarnessDescription>
}

/** Which runs belong to a conversation. */
export interface ThreadIndex {
  /** The newest run of a conversation; null if it has none. */
  latest(threadId: string): Promise<string | null>
  /** Its runs, oldest first. */
  runs(threadId: string): Promise<readonly string[]>
}

export interface HarnessBackEndOptions {
  readonly harness: ServedHarness
  /** Other harnesses that a message can name as its mode. */
  readonly harnesses: ReadonlyMap<string, ServedHarness>
  readonly log: LogStore
  readonly hub: Hub
  readonly threads: ThreadIndex
  /** A message for a run that waits for people refuses what waits, in place of being refused. */
  readonly declines: boolean
}

/** The conversations whose runs have this `metadata.conversation_id`. */
export function threadsByMetadata(log: LogStore): ThreadIndex {
  const runs = async function* (threadId: string): AsyncGenerator<RunSummary> {
    for await (const summary of log.list({ kind: 'run', parentRunId: null }))
      if (summary.metadata['conversation_id'] === threadId) yield summary
  }
  return {
    latest: async (threadId) => {
      for await (const { runId } of runs(threadId)) return runId
      return null
    },
    runs: async (threadId) => {
      const found: RunSummary[] = []
      for await (const summary of runs(threadId)) found.unshift(summary)
      let line: readonly string[] = []
      for (const { runId, metadata } of found) {
        // A reply that was generated again: the run of the earlier one, and those after it, leave the conversation.
        const replaced = line.findIndex((each) => each === metadata[REPLACES])
        line = [...(replaced < 0 ? line : line.slice(0, replaced)), runId]
      }
      return line
    },
  }
}

/** In the metadata of a run: the name of the harness that serves it. */
export const SERVED_BY = 'served_by'

/** In the metadata of a run: the id of the run whose reply it generates again. */
const REPLACES = 'replaces_run'

/** Conversations of a harness and its log. */
export class HarnessBackEnd implements BackEnd {
  readonly #options: HarnessBackEndOptions
  /** Requests that begin or continue a run, one after the other for each conversation. */
  readonly #busy = new Map<string, Promise<unknown>>()
  readonly #inputs = new Inputs()

  constructor(options: HarnessBackEndOptions) {
    this.#options = options
  }

  async thread(threadId: string, access: Access, { create = false } = {}): Promise<ThreadPort | null> {
    const { log, threads } = this.#options
    const latest = await threads.latest(threadId)
    const summary = await log.inspect({ kind: 'run', id: latest ?? threadId })
    if (summary === null) return create ? this.#port(threadId, access) : null
    const owner = summary.metadata['resourceId']
    const isOwn = owner === access.resourceId || (owner === undefined && access === LOCAL)
    return isOwn ? this.#port(threadId, access) : null
  }

  async threadOf(runId: string): Promise<string | null> {
    const summary = await this.#options.log.inspect({ kind: 'run', id: runId })
    if (summary === null) return null
    if (summary.parent !== null) return this.threadOf(summary.parent.runId)
    const threadId = summary.metadata['conversation_id']
    // A run that the host has begun by itself is a conversation of its own.
    return typeof threadId === 'string' ? threadId : runId
  }

  #port(threadId: string, access: Access): ThreadPort {
    const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
      const done = (this.#busy.get(threadId) ?? Promise.resolve()).then(work, work)
      this.#busy.set(threadId, done)
      try {
        return await done
      } finally {
        if (this.#busy.get(threadId) === done) this.#busy.delete(threadId)
      }
    }
    return new HarnessThread(threadId, { ...this.#options, access, inTurn, inputs: this.#inputs })
  }
}

interface Means extends HarnessBackEndOptions {
  readonly access: Access
  readonly inputs: Inputs
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>
}

interface NewRun extends Pick<NewMessage, 'messageId' | 'metadata' | 'mode'> {
  readonly runId: string
  readonly content: InputMessage
  /** The run that it continues. */
  readonly history: RunInfo | null
}

/** The same for a message that is sent twice. */
function runIdOf(...parts: readonly string[]): string {
  return `run_${sha256(JSON.stringify(parts)).slice(0, 32)}`
}

class HarnessThread implements ThreadPort {
  readonly threadId: string
  readonly #means: Means

  constructor(threadId: string, means: Means) {
    this.threadId = threadId
    this.#means = means
  }

  async runs(): Promise<readonly RunInfo[]> {
    const runIds = await this.#means.threads.runs(this.threadId)
    const all = runIds.length === 0 ? [this.threadId] : runIds
    const infos = await Promise.all(all.map((runId) => this.#info(runId)))
    return infos.filter((info) => info !== null)
  }

  async latest(): Promise<RunInfo | null> {
    return this.#info((await this.#means.threads.latest(this.threadId)) ?? this.threadId)
  }

  follow(runId: string, options: FollowRunOptions): AsyncIterable<readonly AnyRunEvent[]> {
    return this.#means.hub.batches(runId, options)
  }

  stored(runId: string): AsyncIterable<AnyRunEvent> {
    return storedEvents(this.#means.log, runId)
  }

  async messageIds(runId: string): Promise<readonly string[]> {
    const summary = await this.#means.log.inspect({ kind: 'run', id: runId })
    const messageId = summary?.metadata['message_id']
    return typeof messageId === 'string' ? [messageId] : []
  }

  send(message: NewMessage): Promise<Taken> {
    return this.#means.inTurn(() => this.#send(message))
  }

  answer(runId: string, answers: readonly Answer[]): Promise<Taken> {
    return this.#means.inTurn(async () => {
      const { log } = this.#means
      const info = await this.#info(runId)
      if (info === null) throw notFound()
      const waiting = new Set(info.pending.map(({ callId }) => callId))
      const fresh = info.status === 'paused' ? answers.filter(({ callId }) => waiting.has(callId)) : []
      const beyond = await givenBefore(
        log,
        runId,
        answers.filter((answer) => !fresh.includes(answer)),
      )
      if (fresh.length === 0) return { status: 'attached', run: Promise.resolve({ runId, beyond }) }
      const signed = fresh.map((answer) => ({ by: this.#means.access.by, ...answer }))
      await this.#resume(runId, (harness, options) => harness.streamResume(runId, signed, options))
      return { status: 'started', run: Promise.resolve({ runId, beyond: info.seq }) }
    })
  }

  steer(runId: string, { content }: Pick<NewMessage, 'content'>): Promise<void> {
    if (this.#means.inputs.send(runId, content)) return Promise.resolve()
    throw new RequestError(409, 'invalid_state', { message: 'The run has ended, or waits for people.' })
  }

  returned(runId: string): readonly InputMessage[] {
    return this.#means.inputs.returned(runId)
  }

  async stop(runId: string): Promise<void> {
    const { log } = this.#means
    const metadata = (await log.inspect({ kind: 'run', id: runId }))?.metadata
    await this.#harnessOf(metadata?.[SERVED_BY]).cancel(runId, { log })
  }

  recover(runId: string): Promise<Taken> {
    return this.#means.inTurn(async () => {
      const info = await this.#info(runId)
      if (info === null) throw notFound()
      if (info.status === 'running' && !this.#means.hub.isLive(runId))
        throw new RequestError(409, 'run_owned', { message: 'Another process executes this run.' })
      if (info.status === 'interrupted')
        await this.#resume(runId, (harness, options) => harness.streamRecover(runId, options))
      return { status: 'started', run: Promise.resolve({ runId }) }
    })
  }

  async #send(message: NewMessage): Promise<Taken> {
    const { messageId, whenBusy = 'reject' } = message
    const runId = runIdOf(this.threadId, messageId)
    if ((await this.#info(runId)) !== null) return { status: 'attached', run: Promise.resolve({ runId }) }
    const before = await this.latest()
    if (before?.status === 'running' || before?.status === 'interrupted')
      return this.#sendBusy(before, message, whenBusy)
    if (before?.status === 'paused') return this.#sendWaiting(before, message, whenBusy)
    await this.#begin({ ...message, runId, history: before })
    return { status: 'started', run: Promise.resolve({ runId }) }
  }

  regenerate(id: string): Promise<Taken> {
    return this.#means.inTurn(async () => {
      const runs = await this.runs()
      const ids = await Promise.all(runs.map((run) => this.messageIds(run.runId)))
      const index = ids.findLastIndex((each, place) => each.includes(id) || runs[place]?.runId === id)
      const [run, last] = [runs[index], runs.at(-1)]
      if (run === undefined || last === undefined) throw notFound()
      if (last.status === 'running')
        throw new RequestError(409, 'run_active', { message: 'A run of this conversation is in progress.' })
      const content = await this.#promptOf(run.runId)
      if (content === null) throw notFound()
      if (last.status !== 'completed') await this.stop(last.runId)
      const messageId = ids[index]?.[0] ?? id
      const runId = runIdOf(this.threadId, messageId, run.runId)
      const metadata = { [REPLACES]: run.runId }
      await this.#begin({ runId, messageId, content, metadata, history: runs[index - 1] ?? null })
      return { status: 'started', run: Promise.resolve({ runId }) }
    })
  }

  async #promptOf(runId: string): Promise<InputMessage | null> {
    for await (const event of this.#means.log.read({ kind: 'run', id: runId }))
      return event.kind === 'run_started' ? event.prompt : null
    return null
  }

  async #begin({ runId, messageId, content, metadata: more, mode, history }: NewRun): Promise<void> {
    const { access, log } = this.#means
    const metadata = {
      ...more,
      ...(mode !== undefined && { [SERVED_BY]: mode }),
      ...{ conversation_id: this.threadId, message_id: messageId, resourceId: access.resourceId },
    }
    const input = inputPort()
    const run = this.#harnessOf(mode).stream(content, {
      ...{ runId, log, metadata, input, tools: clientToolsIn(metadata) },
      ...{ history: history === null ? undefined : { runId: history.runId } },
      ...(access.deps !== undefined && { deps: access.deps as never }),
    })
    try {
      await this.#start(run, input)
    } catch (error) {
      if (codeOf(error) !== 'run_exists') throw error
    }
  }

  async #sendBusy(
    { runId, status, seq }: RunInfo,
    message: NewMessage,
    whenBusy: NonNullable<NewMessage['whenBusy']>,
  ): Promise<Taken> {
    if (status === 'interrupted')
      throw new RequestError(409, 'interrupted', { message: 'The last run was interrupted: recover it first.' })
    if (whenBusy !== 'steer')
      throw new RequestError(409, 'run_active', { message: 'A run of this conversation is in progress.' })
    await this.steer(runId, message)
    return { status: 'steered', run: Promise.resolve({ runId, beyond: seq }) }
  }

  async #sendWaiting(
    { runId, pending, seq }: RunInfo,
    { content }: NewMessage,
    whenBusy: NonNullable<NewMessage['whenBusy']>,
  ): Promise<Taken> {
    const declines = this.#means.declines || whenBusy === 'decline'
    if (!declines || pending.some(({ kind }) => kind === 'unknown_outcome'))
      throw new RequestError(409, 'pending', { message: 'The run waits for people.', pending })
    const reason = 'The person wrote instead.'
    const answers = pending.map(({ kind, callId }): Answer =>
      kind === 'approval' ? { callId, approved: false, reason } : { callId, declined: true, reason },
    )
    await this.#resume(runId, (harness, options) => {
      options.input?.send(content)
      return harness.streamResume(runId, answers, options)
    })
    return { status: 'steered', run: Promise.resolve({ runId, beyond: seq }) }
  }

  async branch(after: string, message: NewMessage): Promise<{ readonly thread: ThreadPort; readonly taken: Taken }> {
    const history = await this.#info(after)
    if (history === null) throw notFound()
    const threadId = `thread_${sha256(JSON.stringify([after, message.messageId])).slice(0, 32)}`
    const thread = new HarnessThread(threadId, this.#means)
    const runId = runIdOf(threadId, message.messageId)
    const known = await this.#info(runId)
    if (known === null) await thread.#begin({ ...message, runId, history })
    return { thread, taken: { status: known === null ? 'started' : 'attached', run: Promise.resolve({ runId }) } }
  }

  /** The harness that serves a mode. */
  #harnessOf(mode: unknown): ServedHarness {
    const { harness, harnesses } = this.#means
    return (typeof mode === 'string' ? harnesses.get(mode) : undefined) ?? harness
  }

  /** Continues a run. */
  async #resume(
    runId: string,
    begin: (harness: ServedHarness, options: ResumeOptions) => HarnessStream<unknown>,
  ): Promise<void> {
    const { log, access } = this.#means
    const input = inputPort()
    const metadata = (await log.inspect({ kind: 'run', id: runId }))?.metadata
    const options = { log, input, tools: clientToolsIn(metadata) }
    await this.#start(
      begin(this.#harnessOf(metadata?.[SERVED_BY]), {
        ...options,
        ...(access.deps !== undefined && { deps: access.deps }),
      }),
      input,
    )
  }

  /** Hands a run that was begun to the hub. A run that is refused has no events. */
  async #start(run: HarnessStream<unknown>, input: InputPort): Promise<void> {
    this.#means.inputs.add(run, input)
    await this.#means.hub.start(run)
  }

  async #info(runId: string): Promise<RunInfo | null> {
    const summary: RunSummary | null = await this.#means.log.inspect({ kind: 'run', id: runId })
    if (summary === null) return null
    const { status, pending, lastSeq: seq } = summary
    return { runId, status, pending, seq }
  }
}
