import { HarnessError } from 'thinharness'
import type { DurableEvent, LogStore } from 'thinharness'
import { reduceChat } from 'thinharness/session'
import type { Chat, ChatEvent, ChatSnapshot, ThreadEvent } from 'thinharness/session'
import { between } from '../crash/random.js'
import type { Life, LifeReport } from './life.js'
import { phaseProblem, spawn } from './life.js'
import type { SimProcess } from './process.js'
import { EFFECTS } from './process.js'
import type { World } from './process.js'

/** At most so many rounds of answers until a thread is idle with an empty queue. */
const ROUNDS = 60
/** Until whoever follows has seen everything, and posts are taken, in ms. */
const SETTLE_MS = 12_000

/** Ends a life calmly, and finds the promises that it broke. */
export async function checkLife(seed: number, life: Life): Promise<LifeReport> {
  const { world, people, processes } = life
  for (const { log } of processes) log.calm()
  for (const process of processes) if (!process.log.isDead) process.calm()
  // Claims of the dead expire.
  await world.time.sleep(130_000)
  const process = spawn(life)
  process.calm()
  const threads = [...life.threads].filter((threadId) => !life.deleted.has(threadId))
  const problems = [...people.problems, ...life.problems]
  const runIds: string[] = []
  const lastRuns: string[] = []
  const stored: (ThreadEvent | DurableEvent)[] = []
  let calls = 0
  for (const threadId of threads) {
    const chat = await settled(process, threadId, problems)
    if (chat === null) continue
    await world.time.sleep(SETTLE_MS)
    const events = await storedIn(world.base, threadId)
    stored.push(...events)
    problems.push(...(await problemsOfThread(life, chat, events)))
    for (const { runId } of chat.snapshot.runs) runIds.push(runId)
    lastRuns.push(...runIds.slice(-1))
    calls += events.filter(({ kind }) => kind === 'tool_call_completed').length
  }
  for (const threadId of life.deleted) problems.push(...(await problemsOfDeletion(process, world.base, threadId)))
  if (life.deleted.size > 0) {
    problems.push(...(await problemsOfOrphans(world.base, life.deleted)))
    await world.time.sleep(SETTLE_MS)
  }
  problems.push(...problemsOfMessages(life, await placesOf(world.base, threads)))
  problems.push(...(await problemsOfCalls(life)))
  for (const [{ messageId }, { processNumber }] of people.open)
    if (processes[processNumber]?.log.isDead === false) problems.push(`\`done\` of ${messageId} did not settle.`)
  const deaths = processes.filter((each) => each.log.isDead).length
  for (const each of processes) if (!each.log.isDead) await each.sessions.close()
  const counts = { messages: people.messages.size, runs: runIds.length, calls, deaths }
  const log = (): string[] => stored.map((event) => JSON.stringify(event))
  return { seed, problems: [...new Set(problems)], log, counts, lastRuns }
}

/** The thread when everything has been answered and every message of its queue was sent. Null if it does not exist. */
export async function settled(
  process: SimProcess,
  threadId: string,
  problems: string[],
  [firstMs, laterMs]: readonly [number, number] = [1_000, 20_000],
): Promise<Chat | null> {
  const { sessions } = process
  if ((await process.log.inspect({ kind: 'thread', id: threadId })) === null) return null
  const chat = await sessions.open(threadId)
  for (let round = 0; round < ROUNDS; round++) {
    if (round > 0 && chat.phase === 'idle' && chat.queue.list().length === 0) return chat
    if (chat.phase === 'interrupted') await chat.cancel().catch(unlessOwned)
    const answers = chat.pending.map(({ kind, callId }) =>
      kind === 'approval' ? { callId, approved: false } : { callId, declined: true as const },
    )
    const unknown = chat.pending.filter(({ kind }) => kind === 'unknown_outcome')
    const verdicts = unknown.map(({ callId }) => ({ callId, answer: { outcome: 'did_not_happen' } }))
    const isUnknown = (callId: string): boolean => unknown.some((item) => item.callId === callId)
    const all = [...answers.filter(({ callId }) => !isUnknown(callId)), ...verdicts]
    if (all.length > 0) await chat.answer(all)
    await chat.queue.release()
    await chat.whenIdle()
    // Whoever owns the thread takes the posts.
    await new Promise((resolve) => setTimeout(resolve, round === 0 ? firstMs : laterMs))
  }
  problems.push(`${threadId} stays ${chat.phase} with ${chat.queue.list().length} messages in its queue.`)
  return chat
}

