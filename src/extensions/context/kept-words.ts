import { toolCallsOf } from '#contracts/entry.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { ViewContext } from '#core/extension/view-policy.js'
import { isObject, parseJson } from '#util/json.js'
import { estimateText } from '#contracts/estimate.js'
import { entryContent } from './recall.js'
import { recallHint } from './spans.js'
import type { ViewSpan } from './spans.js'

/** A place in the transcript: the first and the last entry. */
type Range = Omit<ViewSpan, 'entry'>

/** Characters of a person's message that stay word for word; of a longer one its start and end. */
const LONGEST = 2_000
const SHORTEST = 200

/** True for what a person has said: a message, or an answer to a question of a tool. */
export function isSaid(entry: TranscriptEntry): boolean {
  if (entry.role === 'tool') return entry.source?.kind === 'person'
  return entry.role === 'user' && entry.notice !== true
}

/** Tokens of what people said in a range, as a note keeps it. */
export function wordsLength(context: ViewContext, range: Range): number {
  return linesLength(saidLines(context, range, LONGEST))
}

/**
 * What people said in a range that is left out, in its order, in about `most` tokens: short messages word for word, of longer ones the start
 * and the end with a handle. If even that is too much, messages in the middle are left out; the handle of the range has them.
 */
export function keptWords(context: ViewContext, range: Range, most: number): string {
  let lines = saidLines(context, range, LONGEST)
  for (let chars = LONGEST / 2; linesLength(lines) > most && chars >= SHORTEST; chars /= 2) {
    lines = saidLines(context, range, chars)
  }
  const [early, late] = [fitting(lines, most / 2), fitting([...lines].reverse(), most / 2)]
  const left = lines.length - early - late
  if (left <= 0) return lines.join('\n')
  return [...lines.slice(0, early), `[${left} more messages]`, ...lines.slice(lines.length - late)].join('\n')
}

/** The entries with the latest notice of each name that the host gives: without one, the model would lack it in the next request. */
export function lastNotices(transcript: readonly TranscriptEntry[]): ReadonlySet<string> {
  const [names, ids] = [new Set<string>(), new Set<string>()]
  for (const entry of [...transcript].reverse()) {
    if (entry.role !== 'user' || entry.notice !== true) continue
    for (const [, name = ''] of entryContent(entry).text.matchAll(/<host_notice name="([\w-]+)">/g)) {
      if (names.has(name)) continue
      names.add(name)
      ids.add(entry.id)
    }
  }
  return ids
}

/** Skills whose instructions are in a range. */
export function skillsRead({ transcript }: ViewContext, { first, last }: Range): readonly string[] {
  const names = transcript.slice(first, last + 1).flatMap((entry) => {
    const calls = entry.role === 'assistant' ? toolCallsOf(entry.parts) : []
    return calls.flatMap((call) => (call.name === 'skill_read' ? skillName(call.arguments) : []))
  })
  return [...new Set(names)]
}

function skillName(argumentsText: string): readonly string[] {
  const parsed = parseJson(argumentsText)
  const name = parsed.ok && isObject(parsed.value) ? parsed.value['skill_name'] : undefined
  return typeof name === 'string' ? [name] : []
}

function saidLines(context: ViewContext, { first, last }: Range, most: number): readonly string[] {
  return context.transcript.slice(first, last + 1).flatMap((entry, index) => {
    if (!isSaid(entry)) return []
    const { text, parts } = entryContent(entry)
    const files = parts.map(({ type }) => ` [${type}]`).join('')
    const place = first + index
    const isCut = text.length > most || parts.length > 0
    const hint = isCut ? recallHint(context, { first: place, last: place }, 'shows all of it.') : ''
    const half = Math.floor(most / 2)
    const shown = text.length > most ? `${text.slice(0, half)} […] ${text.slice(-half)}`.toWellFormed() : text
    return [`[${entry.id}] ${shown}${files}${hint}`]
  })
}

function linesLength(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + estimateText(line), 0)
}

/** How many of the first lines have `most` tokens together. */
function fitting(lines: readonly string[], most: number): number {
  let sum = 0
  const end = lines.findIndex((line) => (sum += estimateText(line)) > most)
  return end === -1 ? lines.length : end
}
