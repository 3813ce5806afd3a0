import { isObject } from '../../util/json.js'
import { unknownKey } from '../../util/unknown-key.js'

/**
 * What a hook of `event` returned, as far as the event has a use for it: an object whose members have their types, or
 * nothing. Throws a plain error for what the event cannot use: a policy that is misspelt is told of, and not taken for one
 * that has nothing to say.
 */
export function checkedAnswer(event: string, answer: unknown): object | undefined {
  const members = MEMBERS[event]
  if (members === undefined || answer === undefined || answer === null) return undefined
  if (!isObject(answer)) throw new TypeError(`Expected it to return nothing or an object, got ${typeof answer}.`)
  const unknown = unknownKey(answer, Object.keys(members), `member of a \`${event}\` hook's answer`)
  if (unknown !== undefined) throw new TypeError(unknown)
  for (const [name, { expected, fits }] of Object.entries(members)) {
    const value = answer[name]
    if (value === undefined || fits(value)) continue
    throw new TypeError(`Expected \`${name}\` of its answer to be ${expected}.`)
  }
  return answer
}

interface Member {
  readonly expected: string
  readonly fits: (value: unknown) => boolean
}

const CANCEL: Member = { expected: 'a text or `true`', fits: (value) => value === true || isText(value) }
const CONTEXT: Member = {
  expected: 'a text or a list of texts',
  fits: (value) => isText(value) || (Array.isArray(value) && value.every(isText)),
}
const ARGS: Member = { expected: 'an object of plain JSON', fits: (value) => isObject(value) && isJson(value) }
const OUTPUT: Member = { expected: 'a text', fits: isText }
const ENVELOPE: Member = { expected: 'an envelope `{ ok, content, metadata }` of plain JSON', fits: isEnvelope }

/** The events whose hooks are asked for something. */
const MEMBERS: Readonly<Record<string, Readonly<Record<string, Member>>>> = {
  user_prompt_submit: { context: CONTEXT, cancel: CANCEL },
  before_tool_call: { cancel: CANCEL, args: ARGS },
  after_tool_call: { output: OUTPUT, envelope: ENVELOPE },
  before_subagent_run: { cancel: CANCEL },
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function isEnvelope(value: unknown): boolean {
  if (!isObject(value)) return false
  const { ok, content, metadata } = value
  return typeof ok === 'boolean' && isText(content) && isObject(metadata) && isJson(metadata)
}

function isJson(value: object): boolean {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}
