import { HarnessError } from '../../contracts/errors.js'
import type { ModelCapabilities, ReasoningEffort } from '../../contracts/model.js'
import { isObject } from '../../util/json.js'
import { unknownKey } from '../../util/unknown-key.js'
import type { ProviderOptions, Timeouts } from '../http/options.js'

/** Refuses options of a model factory that cannot be right. Throws `invalid_options`, which names the option. */
export function checkOptions(options: ProviderOptions, ownOptions: readonly string[] = []): void {
  if (!isObject(options)) throw invalid('options', 'an object', options)
  checkKeys(options, [...Object.keys(CHECKS), ...ownOptions], 'option')
  for (const [name, check] of Object.entries(CHECKS)) {
    const value = options[name]
    if (value !== undefined) check(value, name)
  }
  checkConflicts(options)
}

/** Refuses a reasoning effort that the model is known not to take. Throws `invalid_options`, which names those it takes. */
export function checkEffort(model: string, { reasoningEfforts }: ModelCapabilities, effort?: ReasoningEffort): void {
  if (effort === undefined || reasoningEfforts === undefined || reasoningEfforts.includes(effort)) return
  const accepted =
    reasoningEfforts.length === 0
      ? `no \`reasoningEffort\` for \`${model}\`, which is no reasoning model`
      : `\`reasoningEffort\` of \`${model}\` to be one of ${listOf(reasoningEfforts)}`
  throw new HarnessError('invalid_options', `Expected ${accepted}, got \`${effort}\`.`)
}

type Check = (value: unknown, name: string) => void

const EFFORTS: readonly ReasoningEffort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
const INPUTS = ['image', 'file', 'audio']
const OUTPUT_MODES = ['native', 'tool', 'prompted', 'text']
/** The longest time that a timer takes, in ms. */
const LONGEST_MS = 2 ** 31 - 1

const text: Check = (value, name) => {
  if (typeof value !== 'string' || value.trim() === '') throw invalid(name, 'a text that is not empty', value)
}
const yesOrNo: Check = (value, name) => {
  if (typeof value !== 'boolean') throw invalid(name, 'true or false', value)
}
const oneOf =
  (words: readonly string[]): Check =>
  (value, name) => {
    if (typeof value !== 'string' || !words.includes(value)) throw invalid(name, `one of ${listOf(words)}`, value)
  }
const listFrom =
  (words: readonly string[]): Check =>
  (value, name) => {
    if (!Array.isArray(value)) throw invalid(name, `a list of ${listOf(words)}`, value)
    for (const each of value) oneOf(words)(each, name)
  }
const wholeNumber =
  (least: number): Check =>
  (value, name) => {
    const isRight = Number.isSafeInteger(value) && (value as number) >= least
    if (!isRight) throw invalid(name, `a whole number from ${least} up`, value)
  }
const duration: Check = (value, name) => {
  if (value === null) return
  const isRight = typeof value === 'number' && value >= 1 && value <= LONGEST_MS
  if (!isRight) throw invalid(name, `null or a number of ms from 1 to ${LONGEST_MS}`, value)
}
const anyObject: Check = (value, name) => {
  if (!isObject(value)) throw invalid(name, 'an object', value)
}
const withMethod =
  (method: string, what: string): Check =>
  (value, name) => {
    const has = typeof value === 'object' && value !== null && method in value
    if (!has) throw invalid(name, what, value)
  }
const fields =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value, name) => {
    if (!isObject(value)) throw invalid(name, 'an object', value)
    checkKeys(value, Object.keys(checks), `key of \`${name}\``)
    for (const [key, check] of Object.entries(checks)) {
      if (value[key] !== undefined) check(value[key], `${name}.${key}`)
    }
  }