/** The claim of a process that has died is valid for a while. */
function unlessOwned(error: unknown): void {
  if (!(error instanceof HarnessError) || error.code !== 'run_owned') throw error
}

/** A thread that was to be deleted: that may have failed, or it was begun anew. */
async function problemsOfDeletion(process: SimProcess, base: LogStore, threadId: string): Promise<readonly string[]> {
  const [first] = await storedIn(base, threadId)
  if (first === undefined) return []
  if (first.kind !== 'thread_opened') return [`${threadId} was deleted, and written again without a beginning.`]
  await process.sessions.delete(threadId)
  return (await storedIn(base, threadId)).length === 0 ? [] : [`${threadId} was deleted, and is still there.`]
}

/** Runs of deleted threads that no other log needs. */
async function problemsOfOrphans(base: LogStore, deleted: ReadonlySet<string>): Promise<readonly string[]> {
  const problems: string[] = []
  for await (const { runId, metadata } of base.list({ parentRunId: null })) {
    const { conversation_id: threadId } = metadata
    if (typeof threadId !== 'string' || !deleted.has(threadId)) continue
    const needed = (await base.referrers?.({ kind: 'run', id: runId })) ?? []
    if (needed.length === 0) problems.push(`Run ${runId} of ${threadId}, which was deleted, is still there.`)
  }
  return problems
}

/** Every stored event of a thread and its runs, log by log. */
async function storedIn(base: LogStore, threadId: string): Promise<(ThreadEvent | DurableEvent)[]> {
  const events: (ThreadEvent | DurableEvent)[] = []
  const runIds: string[] = []
  for await (const event of base.read<ThreadEvent>({ kind: 'thread', id: threadId })) {
    events.push(event)
    if (event.kind === 'run_begun' && !runIds.includes(event.runId)) runIds.push(event.runId)
  }
  for (const id of runIds) for await (const event of base.read({ kind: 'run', id })) events.push(event)
  return events
}

async function problemsOfThread(
  life: Life,
  chat: Chat,
  stored: readonly (ThreadEvent | DurableEvent)[],
): Promise<readonly string[]> {
  const problems: string[] = []
  const { threadId } = chat
  const phase = phaseProblem(chat)
  if (phase !== null) problems.push(`${phase}, at the end.`)
  const all = await eventsOf(chat, undefined)
  const idOf = (event: ThreadEvent | DurableEvent): string =>
    `${'threadId' in event ? 'thread' : event.runId}:${event.seq}`
  const read = all.filter(({ durable }) => durable).map((event) => idOf(event as ThreadEvent | DurableEvent))
  const expected = stored.map(idOf)
  if (read.length !== expected.length || expected.some((id) => !read.includes(id)))
    problems.push(`A reader of ${threadId} gets ${read.length} stored events of ${expected.length}.`)
  const whole = textOf(all.reduce<ChatSnapshot | undefined>(reduceChat, undefined))
  if (whole !== textOf(chat.snapshot))
    problems.push(
      `The fold of the events of ${threadId} is not its snapshot:\n${difference(whole, textOf(chat.snapshot))}`,
    )
  problems.push(...(await problemsOfCut(life, chat, all)))
  problems.push(...problemsOfTranscript(chat))
  for (const [number, process] of life.processes.entries()) {
    if (process.log.isDead || process.isClosed) continue
    const other = await process.sessions.open(threadId).catch(() => null)
    if (other !== null && textOf(other.snapshot) !== whole)
      problems.push(
        `Process ${number} shows another snapshot of ${threadId}:\n${difference(whole, textOf(other.snapshot))}`,
      )
  }
  problems.push(...problemsOfReaders(life, threadId, all))
  return problems
}

