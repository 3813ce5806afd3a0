import { expectSame } from '../../expect.js'
import { cutToShare } from '../generate.js'
import type { Chance } from '../generate.js'
import { resultContents, toolMessages } from '../read-back.js'
import type { StagedDelivery } from '../stage.js'
import { expectTurn } from '../talk.js'
import type { LawText, TurnOutcome, Talk } from '../talk.js'
import type { TokenUsage, ToolEntry, TranscriptEntry } from '#contracts/entry.js'
import { messageOf, HarnessError } from '#contracts/errors.js'
import type { TranscriptRepair } from '#contracts/mend.js'

export const failureLaws = {
  cut_stream: {
    says: 'An answer that stops before its end is an error, unless nothing of the reply was lost.',
    holds: async (given) => {
      const talk = given.talk().say()
      const reply = talk.generator.reply()
      for (const streamed of [true, false]) {
        const whole = expectTurn(await talk.askAgain({ reply }, { streamed }), given.stage)
        for (let count = 0; count < 4; count++) {
          const share = given.chance.next()
          const outcome = await talk.askAgain({ reply, cut: cutToShare(share) }, { streamed })
          const what = `a ${streamed ? 'stream' : 'reply'} that ended after ${Math.round(share * 100)} %`
          if (outcome.kind === 'failure') checkFailure(outcome, what)
          else expectSame(what, outcome.turn.entry.parts, whole.entry.parts)
        }
      }
    },
  },
  error_answers: {
    says: 'An error status is a `provider_error` with the status and the words of the provider, and is retried only if that can help.',
    holds: async (given) => {
      const talk = given.talk().say()
      for (const [status, isPassing] of STATUSES) {
        for (const streamed of [true, false]) {
          const words = `Words ${talk.generator.mark()}`
          const headers = status === 429 ? { 'retry-after': '7' } : {}
          checkRefusal(await talk.askAgain({ status, words, headers }, { streamed }), { status, words, isPassing })
        }
      }
    },
    share: 0,
  },
  no_retries: {
    says: 'With `retries: 0` a model repeats nothing, whatever it does otherwise.',
    holds: async (given) => {
      const talk = given.talk().say()
      for (const status of [500, 503]) {
        const delivery = { status, words: 'No.', headers: {} }
        const outcome = await talk.askAgain(delivery, { streamed: given.chance.happens(0.5), retries: 0 })
        checkRefusal(outcome, { ...delivery, isPassing: true })
        const { retry } = outcome.kind === 'failure' ? outcome : { retry: null }
        expectSame(`whether an answer of status ${status} was to be repeated`, retry !== null, false)
      }
    },
    share: 0.2,
  },
  settled_attempts: {
    says: 'A model that begins attempts begins one for each request that it sends, and settles each: by the usage of the reply, or by how it failed.',
    holds: async (given) => {
      const talk = given.talk().say()
      const reply = talk.generator.reply()
      for (const streamed of [true, false]) {
        const answered = await talk.askAgain({ reply }, { streamed })
        const { usage } = expectTurn(answered, given.stage).entry
        checkSettled(answered, 'a reply', { usage, failure: null })
        for (const status of [400, 429]) {
          const refused = await talk.askAgain({ status, words: 'No.', headers: {} }, { streamed })
          checkSettled(refused, `an answer of status ${status}`, { usage: null, status })
        }
      }
    },
    share: 0.2,
  },
  abort: {
    says: 'An abort ends a turn at once, at any moment, with the reason that was given.',
    holds: async (given) => {
      const talk = given.talk().say()
      const reply = talk.generator.reply()
      const share = given.chance.next() / 2
      const moments: readonly StagedDelivery[] = ['no_answer', { reply, cut: cutToShare(share), then: 'stall' }]
      for (const delivery of moments) {
        for (const streamed of [true, false]) await checkAbort(talk, delivery, streamed)
      }
      await checkAbortedBefore(talk)
    },
    share: 0.2,
  },
} as const satisfies Readonly<Record<string, LawText>>

