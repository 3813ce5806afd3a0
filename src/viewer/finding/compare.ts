import { diffArrays, diffWordsWithSpace } from 'diff'
import { canonicalJson } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import type { Book } from '../reading/book.js'
import { memberOf, objectAt, objectsAt, textAt } from '../reading/event-fields.js'
import type { RunNode, TurnNode } from '../reading/nodes.js'

/** A row of the comparison of two runs. */
export interface ComparedTurn {
  /** `common`: the second run is a fork of the first, and began after this turn: it is in the log of the first alone. */
  readonly kind: 'common' | 'same' | 'changed' | 'added' | 'removed'
  /** Of the first run; null: it is `added`. */
  readonly left: TurnNode | null
  /** Of the second run; null: it is `removed`, or `common`. */
  readonly right: TurnNode | null
  /** What differs, of a row that is `changed`. */
  readonly differs: readonly ('text' | 'calls' | 'results' | 'model')[]
}

/** More differences than this are not looked for one by one. */
const MOST_EDITS = 2000

/**
 * The turns of two runs side by side: first those that are the same from the beginning on, then by the calls that they make. Empty if
 * the book has not both.
 *
 * @example
 * compareRuns(book, 'run_1', 'run_2').filter(({ kind }) => kind !== 'same')
 */
export function compareRuns(book: Book, leftId: string, rightId: string): readonly ComparedTurn[] {
  const [one, other] = [book.run(leftId), book.run(rightId)]
  if (one === null || other === null) return []
  const left = one.turns.map((turn) => readTurn(book, turn))
  const right = other.turns.map((turn) => readTurn(book, turn))
  const common = commonTurns(book, left, other)
  const rows = left
    .slice(0, common)
    .map(({ turn }): ComparedTurn => ({ kind: 'common', left: turn, right: null, differs: [] }))
  return [...rows, ...aligned(left.slice(common), right)]
}

/** A turn as far as it is compared. */
interface ReadTurn {
  readonly turn: TurnNode
  readonly text: string
  /** Tools with their arguments. */
  readonly calls: string
  readonly tools: string
  readonly results: string
}

function readTurn(book: Book, turn: TurnNode): ReadTurn {
  const { runId, replySeq, calls } = turn
  const reply = replySeq === null ? null : book.event({ runId, seq: replySeq })
  const results = calls.map(({ endSeq, state }) => {
    const event = endSeq === null ? null : book.event({ runId, seq: endSeq })
    return event === null ? state : textAt(event, 'output')
  })
  return { turn, ...replyTexts(objectAt(reply, 'entry')), results: results.join('\n') }
}

function replyTexts(entry: JsonObject): Pick<ReadTurn, 'text' | 'calls' | 'tools'> {
  const parts = objectsAt(entry, 'parts')
  const calls = parts.filter((part) => part['type'] === 'tool_call')
  return {
    text: parts.map((part) => (part['type'] === 'text' ? textAt(part, 'text') : '')).join(''),
    calls: calls.map((call) => `${textAt(call, 'name')} ${sortedText(textAt(call, 'arguments'))}`).join('\n'),
    tools: calls.map((call) => textAt(call, 'name')).join('\n'),
  }
}

/** Arguments whose members have another order are the same. */
function sortedText(json: string): string {
  try {
    return canonicalJson(JSON.parse(json))
  } catch {
    return json
  }
}

/** How many turns of the first run the second one began with: of a fork, they are in its history or in its first state. */
function commonTurns(book: Book, left: readonly ReadTurn[], other: RunNode): number {
  const { runId } = other
  const first = book.firstSeq(runId) ?? 0
  // A run that was queued begins with its second event.
  const event = [first, first + 1].map((seq) => book.event({ runId, seq })).find((each) => each?.kind === 'run_started')
  const transcript = memberOf(memberOf(event, 'state'), 'transcript') ?? memberOf(event, 'history')
  const earlier = objectsAt({ transcript }, 'transcript')
    .filter((entry) => entry['role'] === 'assistant')
    .map(replyTexts)
  const isSameReply = (reply: Pick<ReadTurn, 'text' | 'calls'>, turn: ReadTurn | undefined): boolean =>
    reply.text === turn?.text && reply.calls === turn.calls
  for (let count = Math.min(earlier.length, left.length); count > 0; count--) {
    const last = earlier.slice(-count)
    if (last.every((reply, index) => isSameReply(reply, left[index]))) return count
  }
  return 0
}

