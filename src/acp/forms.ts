import type { ElicitationContentValue, ElicitationPropertySchema, ElicitationSchema } from '@agentclientprotocol/sdk'
import type { JsonSchema, JsonValue, PendingItem } from '../index.js'
import { isObject } from '../util/json.js'

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
export function formOf({ payload, answerSchema }: Pick<PendingItem, 'payload' | 'answerSchema'>): Form | null {
  const several = choicesOfSeveral(payload)
  if (several !== null) return single({ type: 'array', items: { type: 'string', enum: several } })
  if (answerSchema === undefined) return null
  const field = fieldOf(answerSchema)
  if (field !== null) return single(field)
  const { type, properties, required } = answerSchema as Readonly<Record<string, unknown>>
  if (type !== 'object' || !isObject(properties)) return null
  const fields: Record<string, ElicitationPropertySchema> = {}
  for (const [name, property] of Object.entries(properties)) {
    const shown = isObject(property) ? fieldOf(property) : null
    if (shown === null) return null
    fields[name] = shown
  }
  const names = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []
  return {
    schema: { type: 'object', properties: fields, required: names },
    answerOf: (content) => content,
  }
}

function single(field: ElicitationPropertySchema): Form {
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
function fieldOf(schema: JsonSchema | Readonly<Record<string, unknown>>): ElicitationPropertySchema | null {
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