/** A check for each option: the compiler knows when one is missing. */
const CHECKS: { readonly [Name in keyof Required<ProviderOptions>]: Check } = {
  apiKey: (value, name) => {
    if (typeof value !== 'string') throw invalid(name, 'a text', value)
    if (!isKey(value)) throw invalid(name, 'a key', value === '' ? value : NOT_SHOWN)
  },
  baseUrl: checkBaseUrl,
  headers: (value, name) => {
    if (!isObject(value)) throw invalid(name, 'an object', value)
    for (const [header, content] of Object.entries(value)) checkHeader(header, content, `${name}.${header}`)
  },
  client: (value, name) => {
    if (typeof value !== 'object' && typeof value !== 'function') throw invalid(name, 'a client', value)
  },
  fetch: (value, name) => {
    if (typeof value !== 'function') throw invalid(name, 'a function', value)
  },
  dispatcher: withMethod('request', 'a dispatcher of undici'),
  timeouts: fields({
    connectMs: duration,
    firstByteMs: duration,
    idleMs: duration,
    totalMs: duration,
  } satisfies { readonly [Name in keyof Timeouts]-?: Check }),
  maxRetries: wholeNumber(0),
  maxOutputTokens: wholeNumber(1),
  temperature: (value, name) => {
    if (typeof value !== 'number' || !(value >= 0 && value < Infinity)) throw invalid(name, 'a number from 0 up', value)
  },
  reasoningEffort: oneOf(EFFORTS),
  promptCache: (value, name) => {
    if (!isObject(value)) yesOrNo(value, name)
    else fields({ ttl: oneOf(['5m', '1h']), key: text })(value, name)
  },
  capabilities: fields({
    supportsJsonSchemaOutput: yesOrNo,
    nativeSchemas: oneOf(['any', 'closed']),
    supportsTools: yesOrNo,
    permissiveNativeOverride: yesOrNo,
    defaultStructuredOutputMode: oneOf(OUTPUT_MODES),
    reasoningEfforts: listFrom(EFFORTS),
    inputs: listFrom(INPUTS),
    maxOutputTokens: wholeNumber(1),
    contextTokens: wholeNumber(1),
    longCacheWrites: yesOrNo,
  } satisfies { readonly [Name in keyof ModelCapabilities]-?: Check }),
  extraBody: anyObject,
}

/** Whether `text` can go into a header as a key. */
export function isKey(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}

/** Refuses what is no address of a server. A key does not belong into one: addresses are shown in messages. */
export function checkBaseUrl(value: unknown, name: string): void {
  const expected = 'a URL with `http:` or `https:`'
  if (typeof value !== 'string' || !URL.canParse(value)) throw invalid(name, expected, value)
  const { protocol, username, password, host } = new URL(value)
  if (protocol !== 'http:' && protocol !== 'https:') throw invalid(name, expected, value)
  if (username !== '' || password !== '')
    throw invalid(name, `a URL without a password, as in \`${protocol}//${host}\``, NOT_SHOWN)
}

function checkHeader(header: string, content: unknown, name: string): void {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(header)) throw invalid('headers', 'names of headers as keys', header)
  if (typeof content !== 'string' || !/^[\t\x20-\x7e\x80-\xff]*$/.test(content)) {
    throw invalid(name, 'the text of a header', typeof content === 'string' ? NOT_SHOWN : content)
  }
}

const EXCLUDED_BY: Readonly<Record<string, readonly string[]>> = {
  client: ['fetch', 'dispatcher', 'apiKey', 'baseUrl'],
  fetch: ['dispatcher'],
}

function checkConflicts(options: Readonly<Record<string, unknown>>): void {
  for (const [name, others] of Object.entries(EXCLUDED_BY)) {
    const other = others.find((each) => options[name] !== undefined && options[each] !== undefined)
    if (other === undefined) continue
    const message = `Expected \`${name}\` without \`${other}\`: the ${name} decides that itself.`
    throw new HarnessError('invalid_options', message)
  }
}

function checkKeys(value: Readonly<Record<string, unknown>>, known: readonly string[], what: string): void {
  const problem = unknownKey(value, known, what)
  if (problem !== undefined) throw new HarnessError('invalid_options', problem)
}

/** In place of a value that may be a secret. */
const NOT_SHOWN = Symbol('not shown')

function invalid(name: string, expected: string, got: unknown): HarnessError {
  return new HarnessError('invalid_options', `Expected \`${name}\` to be ${expected}, got ${shown(got)}.`)
}

function shown(value: unknown): string {
  if (value === NOT_SHOWN) return 'something else'
  if (typeof value === 'string') return value === '' ? 'an empty text' : `\`${value.slice(0, 100)}\``
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return `\`${String(value)}\``
  return Array.isArray(value) ? 'a list' : `a value of type \`${typeof value}\``
}

function listOf(words: readonly string[]): string {
  return words.map((word) => `\`${word}\``).join(', ')
}