/** Statuses; true if a retry can help. */
const STATUSES = [
  [400, false],
  [401, false],
  [403, false],
  [404, false],
  [413, false],
  [422, false],
  [429, true],
  [500, true],
  [502, true],
  [503, true],
] as const

/** A failure of the library, or a reported retry. */
function checkFailure({ error, retry }: TurnOutcome & { kind: 'failure' }, what: string): void {
  if (retry !== null || (error instanceof HarnessError && error.code === 'provider_error')) return
  throw new Error(`Expected a \`provider_error\` for ${what}, got: ${messageOf(error)}`, { cause: error })
}

interface WantedRefusal {
  readonly status: number
  readonly words: string
  readonly isPassing: boolean
}

function checkRefusal(outcome: TurnOutcome, { status, words, isPassing }: WantedRefusal): void {
  const what = `an answer of status ${status}`
  if (outcome.kind === 'turn') throw new Error(`Expected a \`provider_error\` for ${what}, got a turn.`)
  checkFailure(outcome, what)
  const { error, retry } = outcome
  const known = error instanceof HarnessError ? error : null
  expectSame(`the status of the error for ${what}`, retry === null ? known?.status : retry.status, status)
  expectSame(`whether ${what} is worth a repetition`, retry !== null || known?.retryable === true, isPassing)
  const said = retry === null ? messageOf(error) : retry.reason
  if (!said.includes(words)) throw new Error(`The words of the provider are lost for ${what}: ${said}`)
  const waitMs = retry === null ? known?.retryAfterMs : retry.delayMs
  if (status === 429 && (waitMs ?? 0) < 7000) throw new Error(`\`retry-after: 7\` is not heeded: ${waitMs ?? 0} ms.`)
}

/** A model may leave it to the run to count its request as one attempt. */
function checkSettled({ attempts }: TurnOutcome, what: string, wanted: WantedAttempt): void {
  if (attempts.length === 0) return
  expectSame(`the attempts at a request that got ${what}`, attempts.length, 1)
  const { settled } = attempts[0] ?? { settled: null }
  if (settled === null) throw new Error(`The attempt that got ${what} was not settled.`)
  const { usage, ended } = settled
  if (wanted.usage !== null) expectSame(`the usage of the attempt that got ${what}`, usage, wanted.usage)
  else if ((usage?.outputTokens ?? 0) > 0)
    throw new Error(`The attempt that got ${what} was settled as if it had cost something.`)
  if (wanted.status !== undefined) expectSame(`the status of the attempt that got ${what}`, ended.status, wanted.status)
  const hasFailed = (ended.failure ?? null) !== null
  expectSame(`whether the attempt that got ${what} has failed`, hasFailed, wanted.failure === undefined)
}

interface WantedAttempt {
  readonly usage: TokenUsage | null
  readonly status?: number
  /** Null: it has not failed. */
  readonly failure?: null
}

async function checkAbort(talk: Talk, delivery: StagedDelivery, streamed: boolean): Promise<void> {
  const abort = new AbortController()
  const reason = new Error('The law had enough.')
  const heard = talk.stage.heard.length
  const asked = talk.askAgain(delivery, { streamed, abort })
  while (talk.stage.heard.length === heard) await new Promise((resolve) => setImmediate(resolve))
  abort.abort(reason)
  checkReason(await asked, reason)
}

async function checkAbortedBefore(talk: Talk): Promise<void> {
  const abort = new AbortController()
  const reason = new Error('The law had enough before it began.')
  abort.abort(reason)
  const heard = talk.stage.heard.length
  checkReason(await talk.askAgain({ reply: talk.generator.reply() }, { streamed: true, abort }), reason)
  expectSame('the requests sent for a turn that was aborted before', talk.stage.heard.length - heard, 0)
}