/** No message is twice in the conversation as people see it. */
export function problemsOfTranscript({ threadId, snapshot: { runs } }: Chat): readonly string[] {
  const seen = new Set<string>()
  const ids = runs.flatMap(({ messageIds, entries }) => [
    ...messageIds,
    ...entries.flatMap((entry) => (entry.role === 'user' && entry.messageId !== undefined ? [entry.messageId] : [])),
  ])
  return ids.flatMap((id) => {
    const isTwice = seen.has(id)
    seen.add(id)
    return isTwice ? [`Thread ${threadId} shows message ${id} twice.`] : []
  })
}

/** A reader that comes back with any cursor gets exactly the rest. */
async function problemsOfCut(life: Life, chat: Chat, all: readonly ChatEvent[]): Promise<readonly string[]> {
  if (all.length === 0) return []
  const index = between(life.world.random, 0, all.length - 1)
  const rest = await eventsOf(chat, all[index]?.cursor)
  const [is, expected] = [rest, all.slice(index + 1)].map((events) => events.map(({ cursor }) => cursor).join(' '))
  return is === expected ? [] : [`After event ${index} of ${chat.threadId} a reader gets ${is} instead of ${expected}.`]
}

/** Readers saw every event of each log in its order, without a gap, and no event of the thread before those that it follows. */
function problemsOfReaders(life: Life, threadId: string, all: readonly ChatEvent[]): readonly string[] {
  return life.readers.flatMap((reader) => {
    if (reader.threadId !== threadId) return []
    const { events, after, processNumber } = reader
    const process = life.processes[processNumber]
    const isAll = process !== undefined && !process.log.isDead && !process.isClosed && !reader.hasFailed
    const problem = problemOfReader(events, eventsAfter(all, after), isAll)
    return problem === null
      ? []
      : [
          `A reader of ${threadId} in process ${processNumber}${after === undefined ? '' : `, after ${after},`} ${problem}`,
        ]
  })
}

/** The events after a cursor. That of a process which followed may lie between two places of the one order. */
function eventsAfter(all: readonly ChatEvent[], after: string | undefined): readonly ChatEvent[] {
  if (after === undefined) return all
  const [thread, runId, seq] = after.split('.')
  // A run that could not begin is begun again later.
  const begun = all.findLastIndex(
    (event) => event.kind === 'run_begun' && event.runId === runId && event.seq <= Number(thread),
  )
  return all.filter((event, index) => {
    if ('threadId' in event) return event.seq > Number(thread)
    return event.runId === runId ? event.seq > Number(seq) : index > begun
  })
}

function problemOfReader(events: readonly ChatEvent[], expected: readonly ChatEvent[], isAll: boolean): string | null {
  const logs = new Map<string, { seen: number[]; stored: number[] }>()
  const logOf = (event: ChatEvent): { seen: number[]; stored: number[] } => {
    const id = 'threadId' in event ? 'the thread' : event.runId
    const log = logs.get(id) ?? { seen: [], stored: [] }
    logs.set(id, log)
    return log
  }
  for (const event of expected) if (event.durable) logOf(event).stored.push(event.seq)
  for (const event of events) {
    if (!event.durable) continue
    if ('threadId' in event && event.after !== null) {
      const run = logs.get(event.after.runId)
      if (run !== undefined && run.stored.includes(event.after.seq) && !run.seen.includes(event.after.seq))
        return `got event ${event.seq} of the thread before event ${event.after.seq} of the run.`
    }
    logOf(event).seen.push(event.seq)
  }
  for (const [id, { seen, stored }] of logs) {
    const due = isAll ? stored : stored.slice(0, seen.length)
    if (seen.join(' ') !== due.join(' ')) return `got ${seen.join(' ')} of ${id} instead of ${due.join(' ')}.`
  }
  return null
}

async function eventsOf(chat: Chat, after: string | undefined): Promise<ChatEvent[]> {
  const over = new AbortController()
  const events: ChatEvent[] = []
  setTimeout(() => over.abort(), 100)
  for await (const event of chat.events({ after, signal: over.signal })) events.push(event)
  return events
}

interface Places {
  /** Ids of the messages in transcripts and queues, once for each place. */
  readonly found: readonly string[]
  /** Ids of the messages that were removed, refused by the owner, or in runs that were replaced. */
  readonly gone: ReadonlySet<string>
}

