import type { PendingItem } from '../../index.js'
import { isObject } from '../../util/json.js'
import type { AgUiInterrupt } from './event.js'
import type { AgUiOptions } from './options.js'

const APPROVAL = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' } },
  required: ['approved'],
}

/** JSON Schema of a verdict. */
const VERDICT = {
  type: 'object',
  properties: { outcome: { enum: ['happened', 'did_not_happen', 'run_again'] }, result: {} },
  required: ['outcome'],
}

/** The interrupt of an item that waits for people. */
export function interruptOf(
  item: PendingItem,
  toolCallId: string,
  { toolSchemas }: Pick<AgUiOptions, 'toolSchemas'>,
): AgUiInterrupt {
  const { callId: id, kind, toolName, path } = item
  return {
    id,
    ...asked(item, toolSchemas?.[toolName]),
    toolCallId,
    ...(path.length > 1 && { subagentRunId: path.at(-1) ?? '' }),
    metadata: { thinharness: { kind, ...detailsOf(item) } },
  }
}

function asked(
  { kind, toolName, payload, answerSchema }: PendingItem,
  argumentsSchema: object = { type: 'object' },
): Pick<AgUiInterrupt, 'reason' | 'message'> & { readonly responseSchema: Readonly<Record<string, unknown>> } {
  const text = textOf(payload)
  if (kind === 'approval') {
    const properties = { ...APPROVAL.properties, editedArgs: argumentsSchema }
    const message = text ?? `May \`${toolName}\` run?`
    return { reason: 'tool_call', message, responseSchema: { ...APPROVAL, properties } }
  }
  if (kind === 'question') {
    const message = text ?? `\`${toolName}\` asks a question.`
    return { reason: 'input_required', message, responseSchema: answerSchema ?? {} }
  }
  const message = `\`${toolName}\` was interrupted: it is unknown whether it took effect.`
  return { reason: 'thinharness:unknown_outcome', message, responseSchema: VERDICT }
}

/** The question in a payload: a text, or the text that is called so. */
function textOf(payload: PendingItem['payload']): string | undefined {
  const text = isObject(payload) ? payload['question'] : payload
  return typeof text === 'string' ? text : undefined
}

function detailsOf({ toolName, arguments: text, payload, key, provenance, otherCalls, decision }: PendingItem): object {
  return {
    ...{ toolName, arguments: text },
    ...(payload !== undefined && { payload }),
    ...(key !== undefined && { key }),
    ...(provenance !== undefined && { provenance }),
    ...(otherCalls !== undefined && { otherCalls }),
    ...(decision !== undefined && { decision }),
  }
}
