import type { ToolEntry, TranscriptEntry } from '#contracts/entry.js'
import type { TranscriptRepair } from '#contracts/mend.js'
import { expectSame } from '../../expect.js'
import type { Chance } from '../chance.js'
import { resultContents, toolMessages } from '../read-back.js'
import { expectTurn } from '../talk.js'
import type { LawText, Talk } from '../talk.js'

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
