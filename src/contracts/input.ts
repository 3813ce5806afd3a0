import type { ContentPart } from './entry.js'
import { HarnessError, messageOf } from './errors.js'
import { isObject, mapStringsLater } from '#util/json.js'

/** A message to a model. */
export type InputMessage = string | readonly ContentPart[]

/** What somebody says: the prompt of a run, a message to a run in progress, a text in an answer to a pending item. */
export interface InputAbout {
  readonly kind: 'prompt' | 'steering' | 'answer'
}

/** Changes what somebody says, or refuses it with a reason. */
export type AskInput = (
  content: InputMessage,
  about: InputAbout,
) => InputMessage | { readonly reject: string } | Promise<InputMessage | { readonly reject: string }>

/** In `use` of sessions: they have asked about what people say, before they stored it. Only members of one run are asked again. */
export const INPUT_IS_ASKED: unique symbol = Symbol('the sessions have asked `input`')

/**
 * What somebody says, as every member lets it pass, the outermost first.
 * @throws HarnessError `guard_blocked` if one refuses it, `hook_failed` if one fails or returns anything else.
 */
export async function admittedInput(
  members: readonly { readonly extension: string; readonly member: AskInput }[],
  content: InputMessage,
  about: InputAbout,
): Promise<InputMessage> {
  let passed = content
  for (const { extension, member } of members) {
    try {
      const answer: unknown = await member(passed, about)
      if (isObject(answer) && typeof answer['reject'] === 'string')
        throw new HarnessError('guard_blocked', `\`${extension}\` refused this ${about.kind}: ${answer['reject']}`)
      if (!isContent(answer, about)) throw new TypeError('Expected the content, or `{ reject }` with a reason.')
      passed = answer
    } catch (cause) {
      if (cause instanceof HarnessError && cause.code === 'guard_blocked') throw cause
      throw new HarnessError('hook_failed', `\`input\` of extension \`${extension}\` failed: ${messageOf(cause)}`, {
        cause,
      })
    }
  }
  return passed
}

function isContent(answer: unknown, { kind }: InputAbout): answer is InputMessage {
  if (typeof answer === 'string') return true
  return kind !== 'answer' && Array.isArray(answer) && answer.every((part) => isObject(part) && 'type' in part)
}

/** An answer with each of its texts as `admit` gives it: those of its value, of edited arguments, and its reason. */
export async function admittedAnswer<Given extends object>(
  given: Given,
  admit: (text: string) => Promise<InputMessage>,
): Promise<Given> {
  const texts = Object.entries(given).filter(([name]) => ['answer', 'editedArguments', 'reason'].includes(name))
  return { ...given, ...((await mapStringsLater(Object.fromEntries(texts), admit)) as Partial<Given>) }
}
