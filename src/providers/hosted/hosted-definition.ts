import { HarnessError } from '#contracts/errors.js'
import type { HostedTool, ToolDefinition } from '#core/model-session.js'
import type { JsonObject, JsonValue } from '#util/json.js'

/** A definition whose tool the provider executes. */
export type HostedDefinition = ToolDefinition & { readonly hosted: HostedTool }

export function isHosted(tool: ToolDefinition): tool is HostedDefinition {
  return tool.hosted !== undefined
}

/**
 * The error of a model that has no such hosted tool: it names both.
 *
 * @example
 *   if (definition.hosted.kind === 'file_search') throw hostedRefusal(definition, 'acme:large-1', ['web_search'])
 */
export function hostedRefusal(
  { name, hosted: { kind } }: HostedDefinition,
  model: string,
  has: readonly HostedTool['kind'][],
): HarnessError {
  const kinds =
    has.length === 0 ? 'no hosted tools' : `these hosted tools: ${has.map((each) => `\`${each}\``).join(', ')}`
  const what = kind === name ? '' : ` of kind \`${kind}\``
  return new HarnessError(
    'invalid_options',
    `Model \`${model}\` has no hosted tool \`${name}\`${what}. It has ${kinds}.`,
  )
}

/**
 * The fields of a request without those that are not set.
 *
 * @example
 *   setFields({ max_uses: 3, allowed_domains: undefined }) // { max_uses: 3 }
 */
export function setFields(fields: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

/** What the caller adds to the tool for this provider: `providerOptions` of its options. */
export function ownFields({ providerOptions }: JsonObject, provider: string): JsonObject {
  const all = (providerOptions ?? {}) as Readonly<Record<string, JsonObject | undefined>>
  return all[provider] ?? {}
}

/** The place of a person, as APIs take it. */
export function approximate(userLocation: JsonValue | undefined): JsonObject | undefined {
  return userLocation === undefined ? undefined : { type: 'approximate', ...(userLocation as JsonObject) }
}

/** Kept apart from the configuration, which policies, digests and descriptions show. */
const authorizations = new WeakMap<object, string>()

/** Keeps the token of a connector with its configuration. */
export function keepAuthorization(config: JsonObject, token: string): void {
  authorizations.set(config, token)
}

/** The token of a connector, by its configuration. */
export function authorizationOf(config: JsonObject): string | undefined {
  return authorizations.get(config)
}
