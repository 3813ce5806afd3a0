import { HarnessError } from '../../contracts/errors.js'
import type { Model } from '../../contracts/model.js'
import { isObject } from '../../util/json.js'

/** Refuses a turn of a custom model that has another shape, with the name of the member. */
export function checkTurn(turn: unknown, { provider, id }: Pick<Model, 'provider' | 'id'>): void {
  const problem = problemOf(turn)
  if (problem === undefined) return
  throw new HarnessError('provider_error', `Model \`${provider}:${id}\` returned a turn of another shape: ${problem}.`)
}

function problemOf(turn: unknown): string | undefined {
  if (!isObject(turn)) return `expected an object, got \`${String(turn)}\``
  const { entry } = turn
  if (!isObject(entry)) return '`entry` must be an object'
  const { role, parts, finishReason, usage } = entry
  if (role !== 'assistant') return "`entry.role` must be `'assistant'`"
  if (!Array.isArray(parts)) return '`entry.parts` must be a list'
  const index = parts.findIndex((part) => !isObject(part) || typeof part['type'] !== 'string')
  if (index >= 0) return `\`entry.parts[${index}]\` must be an object with a \`type\``
  const call = parts.findIndex((part: Record<string, unknown>) => part['type'] === 'tool_call' && !isCall(part))
  if (call >= 0) return `\`entry.parts[${call}]\` must have \`callId\`, \`name\` and \`arguments\`, all strings`
  if (typeof finishReason !== 'string') return '`entry.finishReason` must be a string'
  return isObject(usage) ? undefined : '`entry.usage` must be an object'
}

function isCall({ callId, name, arguments: text }: Readonly<Record<string, unknown>>): boolean {
  return [callId, name, text].every((member) => typeof member === 'string')
}
