import type { JsonObject } from '#util/json.js'
import type { ModelRef } from '#contracts/model-reference.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import type { Model } from '#core/model-session.js'
import {
  anything,
  boolean,
  functionAtOnce,
  functionOf,
  having,
  integer,
  number,
  object,
  optional,
} from '#util/validate.js'
import type { ReplyStore } from './reply-store.js'
import type { CacheEmbedder, SemanticOptions } from './semantic.js'

/** Who asks, as far as a cache of several may keep them apart. */
export interface CacheRequest {
  readonly purpose: string
  readonly metadata: JsonObject
  readonly labels: Readonly<Record<string, string>>
}

export interface CachedOptions {
  readonly store: ReplyStore
  /** How long a reply is kept, in ms. Default: as long as the store has room. */
  readonly ttlMs?: number | undefined
  /**
   * Requests of another scope never get a reply. Default: the tenant of the run (label `tenant`), else `resourceId` of its metadata, as
   * sessions set it; without either, all runs share their replies.
   */
  readonly scope?: ((request: CacheRequest) => string) | undefined
  /**
   * Ignores case, white space, typographic quotes, thousands separators and the mark at the end of the last text of the user. Not for
   * prompts in which they have a meaning. Default false.
   */
  readonly normalise?: boolean | undefined
  /** Also answers a first question that means the same as an earlier one. Default: none does. */
  readonly semantic?: SemanticOptions | undefined
  /** Replies with tool calls are kept too. Default false. */
  readonly toolCalls?: boolean | undefined
}

const OPTIONS = object<CachedOptions>({
  store: having<ReplyStore>('a store of replies, such as `memoryCache()`', 'get', 'set'),
  ttlMs: optional(integer(1)),
  scope: optional(functionAtOnce<(request: CacheRequest) => string>('scope')),
  normalise: optional(boolean),
  semantic: optional(
    object<SemanticOptions>({
      embed: functionOf<CacheEmbedder>(),
      threshold: optional(number(-1, 1)),
      confirm: anything<ModelRef | Model>(),
    }),
  ),
  toolCalls: optional(boolean),
})

/** Throws `invalid_options`. */
export function checkCached(options: CachedOptions): void {
  const { semantic, store } = parse(OPTIONS, options, '`cached`')
  if (semantic === undefined) return
  if ((semantic.confirm as unknown) === undefined)
    throw invalidOptions(
      '`cached`: expected `semantic.confirm` to be a model that confirms a hit: vectors alone cannot.',
    )
  if (store.group === undefined)
    throw invalidOptions('`cached`: expected the store to have `group()`, which `semantic` needs.')
}
