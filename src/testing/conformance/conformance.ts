import { parse } from '../../contracts/parse.js'
import type { Model } from '../../index.js'
import { either, functionOf, having, integer, list, milliseconds, object, oneOf, optional } from '../../util/shape.js'
import { brokenLaw } from '../expect.js'
import type { ProviderApi } from '../scripted-provider.js'
import { knownApi } from './api.js'
import type { ConformanceApi } from './api.js'
import { Chance } from './chance.js'
import { Generator } from './generate.js'
import { failureLaws } from './laws/failures.js'
import { mendedLaws } from './laws/mended.js'
import { replyLaws } from './laws/replies.js'
import { requestLaws } from './laws/requests.js'
import { onStage } from './stage.js'
import type { ConformanceServer } from './stage.js'
import { Talk } from './talk.js'
import type { LawText } from './talk.js'

const LAWS = { ...requestLaws, ...mendedLaws, ...replyLaws, ...failureLaws }

export type LawName = keyof typeof LAWS

export interface ConformanceOptions {
  /** Makes the model. It must send its requests with `fetch`, or to `baseUrl`. */
  readonly make: (server: ConformanceServer) => Model
  /** The API that it speaks: one that is known here, or the server's side of your own. */
  readonly api: ProviderApi | ConformanceApi
  /** Laws that the adapter need not keep, such as `stable_prefix` where the server keeps the conversation. Default: none. */
  readonly without?: readonly LawName[]
  /** Where chance begins, a whole number. Default: another each time. It is told when a law is broken. */
  readonly seed?: number
  /** Cases that are tried for a law. Default 20. */
  readonly cases?: number
  /** Longest time of one turn, in ms. Default 5,000. */
  readonly turnMs?: number
}

/** Something that every adapter must keep. */
export interface Law {
  readonly name: LawName
  /** The law in a sentence. */
  readonly says: string
  /** Tries it. Rejects with an error that says what is broken, and how to see it again. */
  readonly check: () => Promise<void>
}

/**
 * The laws that an adapter must keep, to be tried by any test runner:
 *
 * ```ts
 * const laws = conformance({ api: 'chat', make: ({ fetch }) => openaiCompatible('m', { fetch, baseUrl: 'http://any/v1' }) })
 * for (const { name, check } of laws) test(name, check)
 * ```
 *
 * Conversations and replies are made by chance; what is served goes over the `fetch` that the model is made with, or over
 * a server on this machine. A model that repeats a request tells it (`onRetry`) and is stopped there: no law waits.
 * Throws `invalid_options` for options that cannot be right.
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
    oneOf('responses', 'chat', 'openrouter', 'messages'),
    having<ConformanceApi>('the server side of an API', 'read', 'whole', 'stream', 'error'),
  ),
  without: optional(list(oneOf(...NAMES))),
  seed: optional(integer()),
  cases: optional(integer(1)),
  turnMs: optional(milliseconds),
})

type Settings = Omit<ConformanceOptions, 'without'> & { readonly seed: number }

async function checkLaw(name: LawName, { api: given, make, seed, cases = 20, turnMs = 5000 }: Settings): Promise<void> {
  const law: LawText = LAWS[name]
  const count = Math.max(1, Math.round(cases * (law.share ?? 1)))
  const api = typeof given === 'string' ? knownApi(given) : given
  await onStage(api, async (stage) => {
    const model = make(stage)
    for (let number = seed; number < seed + count; number++) {
      const chance = new Chance(number)
      const talk = (mark?: string): Talk => new Talk({ stage, model, generator: new Generator(chance, mark), turnMs })
      try {
        await law.holds({ stage, chance, talk })
      } catch (error) {
        const hint = `\nTo see this case again: \`conformance({ …, seed: ${number}, cases: 1 })\`.`
        throw brokenLaw({ name, says: law.says }, error, hint)
      }
    }
    await model.close?.()
  })
}