function checkReason(outcome: TurnOutcome, reason: Error): void {
  if (outcome.kind === 'failure' && outcome.error === reason) return
  const came = outcome.kind === 'turn' ? 'a turn' : messageOf(outcome.error)
  throw new Error(`Expected an aborted turn to reject with the reason of its signal, got: ${came}`)
}

export const mendedLaws = {
  mended_history: {
    says: 'A broken history is mended in the request, and reported: each call gets one result, its own if it has one.',
    holds: async (given) => {
      const talk = given.talk().say()
      talk.add(replyWithCalls(talk))
      talk.say()
      talk.add(replyWithCalls(talk))
      talk.say()
      const broken = breakHistory(talk.transcript, given.chance)
      talk.transcript.splice(0, Infinity, ...broken.entries)
      const outcome = await talk.ask({ reply: talk.generator.reply({ calls: 0 }) })
      expectTurn(outcome, given.stage)
      if (broken.problem !== null && !outcome.repairs.some(({ problem }) => problem === broken.problem)) {
        throw new Error(`A history with \`${broken.problem}\` was mended without a word (\`onRepair\`).`)
      }
      checkAnswers(talk, broken.entries)
    },
  },
} as const satisfies Readonly<Record<string, LawText>>

/** Two calls at least, as another provider makes them. */
function replyWithCalls({ generator }: Talk): TranscriptEntry & { role: 'assistant' } {
  const calls = generator.chance.several(2, 4, () => ({
    type: 'tool_call' as const,
    callId: generator.callId(),
    name: generator.toolName(),
    arguments: generator.args(),
  }))
  return { ...generator.foreignReply(), parts: calls }
}

interface Broken {
  readonly entries: readonly TranscriptEntry[]
  /** Null: only the order is wrong, and nothing is reported. */
  readonly problem: TranscriptRepair['problem'] | null
}

function breakHistory(entries: readonly TranscriptEntry[], chance: Chance): Broken {
  const results = entries.filter((entry) => entry.role === 'tool')
  const [first, ...others] = results
  if (first === undefined) throw new RangeError('A history of calls has results.')
  const victim = chance.pick([first, ...others])
  const at = entries.indexOf(victim)
  switch (chance.int(1, 5)) {
    case 1:
      return { entries: entries.toSpliced(at, 1), problem: 'missing_result' }
    case 2:
      return { entries: entries.toSpliced(at, 0, { ...victim, id: 'again' }), problem: 'duplicate_result' }
    case 3:
      return {
        entries: entries.toSpliced(at, 0, { ...victim, id: 'stray', callId: 'nobody' }),
        problem: 'orphan_result',
      }
    case 4:
      return { entries: withIdTwice(entries, first.callId, results), problem: 'duplicate_call_id' }
    default:
      return { entries: entries.toSpliced(at, 1).toSpliced(entries.length - 1, 0, victim), problem: null }
  }
}

/** The last call, and its result, under the id of the first. */
function withIdTwice(
  entries: readonly TranscriptEntry[],
  callId: string,
  results: readonly ToolEntry[],
): readonly TranscriptEntry[] {
  const renamed = results.at(-1)?.callId
  return entries.map((entry) => {
    if (entry.role === 'tool') return entry.callId === renamed ? { ...entry, callId } : entry
    if (entry.role === 'user') return entry
    const parts = entry.parts.map((part) =>
      part.type === 'tool_call' && part.callId === renamed ? { ...part, callId } : part,
    )
    return { ...entry, parts }
  })
}

/** Every call has one result, and the content of every result is kept. */
function checkAnswers({ request }: Talk, entries: readonly TranscriptEntry[]): void {
  const results = entries.filter((entry) => entry.role === 'tool')
  const contents = new Set(resultContents(results, request))
  const kept = toolMessages(request).filter(({ content }) => contents.has(content)).length
  const wanted = results.filter(({ id }) => id !== 'again' && id !== 'stray').length
  expectSame('the results whose content was kept', kept, wanted)
}
