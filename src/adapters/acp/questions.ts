import type {
  ElicitationContentValue,
  ElicitationPropertySchema,
  ElicitationSchema,
  PermissionOption,
  ToolCallUpdate,
} from '@agentclientprotocol/sdk'
import type { JsonSchema, JsonValue } from '#util/json.js'
import type { PendingItem } from '#contracts/result.js'
import type { ChatAnswer } from '#session/thread/grants.js'
import { isObject } from '#util/json.js'
import type { Remember } from './options.js'
import { editDiffs, oneLine, shownCall, textContent } from './shown-call.js'
import type { ToolFacts } from './shown-call.js'

/** How an editor asks for the answer to a pending item. */
export type AskedItem =
  | { readonly kind: 'permission'; readonly toolCall: ToolCallUpdate; readonly choices: readonly Choice[] }
  | { readonly kind: 'form'; readonly message: string; readonly form: Form }
  /** As a message of the agent: the next prompt is the answer. */
  | { readonly kind: 'text'; readonly message: string }

/** An option of a permission request, and the answer that it stands for. */
export interface Choice {
  readonly option: PermissionOption
  readonly answer: () => ChatAnswer | Promise<ChatAnswer>
}

export interface AskingMeans {
  readonly root: string
  readonly toolOf: (name: string) => ToolFacts | undefined
  readonly remember: Remember | undefined
  /** The editor shows forms. */
  readonly forms: boolean
}

export function askedItem(item: PendingItem, means: AskingMeans): AskedItem {
  const toolCall = askedToolCall(item, means)
  const choices = answerChoices(item, means.remember)
  if (choices !== null) return { kind: 'permission', toolCall, choices }
  const message = questionText(item)
  const form = means.forms ? questionForm(item) : null
  return form === null ? { kind: 'text', message } : { kind: 'form', message, form }
}

/** The options for a decision; null for a question that has other answers. */
function answerChoices(item: PendingItem, remember: Remember | undefined): readonly Choice[] | null {
  const { kind, callId, payload } = item
  const withAnswer = (answer: JsonValue) => (): ChatAnswer => ({ callId, answer })
  if (kind === 'unknown_outcome')
    return [
      choice('happened', ['It took effect', 'allow_once'], withAnswer({ outcome: 'happened' })),
      choice('did_not_happen', ['It did not take effect', 'reject_once'], withAnswer({ outcome: 'did_not_happen' })),
      choice('run_again', ['Run it again', 'allow_once'], withAnswer({ outcome: 'run_again' })),
    ]
  const form = isObject(payload) ? payload['kind'] : undefined
  if (kind === 'question' && form === 'plan')
    return [
      choice('allow', ['Carry out the plan', 'allow_once'], withAnswer({ action: 'approved' })),
      choice('reject', ['Reject the plan', 'reject_once'], withAnswer({ action: 'rejected' })),
    ]
  if (kind === 'question' && form === 'access')
    return [
      choice('allow', ['Allow', 'allow_once'], withAnswer({ approved: true })),
      choice('reject', ['Reject', 'reject_once'], withAnswer({ approved: false })),
    ]
  if (kind === 'question') return null
  const withDecision = (approved: boolean) => (): ChatAnswer => ({ callId, approved })
  const once = [
    choice('allow', ['Allow', 'allow_once'], withDecision(true)),
    choice('reject', ['Reject', 'reject_once'], withDecision(false)),
  ]
  if (remember === undefined) return once
  const withRememberedDecision = (approved: boolean) => async (): Promise<ChatAnswer> => {
    const kept = (await remember(item, { approved })) ?? undefined
    return approved && kept !== undefined ? { callId, approved, remember: kept } : { callId, approved }
  }
  return [
    choice('allow_always', ['Always allow', 'allow_always'], withRememberedDecision(true)),
    ...once,
    choice('reject_always', ['Always reject', 'reject_always'], withRememberedDecision(false)),
  ]
}

function choice(
  optionId: string,
  [name, kind]: readonly [string, PermissionOption['kind']],
  answer: Choice['answer'],
): Choice {
  return { option: { optionId, name, kind }, answer }
}

/** A call of a child run names its agent. */
function askedToolCall(item: PendingItem, { root, toolOf }: AskingMeans): ToolCallUpdate {
  const { callId, toolName, path } = item
  const { title, ...shown } = shownCall(toolName, item.arguments, { root, facts: toolOf(toolName) })
  const preview = questionPreview(item)
  const content = [...editDiffs(toolName, shown.rawInput, root), ...(preview === '' ? [] : [textContent(preview)])]
  return {
    toolCallId: callId,
    name: toolName,
    ...shown,
    status: 'pending',
    title: path.length > 1 ? oneLine(`Subagent: ${title}`) : title,
    ...(content.length > 0 && { content }),
  }
}

