import { toolCallsOf } from '#contracts/entry.js'
import type { ToolEntry, TranscriptEntry } from '#contracts/entry.js'
import { canonicalJson, isObject, parseJson } from '#util/json.js'
import type { RunState } from '#core/state/state.js'
import type { AnnotateCall, OwnExtension } from '#core/extension/own-extension.js'

/** A call and its result, as the model read it. */
export interface JudgedCall {
  readonly name: string
  /** Raw JSON text. */
  readonly arguments: string
  /** The envelope's JSON text. */
  readonly output: string
  readonly ok: boolean
}

/** Says of a call that it brought nothing new. Calls of the same batch are not compared. */
const annotateCall: AnnotateCall = (
  { rules, transcript, notes },
  { name, arguments: text },
  { output, parts, ok, readOnly },
) => {
  if (rules.stall?.ignore.includes(name) !== false) return {}
  const content = outputOf(parts === undefined ? output : [{ type: 'text', text: output }, ...parts])
  return isStale({ name, arguments: text, output: content, ok }, readOnly, earlierCalls(transcript, notes))
    ? { stale: true }
    : {}
}

/** Finds the calls of a run that bring nothing new; the rules of the run say which tools do not count. */
export const stallDetection: OwnExtension = { name: 'stall', annotateCall }

/** How many earlier calls are looked at: enough for going back and forth between several tools. */
const LOOKED_AT = 24
/** A result so long is no coincidence when it comes again, whatever was asked. In characters. */
const LONG = 200
/** Share of pairs of letters that two arguments have in common which differ in little. */
const ALIKE = 0.75
/** As much of the arguments is compared, in characters. */
const COMPARED = 2000

/**
 * True if a call brought nothing new: the same call with the same result; a failure of the
 * same tool for almost the same arguments; and of a tool that only reads, the same result for almost the same arguments,
 * or the same long one for any. A tool that may write does something each time that it is asked for something else.
 */
export function isStale(call: JudgedCall, readOnly: boolean, earlier: readonly JudgedCall[]): boolean {
  const same = earlier.filter(({ name, ok }) => name === call.name && ok === call.ok)
  const isTheSame = same.some((before) => before.output === call.output && isSameText(before.arguments, call.arguments))
  if (isTheSame) return true
  if (!call.ok) return same.some((before) => areAlike(wordsIn(before.arguments), wordsIn(call.arguments)))
  if (!readOnly) return false
  return same.some(
    (before) => before.output === call.output && (call.output.length >= LONG || asksTheSame(before, call)),
  )
}

/** The last calls of a conversation that were answered, in order. */
function earlierCalls(transcript: readonly TranscriptEntry[], notes: RunState['notes']): readonly JudgedCall[] {
  const answers = new Map<string, ToolEntry>()
  const calls: JudgedCall[] = []
  for (let index = transcript.length - 1; index >= 0 && calls.length < LOOKED_AT; index--) {
    const entry = transcript[index]
    if (entry?.role === 'tool') answers.set(entry.callId, entry)
    if (entry?.role !== 'assistant') continue
    for (const call of toolCallsOf(entry.parts)) {
      const answer = answers.get(call.callId)
      const { name, arguments: text } = notes[call.callId]?.call ?? call
      if (answer !== undefined)
        calls.push({ name, arguments: text, output: outputOf(answer.content), ok: !answer.isError })
    }
  }
  return calls
}

function outputOf(content: ToolEntry['content']): string {
  if (typeof content === 'string') return content
  return content.map((part) => (part.type === 'text' ? part.text : JSON.stringify(part))).join('\n')
}

function isSameText(one: string, other: string): boolean {
  return one === other || canonical(one) === canonical(other)
}

/** JSON text with the members of objects in order. */
function canonical(text: string): string {
  const parsed = parseJson(text)
  return parsed.ok ? canonicalJson(parsed.value) : text
}

/** Page 2 is not page 1: calls with different numbers are different calls. */
function asksTheSame(one: JudgedCall, other: JudgedCall): boolean {
  const [before, now] = [wordsIn(one.arguments), wordsIn(other.arguments)]
  return numbersIn(before) === numbersIn(now) && areAlike(before, now)
}

function numbersIn(words: string): string {
  return (words.match(/\d+/g) ?? []).join(' ')
}

/** The values in the arguments, as letters and digits. */
function wordsIn(text: string): string {
  const parsed = parseJson(text)
  const values = parsed.ok ? leavesOf(parsed.value) : [text]
  return values
    .join(' ')
    .slice(0, COMPARED)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()
}

function leavesOf(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(leavesOf)
  return isObject(value) ? Object.values(value).flatMap(leavesOf) : [String(value)]
}

/** Dice's coefficient of the pairs of letters. */
function areAlike(one: string, other: string): boolean {
  if (one === other) return true
  const [before, now] = [pairsIn(one), pairsIn(other)]
  const shared = [...now].filter((pair) => before.has(pair)).length
  return before.size + now.size > 0 && (2 * shared) / (before.size + now.size) >= ALIKE
}

function pairsIn(text: string): ReadonlySet<string> {
  const pairs = new Set<string>()
  for (let index = 0; index + 1 < text.length; index++) pairs.add(text.slice(index, index + 2))
  return pairs
}
