import { HarnessError } from '../contracts/errors.js'
import type { Limits } from '../contracts/limits.js'
import type { Model, ModelSettings } from '../contracts/model.js'
import { parseModelRef } from '../contracts/model-reference.js'
import type { ModelRef } from '../contracts/model-reference.js'
import { isObject } from '../util/json.js'
import { didYouMean } from '../util/suggest.js'
import { unknownKey } from '../util/unknown-key.js'

/** What an option may be; `expected` says it to somebody who wrote something else. */
export interface OptionRule {
  readonly expected: string
  readonly fits: (value: unknown) => boolean
}

export const TEXT: OptionRule = { expected: 'a text', fits: (value) => typeof value === 'string' }
export const FLAG: OptionRule = { expected: 'a boolean', fits: (value) => typeof value === 'boolean' }
export const OBJECT: OptionRule = { expected: 'an object', fits: isObject }

/** Names that are known, and whose values are checked where they are read. */
export function anything<Name extends string>(...names: readonly Name[]): Record<Name, OptionRule> {
  const rule: OptionRule = { expected: 'anything', fits: () => true }
  return Object.fromEntries(names.map((name) => [name, rule])) as Record<Name, OptionRule>
}

export function listOf(what: string, fits: (member: unknown) => boolean): OptionRule {
  return { expected: `a list of ${what}`, fits: (value) => Array.isArray(value) && value.every(fits) }
}

/** An object that is known by what it can do. */
export function having(method: string, expected: string): OptionRule {
  return { expected, fits: (value) => typeof (value as Record<string, unknown> | null)?.[method] === 'function' }
}

/**
 * Refuses options that are no object, names that no rule has, and values that do not fit; `undefined` counts as absent.
 * `what` names one of them: `option of \`Harness\``.
 */
export function checkOptions(given: unknown, rules: Readonly<Record<string, OptionRule>>, what: string): void {
  if (!isObject(given)) {
    throw invalid(`Expected the ${what.replace(/^\w+/, '$&s')} to be an object, got ${nameOf(given)}.`)
  }
  const problem = unknownKey(given, Object.keys(rules), what)
  if (problem !== undefined) throw invalid(problem)
  for (const [name, { expected, fits }] of Object.entries(rules)) {
    const value = given[name]
    if (value === undefined || fits(value)) continue
    const isMixed = Array.isArray(value) && expected.startsWith('a list')
    const got = isMixed ? 'one with something else in it' : nameOf(value)
    throw invalid(`Expected \`${name}\` to be ${expected}, got ${got}.`)
  }
}

export function wholeNumber(name: string, value: unknown, least = 0): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least) return value
  throw invalid(`Expected \`${name}\` to be a whole number from ${least} up, got \`${String(value)}\`.`)
}

export function oneOf<T extends string>(name: string, value: T, allowed: readonly T[]): T {
  if (allowed.includes(value)) return value
  const list = allowed.map((each) => `\`${each}\``).join(', ')
  throw invalid(`Expected \`${name}\` to be one of ${list}, got \`${value}\`.${didYouMean(value, allowed)}`)
}

/** What a value is, for one who expected something else. */
export function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  return `a value of type ${typeof value}`
}

export function invalid(message: string): HarnessError {
  return new HarnessError('invalid_options', message)
}

const LIMITS: Readonly<Record<keyof Limits, OptionRule>> = anything(
  'modelRequests',
  'toolCalls',
  'inputTokens',
  'outputTokens',
  'timeMs',
  'costUsd',
)

/** Longest wait that a timer of the platform knows, in ms: 24.8 days. */
const LONGEST_TIMER_MS = 2_147_483_647

export function checkLimits(given: Limits): void {
  checkOptions(given, LIMITS, 'limit')
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined) continue
    if (name === 'costUsd') dollars('limits.costUsd', value as unknown)
    else wholeNumber(`limits.${name}`, value as unknown)
  }
  if ((given.timeMs ?? 0) <= LONGEST_TIMER_MS) return
  throw invalid(`Expected \`limits.timeMs\` to be at most ${LONGEST_TIMER_MS}, got \`${String(given.timeMs)}\`.`)
}

export function dollars(name: string, value: unknown): number {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value
  throw invalid(`Expected \`${name}\` to be US dollars from 0 up, got \`${String(value)}\`.`)
}

export function checkModel(model: ModelRef | Model | undefined): void {
  if (model === undefined) return
  if (typeof model === 'string') parseModelRef(model)
  else if (typeof (model as { openSession?: unknown }).openSession !== 'function') {
    throw invalid('Expected `model` to be a reference such as `openai:gpt-5.5`, or an object with `openSession()`.')
  }
}

const SETTINGS: Readonly<Record<keyof ModelSettings, OptionRule>> = {
  ...anything('maxOutputTokens', 'temperature', 'reasoningEffort', 'toolChoice'),
  providerOptions: OBJECT,
}

export function checkSettings(settings: ModelSettings): void {
  checkOptions(settings, SETTINGS, 'setting')
  const { maxOutputTokens } = settings
  if (maxOutputTokens !== undefined) wholeNumber('settings.maxOutputTokens', maxOutputTokens, 1)
}