/** The preview of a call: a text, the text in it, or JSON. */
function questionPreview({ kind, payload, decision, toolName }: PendingItem): string {
  const reason = decision?.reason ?? null
  const lines: string[] = []
  if (kind === 'unknown_outcome') lines.push(`\`${toolName}\` was interrupted: it is unknown whether it took effect.`)
  if (reason !== null) lines.push(reason)
  if (isObject(payload) && typeof payload['plan'] === 'string') lines.push(payload['plan'])
  else if (isObject(payload) && typeof payload['reason'] === 'string') lines.push(payload['reason'])
  else if (typeof payload === 'string') lines.push(payload)
  else if (payload !== undefined && payload !== null) lines.push(JSON.stringify(payload, null, 2))
  return lines.join('\n\n')
}

/** A question with its options. */
export function questionText({ toolName, payload }: PendingItem): string {
  if (typeof payload === 'string' && payload !== '') return payload
  const question = isObject(payload) ? payload['question'] : undefined
  if (!isObject(payload) || typeof question !== 'string')
    return payload === undefined || payload === null
      ? `\`${toolName}\` asks a question.`
      : `\`${toolName}\` asks:\n\n${JSON.stringify(payload, null, 2)}`
  const options = Array.isArray(payload['options']) ? payload['options'].filter(isObject) : []
  const lines = options.map(({ label, description }) =>
    typeof description === 'string' ? `- ${String(label)}: ${description}` : `- ${String(label)}`,
  )
  return [question, ...(lines.length > 0 ? ['', ...lines] : [])].join('\n')
}

/** A form for an answer. */
export interface Form {
  readonly schema: ElicitationSchema
  readonly answerOf: (content: Readonly<Record<string, ElicitationContentValue>>) => JsonValue
}

/** Name of the only field, if the answer is one value. */
const ANSWER = 'answer'
const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean'])
/** Formats that a form can have. */
const FORMATS: ReadonlySet<unknown> = new Set(['email', 'uri', 'date', 'date-time'])

/** The form for an answer to a question; null if the schema is no flat object and no single value, or asks for a secret. */
export function questionForm({ payload, answerSchema }: Pick<PendingItem, 'payload' | 'answerSchema'>): Form | null {
  const several = choicesOfSeveral(payload)
  if (several !== null) return singleFieldForm({ type: 'array', items: { type: 'string', enum: several } })
  if (answerSchema === undefined) return null
  const field = formField(answerSchema)
  if (field !== null) return singleFieldForm(field)
  const { type, properties, required } = answerSchema as Readonly<Record<string, unknown>>
  if (type !== 'object' || !isObject(properties)) return null
  const fields: Record<string, ElicitationPropertySchema> = {}
  for (const [name, property] of Object.entries(properties)) {
    const shown = isObject(property) ? formField(property) : null
    if (shown === null) return null
    fields[name] = shown
  }
  const names = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []
  return {
    schema: { type: 'object', properties: fields, required: names },
    answerOf: (content) => content,
  }
}

function singleFieldForm(field: ElicitationPropertySchema): Form {
  return {
    schema: { type: 'object', properties: { [ANSWER]: field }, required: [ANSWER] },
    answerOf: (content) => content[ANSWER] ?? null,
  }
}

/** The labels of a question of `ask_user` that several can be chosen of. */
function choicesOfSeveral(payload: PendingItem['payload']): string[] | null {
  if (!isObject(payload) || payload['selection'] !== 'several' || !Array.isArray(payload['options'])) return null
  return payload['options'].flatMap((option) =>
    isObject(option) && typeof option['label'] === 'string' ? option['label'] : [],
  )
}

/** The field for one value; null for a value that is none, and for a secret. */
function formField(schema: JsonSchema | Readonly<Record<string, unknown>>): ElicitationPropertySchema | null {
  const { type, enum: choices, format, writeOnly, ...more } = schema as Readonly<Record<string, unknown>>
  if (format === 'password' || writeOnly === true) return null
  const texts = Array.isArray(choices) && choices.every((choice) => typeof choice === 'string') ? choices : null
  if (choices !== undefined && texts === null) return null
  const known = type ?? (texts === null ? undefined : 'string')
  if (!TYPES.has(known)) return null
  const kept = KEPT.flatMap((name) => (more[name] === undefined ? [] : [[name, more[name]]]))
  return {
    type: known as 'string',
    ...(Object.fromEntries(kept) as object),
    ...(texts !== null && { enum: texts }),
    ...(FORMATS.has(format) && { format: format as 'email' }),
  }
}

const KEPT = ['title', 'description', 'default', 'minLength', 'maxLength', 'pattern', 'minimum', 'maximum']
