import { HarnessError } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import { unknownKey } from '../../util/unknown-key.js'
import { checkOptions } from '../wire/check-options.js'
import type { ProviderOptions } from '../http/options.js'

/** Options of every model that make sense where the AI SDK's provider sends the requests, and its own. */
export interface AiSdkOptions extends Pick<ProviderOptions, (typeof SHARED)[number]> {
  /**
   * The AI SDK's provider options, by its names of providers: `{ openai: { serviceTier: 'flex' } }`. Those of the run's
   * settings (`settings.providerOptions`) win.
   */
  readonly providerOptions?: Readonly<Record<string, JsonObject>>
  /** Settings of the AI SDK that this library has no name for. */
  readonly callOptions?: AiSdkCallOptions
}

/** As the AI SDK means them. A provider passes over those that it does not have. */
export interface AiSdkCallOptions {
  readonly topP?: number
  readonly topK?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  readonly seed?: number
  readonly stopSequences?: readonly string[]
}

const SHARED = [
  'headers',
  'timeouts',
  'maxRetries',
  'maxOutputTokens',
  'temperature',
  'reasoningEffort',
  'promptCache',
  'capabilities',
] as const satisfies readonly (keyof ProviderOptions)[]

const OWN = ['providerOptions', 'callOptions']

const CALL_OPTIONS = ['topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'seed', 'stopSequences']

/** Refuses options that cannot be right. Throws `invalid_options`, which names the option. */
export function checkAiSdkOptions(options: AiSdkOptions): void {
  if (isObject(options)) checkKeys(options, [...SHARED, ...OWN], 'option of `fromAiSdk`')
  checkOptions(options, OWN)
  const { providerOptions = {}, callOptions = {} } = options
  checkObject('providerOptions', providerOptions)
  for (const [name, value] of Object.entries(providerOptions)) checkObject(`providerOptions.${name}`, value)
  checkObject('callOptions', callOptions)
  checkKeys(callOptions, CALL_OPTIONS, 'key of `callOptions`')
}

function checkKeys(given: object, known: readonly string[], what: string): void {
  const problem = unknownKey(given, known, what)
  if (problem !== undefined) throw new HarnessError('invalid_options', problem)
}

function checkObject(name: string, value: unknown): void {
  if (isObject(value)) return
  throw new HarnessError(
    'invalid_options',
    `Expected \`${name}\` to be an object, got a value of type \`${typeof value}\`.`,
  )
}
