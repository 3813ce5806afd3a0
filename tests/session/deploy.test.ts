import fc from 'fast-check'
import { expect, test } from 'vitest'
import { HarnessError, memoryLog } from 'thinharness'
import { SessionError } from 'thinharness/session'
import type { Chat, ChatAnswer, MessageEnd, Sent } from 'thinharness/session'
import { oneIn, rounds, timeLimit } from '../support/length.js'
import { conversationIn, deployed, DEPLOYS, PHASES } from './deploys.js'
import type { Ran } from './deploys.js'
import { warnings } from './support.js'

/** What people and the host do with the conversation after a deploy. */
const ACTS = [
  'recover',
  'answer',
  'send',
  'steer',
  'decline',
  'interrupt',
  'cancel',
  'release',
  'regenerate',
  'idle',
] as const
type Act = (typeof ACTS)[number]

/** A life after a deploy. Calls that are refused say so by a code; each message has its end. */
class Life {
  readonly problems: string[] = []
  readonly ends = new Map<Sent, MessageEnd | null>()
  readonly #chat: Chat
  #sent = 0

  constructor(chat: Chat) {
    this.#chat = chat
  }

  async act(act: Act): Promise<void> {
    try {
      await this.#perform(act)
    } catch (error) {
      if (!(error instanceof SessionError || error instanceof HarnessError))
        this.problems.push(`${act}: ${String(error)}`)
    }
  }

  async #perform(act: Act): Promise<unknown> {
    const chat = this.#chat
    const messageId = `m${(this.#sent += 1)}`
    switch (act) {
      case 'recover':
        return chat.recover()
      case 'answer': {
        if (chat.pending.length === 0) return
        const before = chat.pending.map(({ callId }) => callId)
        const statuses = await chat.answer(chat.pending.map(answerTo))
        const isStale = statuses.some(({ callId, status }) => status === 'stale' && before.includes(callId))
        if (isStale && chat.pending.some(({ callId }) => before.includes(callId)))
          this.problems.push('stale, and it waits')
        return
      }
      case 'send':
        this.expect(await chat.send(messageId, { messageId }))
        return
      case 'decline':
        this.expect(await chat.send(messageId, { messageId, whenBusy: 'decline' }))
        return
      case 'steer':
        this.expect(await chat.steer(messageId, { messageId }))
        return
      case 'interrupt':
        this.expect(await chat.steer(messageId, { messageId, interrupt: true }))
        return
      case 'cancel':
        return chat.cancel()
      case 'release':
        return chat.queue.release()
      case 'regenerate':
        this.expect(await chat.regenerate())
        return
      case 'idle':
        return chat.whenIdle()
    }
  }

  expect(sent: Sent): void {
    this.ends.set(sent, null)
    void sent.done.then(
      (end) => this.ends.set(sent, end),
      (error: unknown) => this.problems.push(`\`done\` rejected: ${String(error)}`),
    )
  }
}

function answerTo({ kind, callId }: Chat['pending'][number]): ChatAnswer {
  if (kind === 'approval') return { callId, approved: true }
  if (kind === 'unknown_outcome') return { callId, answer: { outcome: 'did_not_happen' } }
  return { callId, answer: callId.includes('plan') ? { action: 'approved' } : 3 }
}

/** What is wrong at the end of a life: open promises, lost messages, runs with other rights. */
async function problemsOf(life: Life, chat: Chat, ran: readonly Ran[]): Promise<readonly string[]> {
  const problems = [...life.problems]
  await chat.whenIdle().catch(() => undefined)
  for (let round = 0; round < 6 && (chat.phase !== 'idle' || chat.queue.list().length > 0); round += 1) {
    await chat.cancel()
    await chat.queue.release()
    await chat.whenIdle().catch(() => undefined)
    const left = chat.queue.list()
    if (left.length > 0 && !chat.queue.held) problems.push('A queue stands still, and is not held.')
    if (left.length > 0 && left.every(({ error }) => error !== undefined)) break
  }
  if (chat.phase !== 'idle') problems.push(`It stays ${chat.phase} after a cancel.`)
  await new Promise((resolve) => setImmediate(resolve))
  const { runs, queue, thread } = chat.snapshot
  const read = runs.flatMap(({ messageIds, entries }) => [
    ...messageIds,
    ...entries.flatMap((entry) => (entry.role === 'user' ? (entry.messageId ?? []) : [])),
  ])
  for (const [{ messageId }, end] of life.ends) {
    if (end === null) problems.push(`\`done\` of ${messageId} is open.`)
    else if ((end.status === 'failed' || end.status === 'queued') && end.error === undefined)
      problems.push(`${messageId} is ${end.status}, for no reason.`)
    const isThere = read.includes(messageId) || queue.some((item) => item.messageId === messageId)
    // A message that was answered again has another run in its place.
    if (!isThere && end?.status !== 'removed' && thread.replaced.length === 0) problems.push(`${messageId} is lost.`)
  }
  for (const { mode, runId, tool } of ran) {
    const run = runs.find((each) => each.runId === runId)
    if (run !== undefined && run.mode !== mode)
      problems.push(`${tool} ran under \`${mode}\` in a run of \`${run.mode}\`.`)
  }
  return problems
}

const phases = Object.entries(PHASES)
const deploys = Object.entries(DEPLOYS)
const cases = phases.flatMap(([phase], index) =>
  deploys.map(([deploy], place) => [phase, deploy, index + place] as const),
)
const some = oneIn(3)

test.each(cases.filter(([, , place]) => place % some === 0))(
  'a conversation that %s, after a deploy with %s, goes on or says why by a code, and goes on after a cancel',
  async (phase, deploy) => {
    warnings()
    const log = memoryLog()
    await conversationIn(PHASES[phase] ?? (() => Promise.resolve()), log, true)
    const { sessions, ran } = deployed(DEPLOYS[deploy] ?? ((program) => program), log)
    const chat = await sessions.open('t1')
    const life = new Life(chat)
    for (const act of ['recover', 'idle', 'send', 'answer', 'idle', 'send', 'cancel', 'send', 'idle'] as const)
      await life.act(act)
    const last = [...life.ends].at(-1)?.[1]
    const cannotBegin = ['a model that is not there', '`deps` that throw'].includes(deploy)
    expect(cannotBegin ? ['failed', 'queued'] : ['completed']).toContain(last?.status)
    expect(await problemsOf(life, chat, ran)).toEqual([])
    await sessions.close()
  },
  timeLimit(60_000),
)

test(
  'a promise given for a message settles, whatever a deploy has changed and people do',
  async () => {
    warnings()
    const life = fc.record({
      phase: fc.constantFrom(...phases.map(([name]) => name)),
      deploy: fc.constantFrom(...deploys.map(([name]) => name)),
      isKilled: fc.boolean(),
      acts: fc.array(fc.constantFrom(...ACTS), { minLength: 1, maxLength: 8 }),
      together: fc.boolean(),
    })
    const settles = fc.asyncProperty(life, async ({ phase, deploy, isKilled, acts, together }) => {
      const log = memoryLog()
      await conversationIn(PHASES[phase] ?? (() => Promise.resolve()), log, isKilled)
      const { sessions, ran } = deployed(DEPLOYS[deploy] ?? ((program) => program), log)
      const chat = await sessions.open('t1')
      const played = new Life(chat)
      if (together) await Promise.all(acts.map((act) => played.act(act)))
      else for (const act of acts) await played.act(act)
      expect(await problemsOf(played, chat, ran)).toEqual([])
      await sessions.close()
    })
    await fc.assert(settles, rounds(25, 5_000))
  },
  timeLimit(60_000),
)
