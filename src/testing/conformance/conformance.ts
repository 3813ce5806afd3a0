import { parse } from '#contracts/parse.js'
import type { Model } from '#core/model-session.js'
import { either, functionOf, having, integer, list, milliseconds, object, oneOf, optional } from '#util/validate.js'
import { brokenLaw } from '../expect.js'
import type { ProviderApi } from '../scripted-provider.js'
import { knownApi, onStage } from './stage.js'
import type { ConformanceApi, ConformanceServer } from './stage.js'
import { Chance, Generator } from './generate.js'
import { failureLaws, mendedLaws } from './laws/failures.js'
import { replyLaws } from './laws/replies.js'
import { requestLaws } from './laws/requests.js'
import { Talk } from './talk.js'
import type { LawText } from './talk.js'

const LAWS = { ...requestLaws, ...mendedLaws, ...replyLaws, ...failureLaws }

export type LawName = keyof typeof LAWS

export interface ConformanceOptions {
  /** Creates the model. It must send its requests with `fetch`, or to `baseUrl`. */
  readonly make: (server: ConformanceServer) => Model
  /** The API of the model: a known one, or the server's side of your own. */
  readonly api: ProviderApi | ConformanceApi
  /** Laws that do not apply, such as `stable_prefix` if the server stores the conversation. Default: none. */
  readonly without?: readonly LawName[] | undefined
  /** Seed of the random cases, a whole number. Default: random. The error of a broken law contains it. */
  readonly seed?: number | undefined
  /** Number of cases for each law. Default 20. */
  readonly cases?: number | undefined
  /** Longest time of one turn, in ms. Default 20,000. */
  readonly turnMs?: number | undefined
}

/** A rule that every adapter must follow. */
export interface Law {
  readonly name: LawName
  /** The law in a sentence. */
  readonly says: string
  /** Checks it. Rejects with an error that states the problem and how to reproduce it. */
  readonly check: () => Promise<void>
}

/**
 * The laws that an adapter must keep, for any test runner:
 *
 * ```ts
 * const laws = conformance({ api: 'chat', make: ({ fetch }) => openaiCompatible('m', { fetch, baseUrl: 'http://any/v1' }) })
 * for (const { name, check } of laws) test(name, check)
 * ```
 *
 * Conversations and replies are random. Replies are served through the `fetch` that the model is created with, or by a
 * server on this machine. A model that retries a request reports it (`onRetry`) and is stopped there: no law waits.
 * Throws `invalid_options`.
 */
export function conformance(options: ConformanceOptions): readonly Law[] {
  const { without = [], seed = Math.floor(Math.random() * 1_000_000_000), ...given } = parse(OPTIONS, options, NAME)
  return NAMES.filter((name) => !without.includes(name)).map((name) => ({
    name,
    says: LAWS[name].says,
    check: () => checkLaw(name, { ...given, seed }),
  }))
}

const NAME = '`conformance`'
const NAMES = Object.keys(LAWS) as LawName[]

const OPTIONS = object<ConformanceOptions>({
  make: functionOf(),
  api: either(
    oneOf('responses', 'chat', 'openrouter', 'messages', 'gemini'),
    having<ConformanceApi>('the server side of an API', 'read', 'whole', 'stream', 'error'),
  ),
  without: optional(list(oneOf(...NAMES))),
  seed: optional(integer()),
  cases: optional(integer(1)),
  turnMs: optional(milliseconds),
})

type Settings = Omit<ConformanceOptions, 'without'> & { readonly seed: number }

async function checkLaw(
  name: LawName,
  { api: given, make, seed, cases = 20, turnMs = 20_000 }: Settings,
): Promise<void> {
  const law: LawText = LAWS[name]
  const count = Math.max(1, Math.round(cases * (law.share ?? 1)))
  const api = typeof given === 'string' ? knownApi(given) : given
  await onStage(api, async (stage) => {
    const model = make(stage)
    for (let number = seed; number < seed + count; number++) {
      const chance = new Chance(number)
      const beginTalk = (mark?: string): Talk =>
        new Talk({ stage, model, generator: new Generator(chance, mark), turnMs })
      try {
        await law.holds({ stage, chance, talk: beginTalk })
      } catch (error) {
        const hint = `\nTo see this case again: \`conformance({ …, seed: ${number}, cases: 1 })\`.`
        throw brokenLaw({ name, says: law.says }, error, hint)
      }
    }
    await model.close?.()
  })
}
