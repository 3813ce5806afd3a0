import { defineTool } from '#core/tools/define.js'
import { ToolResult } from '#core/tools/result.js'
import type { JsonSchema } from '#util/json.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'
import { invalidArguments } from './result.js'

/** A choice of a question. */
export interface QuestionOption {
  readonly label: string
  readonly description?: string
}

/** The payload of the pending item of `ask_user`, for pages. */
export interface UserQuestion {
  readonly kind: 'question'
  readonly question: string
  /** Empty: the answer is free text. */
  readonly options: readonly QuestionOption[]
  /** `text`: a string. `one`: the label of an option, or a string of the person's own. `several`: a list of these. */
  readonly selection: 'text' | 'one' | 'several'
}

interface QuestionArguments {
  readonly question: string
  readonly options?: readonly QuestionOption[]
  readonly selection?: 'one' | 'several'
}

const PARAMETERS: JsonSchema = {
  type: 'object',
  properties: {
    question: { type: 'string', minLength: 1 },
    options: {
      type: 'array',
      description: 'Two to four choices. Leave them out for a free answer.',
      items: {
        type: 'object',
        properties: { label: { type: 'string', minLength: 1 }, description: { type: 'string' } },
        required: ['label'],
        additionalProperties: false,
      },
    },
    selection: { enum: ['one', 'several'], description: 'How many options can be chosen. Default: one.' },
  },
  required: ['question'],
  additionalProperties: false,
}

const ONE: JsonSchema = { type: 'string', minLength: 1 }
const SEVERAL: JsonSchema = { anyOf: [ONE, { type: 'array', items: ONE }] }

/**
 * The tool `ask_user`: the model asks the person a question, with or without options, and the run waits for the answer. The
 * pending item has a `UserQuestion` as its payload.
 */
export function askUser(): ToolSpec {
  return defineTool({
    name: 'ask_user',
    description:
      'Ask the user one question and wait for the answer. Give options if there are a few likely answers; the user can always answer freely.',
    parameters: PARAMETERS,
    annotations: { readOnly: true, openWorld: false },
    handler: async (args, { ask }) => {
      const { question, options = [], selection } = args as unknown as QuestionArguments
      if (selection !== undefined && options.length === 0)
        return invalidArguments('`selection` needs `options`. Give options, or leave `selection` out for a free answer.')
      const payload: UserQuestion = {
        kind: 'question',
        question,
        options,
        selection: options.length === 0 ? 'text' : (selection ?? 'one'),
      }
      const answer = (await ask(payload, payload.selection === 'several' ? SEVERAL : ONE)) as unknown as
        string | readonly string[]
      const answers = typeof answer === 'string' ? [answer] : answer
      return new ToolResult({ content: `The user answered: ${answers.join(', ')}`, metadata: { answer } })
    },
  })
}