function aligned(left: readonly ReadTurn[], right: readonly ReadTurn[]): readonly ComparedTurn[] {
  let begin = 0
  const isSameHere = (): boolean => {
    const [one, other] = [left[begin], right[begin]]
    return one !== undefined && other !== undefined && differencesOf(one, other).length === 0
  }
  while (isSameHere()) begin += 1
  const rows = left.slice(0, begin).map((one, index) => paired(one, right[index] ?? one))
  const [restLeft, restRight] = [left.slice(begin), right.slice(begin)]
  const keys = (turns: readonly ReadTurn[]): string[] => turns.map(({ calls }) => calls)
  const changes = diffArrays(keys(restLeft), keys(restRight), { maxEditLength: MOST_EDITS })
  if (changes === undefined) return [...rows, ...apart(restLeft, restRight)]
  let [atLeft, atRight] = [0, 0]
  let removed: readonly ReadTurn[] = []
  for (const change of changes) {
    const count = change.value.length
    if (change.removed) {
      removed = restLeft.slice(atLeft, atLeft + count)
      atLeft += count
      continue
    }
    const turns = restRight.slice(atRight, atRight + count)
    atRight += count
    if (change.added) rows.push(...apart(removed, turns))
    else {
      rows.push(...apart(removed, []))
      rows.push(...turns.map((other, index) => paired(restLeft[atLeft + index] ?? other, other)))
      atLeft += count
    }
    removed = []
  }
  return [...rows, ...apart(removed, [])]
}

/** Turns that make other calls: those of the same tools are one that changed. */
function apart(left: readonly ReadTurn[], right: readonly ReadTurn[]): readonly ComparedTurn[] {
  const rows: ComparedTurn[] = []
  let next = 0
  for (const one of left) {
    const match = right.findIndex(({ tools }, index) => index >= next && tools === one.tools)
    if (match < 0) rows.push({ kind: 'removed', left: one.turn, right: null, differs: [] })
    else {
      rows.push(...right.slice(next, match).map(added))
      rows.push(...right.slice(match, match + 1).map((other) => paired(one, other)))
      next = match + 1
    }
  }
  return [...rows, ...right.slice(next).map(added)]
}

function added({ turn }: ReadTurn): ComparedTurn {
  return { kind: 'added', left: null, right: turn, differs: [] }
}

function paired(one: ReadTurn, other: ReadTurn): ComparedTurn {
  const differs = differencesOf(one, other)
  return { kind: differs.length === 0 ? 'same' : 'changed', left: one.turn, right: other.turn, differs }
}

function differencesOf(one: ReadTurn, other: ReadTurn): ComparedTurn['differs'] {
  return [
    ...(one.text === other.text ? [] : ['text' as const]),
    ...(one.calls === other.calls ? [] : ['calls' as const]),
    ...(one.results === other.results ? [] : ['results' as const]),
    ...(one.turn.model === other.turn.model ? [] : ['model' as const]),
  ]
}

/** A piece of a text beside another text. */
export interface WordChange {
  readonly text: string
  readonly kind: 'same' | 'added' | 'removed'
}

/** Texts that differ in more words than this are shown one after the other. */
const MOST_WORDS = 1500

/**
 * What was added to a text and removed from it, in words.
 *
 * @example
 * wordChanges('a red box', 'a blue box') // a, red (removed), blue (added), box
 */
export function wordChanges(before: string, after: string): readonly WordChange[] {
  if (before === after) return before === '' ? [] : [{ text: before, kind: 'same' }]
  const changes = diffWordsWithSpace(before, after, { maxEditLength: MOST_WORDS })
  const all: readonly WordChange[] = changes?.map(({ value, added: isAdded, removed }) => ({
    text: value,
    kind: isAdded ? 'added' : removed ? 'removed' : 'same',
  })) ?? [
    { text: before, kind: 'removed' },
    { text: after, kind: 'added' },
  ]
  return all.filter(({ text }) => text !== '')
}
