import type { Envelope } from '../../tools/boundary/envelope.js'
import { isObject } from '../../util/json.js'
import { Mismatch } from '../../util/mismatch.js'
import { boolean, either, jsonObject, list, object, oneOf, partial, string, where } from '../../util/shape.js'
import type { HookAnswers, HookEvent } from './hook-events.js'

/**
 * The answer of a hook of `event`, if the event has a use for one. Throws a plain error for an answer that the event cannot
 * use: a misspelt policy is reported, not mistaken for one without an opinion.
 */
export function checkedAnswer(event: HookEvent, answer: unknown): object | undefined {
  const shape = isAsked(event) ? ANSWERS[event] : undefined
  if (shape === undefined || answer === undefined || answer === null) return undefined
  const read = shape.read(answer)
  if (read instanceof Mismatch) throw new TypeError(read.message(`the answer of a \`${event}\` hook`))
  return read
}

type AskedEvent = 'user_prompt_submit' | 'before_tool_call' | 'after_tool_call' | 'before_subagent_run'
type AnswerTo<Event extends AskedEvent> = NonNullable<HookAnswers[Event]>

const cancel = either(string, oneOf(true))
const plainJson = where(jsonObject, 'an object of plain JSON', isJson)

const ANSWERS = {
  user_prompt_submit: partial<AnswerTo<'user_prompt_submit'>>({
    context: either(string, list(string, 'a list of strings')),
    cancel,
  }),
  before_tool_call: partial<AnswerTo<'before_tool_call'>>({ cancel, args: plainJson }),
  after_tool_call: partial<AnswerTo<'after_tool_call'>>({
    output: string,
    envelope: object<Envelope>({ ok: boolean, content: string, metadata: plainJson }),
  }),
  before_subagent_run: partial<AnswerTo<'before_subagent_run'>>({ cancel }),
}

function isAsked(event: HookEvent): event is AskedEvent {
  return Object.hasOwn(ANSWERS, event)
}

function isJson(value: unknown): boolean {
  try {
    JSON.stringify(value)
    return isObject(value)
  } catch {
    return false
  }
}
