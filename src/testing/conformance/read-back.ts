import { resultForModel } from '#contracts/entry.js'
import type { AssistantEntry, FailureMark, ToolEntry, TranscriptEntry } from '#contracts/entry.js'
import type { RequestConstants } from '#core/model-session.js'
import { isObject, jsonOr } from '#util/json.js'
import { messageContent, scriptMessage, textContent } from '../script-request.js'
import type { MessageContent, ScriptMessage } from '../script-request.js'
import { differenceError, expectSame, shortJson } from '../expect.js'
import type { ReadWireRequest } from './stage.js'

/**
 * Compares a request with the transcript and the constants. Throws with the first difference. Ids may be translated, as
 * long as a call and its result agree; reasoning may be part of the text.
 */
export function checkSaid(
  request: ReadWireRequest,
  transcript: readonly TranscriptEntry[],
  constants: RequestConstants,
): void {
  const { read } = request
  expectSame('the instructions', read.instructions, constants.instructions)
  expectSame(
    'the tools',
    [...read.tools],
    constants.tools.map((tool) => tool.name),
  )
  const wanted = mergeMessages(transcript.map((entry) => entrySaid(entry, failureMark(request))))
  const given = mergeMessages(read.messages)
  const messageRoles = (messages: readonly Said[]): string => messages.map(({ role }) => role).join(' ')
  expectSame('the order of messages', messageRoles(given), messageRoles(wanted))
  const ids = new Pairs()
  for (const [index, message] of wanted.entries())
    checkMessage(message, given[index] ?? message, { place: `message ${index + 1}`, ids })
  for (const entry of transcript) if (entry.role === 'assistant') checkReasoning(entry, request)
}

/** A reply with reasoning may have it in its text. */
type Said = ScriptMessage & { readonly reasons?: boolean }

function entrySaid(entry: TranscriptEntry, mark: FailureMark): Said {
  const isReasoned = entry.role === 'assistant' && entry.parts.some((part) => part.type === 'reasoning')
  return { ...scriptMessage(entry, mark), ...(isReasoned && { reasons: true }) }
}

/** Consecutive messages of a person may be sent as one. */
function mergeMessages(messages: readonly Said[]): readonly Said[] {
  const all: Said[] = []
  for (const message of messages) {
    const last = all.at(-1)
    if (message.role === 'user' && last?.role === 'user') {
      all[all.length - 1] = { role: 'user', content: `${textContent(last.content)}${textContent(message.content)}` }
    } else all.push(message.role === 'user' ? { role: 'user', content: textContent(message.content) } : message)
  }
  return all
}

/** The ids of calls on both sides, one to one. */
class Pairs {
  readonly #theirs = new Map<string, string>()
  readonly #ours = new Map<string, string>()

  join(ours: string, theirs: string, place: string): void {
    const known = this.#ours.get(theirs)
    if (known !== undefined && known !== ours) {
      throw new Error(`${place}: the calls \`${known}\` and \`${ours}\` have one id in the request, \`${theirs}\`.`)
    }
    this.#theirs.set(ours, theirs)
    this.#ours.set(theirs, ours)
  }

  theirs(ours: string): string | undefined {
    return this.#theirs.get(ours)
  }
}

function checkMessage(
  wanted: Said,
  given: Said,
  { place, ids }: { readonly place: string; readonly ids: Pairs },
): void {
  if (wanted.role === 'user' && given.role === 'user') expectSame(place, given.content, wanted.content)
  if (wanted.role === 'tool' && given.role === 'tool') {
    expectSame(`${place}, whose result it is`, given.callId, ids.theirs(wanted.callId) ?? wanted.callId)
    expectSame(`${place}, the result`, given.content, messageContent(wanted.content))
    expectSame(`${place}, the flag of a failure`, given.isError, wanted.isError)
  }
  if (wanted.role !== 'assistant' || given.role !== 'assistant') return
  if (wanted.reasons !== true) expectSame(`${place}, the text`, given.text, wanted.text)
  else if (!given.text.includes(wanted.text)) throw differenceError(`${place}, the text`, given.text, wanted.text)
  expectSame(
    `${place}, the tools called`,
    given.calls.map((call) => call.name.replace(/[^\w-]/g, '_')),
    wanted.calls.map((call) => call.name.replace(/[^\w-]/g, '_')),
  )
  for (const [index, call] of wanted.calls.entries()) {
    const other = given.calls[index] ?? call
    ids.join(call.callId, other.callId, place)
    checkArguments(other.arguments, call.arguments, `${place}, the arguments of call ${index + 1}`)
  }
}

/** Equal as JSON; arguments that are not a JSON object are in it as a string. */
function checkArguments(given: string, wanted: string, place: string): void {
  const [value, wantedValue] = [jsonOr(given, undefined), jsonOr(wanted, undefined)]
  if (given === wanted || JSON.stringify(value) === JSON.stringify(wantedValue)) return
  if (!isObject(wantedValue) && stringsWithin(value).includes(wanted)) return
  throw differenceError(place, given, wanted)
}

/** The reasoning is in the request: in a form of its own, or in the text. */
function checkReasoning({ parts }: AssistantEntry, { body, read }: ReadWireRequest): void {
  if (read.isContinuation === true) return
  const texts = stringsWithin(body)
  for (const part of parts) {
    if (part.type !== 'reasoning' || part.text === '' || texts.some((text) => text.includes(part.text))) continue
    throw new Error(`Reasoning is lost: the request does not contain ${shortJson(part.text)}.`)
  }
}

/** The results in a request: one for each call, in order. */
export function toolMessages({ read }: ReadWireRequest): (ScriptMessage & { role: 'tool' })[] {
  const calls = read.messages.flatMap((message) => (message.role === 'assistant' ? message.calls : []))
  const results = read.messages.filter((message) => message.role === 'tool')
  const callIds = (each: readonly { readonly callId: string }[]): readonly string[] => each.map(({ callId }) => callId)
  expectSame('the ids of the results', callIds(results), callIds(calls))
  return results
}

/** The content of each result, as a request of this API has it. */
export function resultContents(entries: readonly ToolEntry[], request: ReadWireRequest): readonly MessageContent[] {
  return entries.map((entry) => messageContent(resultForModel(entry, failureMark(request))))
}

function failureMark({ read }: ReadWireRequest): FailureMark {
  return read.messages.some((message) => message.role === 'tool' && message.isError === undefined) ? 'prefix' : 'flag'
}

/** All texts in a JSON value. */
export function stringsWithin(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(stringsWithin)
}
