import type { ModelCapabilities, ReasoningEffort } from '#core/model-session.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import { Mismatch } from '#util/mismatch.js'
import {
  boolean,
  either,
  filledString,
  functionOf,
  having,
  integer,
  jsonObject,
  leaf,
  list,
  matching,
  nullable,
  number,
  oneOf,
  partial,
  record,
  secret,
  string,
  where,
} from '#util/validate.js'
import type { Given, PartialFields, Shape } from '#util/validate.js'
import { LONGEST_TIMER_MS } from '#util/timeout.js'
import type { ProviderOptions } from '../http/options.js'

/** Parses the options of a model factory. Throws `invalid_options`, with the name of the option. */
export function parseModelOptions<T extends ProviderOptions>(
  shape: Shape<T>,
  given: unknown,
  factory: string,
): Given<T> {
  const parsed = parse(shape, given, `\`${factory}\``)
  checkConflicts(parsed)
  return parsed
}

/** Retries of a failed request, by default. */
export const DEFAULT_MAX_RETRIES = 2

/** Rejects a reasoning effort that the model is known not to support. Throws `invalid_options`, with the supported ones. */
export function checkEffort(model: string, { reasoningEfforts }: ModelCapabilities, effort?: ReasoningEffort): void {
  if (effort === undefined || reasoningEfforts === undefined || reasoningEfforts.includes(effort)) return
  const accepted =
    reasoningEfforts.length === 0
      ? `no \`reasoningEffort\` for \`${model}\`, which is not a reasoning model`
      : `\`reasoningEffort\` of \`${model}\` to be one of ${reasoningEfforts.map((each) => `\`${each}\``).join(', ')}`
  throw invalidOptions(`Expected ${accepted}, got \`${effort}\`.`)
}

export const apiKey: Shape<string> = secret(matching(/^[\x21-\x7e]+$/, 'a key'))

const duration = nullable(number(1, LONGEST_TIMER_MS))
const effort = oneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')
const headerName = matching(/^[\w!#$%&'*+.^`|~-]+$/, 'names of headers')
const headerText = secret(matching(/^[\t\x20-\x7e\x80-\xff]*$/, 'the value of a header'))
const httpUrl = where(string, 'a URL with `http:` or `https:`', isHttpUrl)
const openUrl = secret(where(string, 'a URL without a password', hasNoPassword))

/** The address of a server. It must not contain a password: addresses are shown in messages. */
export const serverUrl: Shape<string> = {
  expected: httpUrl.expected,
  read: (value) => {
    const url = httpUrl.read(value)
    return url instanceof Mismatch ? url : openUrl.read(url)
  },
}

/** The options of every model factory. */
export const PROVIDER_OPTIONS: PartialFields<ProviderOptions> = {
  apiKey,
  baseUrl: serverUrl,
  headers: record(headerText, headerName),
  client: leaf('a client', (value) => typeof value === 'function' || (typeof value === 'object' && value !== null)),
  fetch: functionOf(),
  dispatcher: having('an undici dispatcher', 'request'),
  timeouts: partial({ connectMs: duration, firstByteMs: duration, idleMs: duration, totalMs: duration }),
  maxRetries: integer(0),
  maxOutputTokens: integer(1),
  temperature: number(0),
  reasoningEffort: effort,
  reasoningSummary: oneOf('auto', 'concise', 'detailed', 'none'),
  promptCache: either(
    boolean,
    partial<{ readonly ttl?: '5m' | '1h' | undefined; readonly key?: string | undefined }>({
      ttl: oneOf('5m', '1h'),
      key: filledString,
    }),
  ),
  capabilities: partial({
    supportsJsonSchemaOutput: boolean,
    nativeSchemas: oneOf('any', 'closed'),
    supportsTools: boolean,
    permissiveNativeOverride: boolean,
    defaultStructuredOutputMode: oneOf('native', 'tool', 'prompted', 'text'),
    reasoningEfforts: list(effort),
    inputs: list(oneOf('image', 'file', 'audio')),
    hostedTools: list(
      oneOf('web_search', 'web_fetch', 'code_execution', 'file_search', 'image_generation', 'connector'),
    ),
    maxOutputTokens: integer(1),
    contextTokens: integer(1),
    requestBytes: integer(1),
    toolSearch: oneOf('definitions', 'parameters', 'none'),
    longCacheWrites: boolean,
  }),
  extraBody: jsonObject,
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}

function hasNoPassword(text: string): boolean {
  const { username, password } = new URL(text)
  return username === '' && password === ''
}

const EXCLUDED_BY = [
  ['client', ['fetch', 'dispatcher', 'apiKey', 'baseUrl']],
  ['fetch', ['dispatcher']],
] as const

function checkConflicts(parsed: ProviderOptions): void {
  for (const [name, others] of EXCLUDED_BY) {
    const other = others.find((each) => parsed[name] !== undefined && parsed[each] !== undefined)
    if (other === undefined) continue
    throw invalidOptions(`Expected \`${name}\` without \`${other}\`: the ${name} decides that.`)
  }
}