/** Where the messages are, according to the logs alone. */
export async function placesOf(base: LogStore, threads: readonly string[]): Promise<Places> {
  const found: string[] = []
  const gone = new Set<string>()
  for (const id of threads) {
    const begun = new Map<string, readonly string[]>()
    const replaced = new Set<string>()
    for await (const event of base.read<ThreadEvent>({ kind: 'thread', id })) {
      if (event.kind === 'message_removed') gone.add(event.messageId)
      if (event.kind === 'message_taken' && 'error' in event.outcome && event.messageId !== null)
        gone.add(event.messageId)
      if (event.kind !== 'run_begun') continue
      begun.set(event.runId, event.messageIds)
      for (const runId of event.replaces?.runIds ?? []) replaced.add(runId)
    }
    for (const [runId, messageIds] of begun) {
      for await (const event of base.read({ kind: 'run', id: runId })) {
        for (const messageId of messagesIn(event, messageIds)) {
          if (replaced.has(runId)) gone.add(messageId)
          else found.push(messageId)
        }
      }
    }
  }
  return { found, gone }
}

function messagesIn(event: DurableEvent, begunWith: readonly string[]): readonly string[] {
  if (event.kind === 'run_started' && event.seq === 1) return begunWith
  if (event.kind !== 'model_request_started') return []
  return event.entries.flatMap((entry) =>
    entry.role === 'user' && entry.messageId !== undefined ? [entry.messageId] : [],
  )
}

export function problemsOfMessages(
  { people, deleted }: Pick<Life, 'people' | 'deleted'>,
  { found, gone }: Places,
): readonly string[] {
  const problems: string[] = []
  for (const [messageId, { threadId, isStored, unknown }] of people.messages) {
    const times = found.filter((each) => each === messageId).length
    if (times > 1) problems.push(`Message ${messageId} is ${times} times in the transcript.`)
    const isBack = gone.has(messageId) || people.returned.has(messageId)
    if (isStored && times === 0 && !isBack && !deleted.has(threadId))
      problems.push(`Message ${messageId} was stored, and is lost.`)
    if (times > 0 && people.returned.has(messageId)) problems.push(`Message ${messageId} was given back, and was sent.`)
    if (times > 0 && !isStored && unknown === 0) problems.push(`Message ${messageId} was refused, and was sent.`)
  }
  return problems
}

const REFUSED = new Set(['ApprovalRejected', 'Declined', 'Denied', 'DidNotHappen', 'NotFound', 'InvalidArguments'])

/** No refused call has run; none with effects ran twice; each effect is known to a log. */
export async function problemsOfCalls({
  world: { base, effects },
  people,
  deleted,
}: {
  readonly world: Pick<World, 'base' | 'effects'>
} & Pick<Life, 'people' | 'deleted'>): Promise<readonly string[]> {
  const problems: string[] = []
  const known = new Set<string>()
  for await (const { runId } of base.list({})) {
    for await (const event of base.read({ kind: 'run', id: runId })) {
      if (event.kind === 'tool_call_started') known.add(`${runId}:${event.callId}`)
      if (event.kind !== 'tool_call_completed' || !EFFECTS.has(event.toolName)) continue
      const key = `${runId}:${event.callId}`
      if (event.errorType === null || !REFUSED.has(event.errorType)) continue
      const isVerdict = event.errorType === 'DidNotHappen'
      if (effects.has(key) && !isVerdict)
        problems.push(`${key} (${event.toolName}) was refused (${event.errorType}), and ran.`)
    }
  }
  for (const [key, isApproved] of people.approvals)
    if (!isApproved && effects.has(key)) problems.push(`${key} was not approved, and ran.`)
  for (const [key, times] of effects) {
    const most = 1 + (people.runAgain.get(key) ?? 0)
    if (times > most) problems.push(`The effect of ${key} happened ${times} times.`)
    if (!known.has(key) && deleted.size === 0) problems.push(`${key} had an effect, and no log has started it.`)
  }
  return problems
}

function textOf(value: unknown): string {
  return JSON.stringify(value)
}

function difference(left: string, right: string): string {
  let at = 0
  while (at < left.length && left[at] === right[at]) at += 1
  return `…${left.slice(Math.max(0, at - 60), at + 80)}…\n…${right.slice(Math.max(0, at - 60), at + 80)}…`
}
