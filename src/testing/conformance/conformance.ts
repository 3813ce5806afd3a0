import { HarnessError } from '../../index.js'
import type { Model } from '../../index.js'
import type { ProviderApi } from '../scripted-provider.js'
import { knownApi } from './api.js'
import type { ConformanceApi } from './api.js'
import { Chance } from './chance.js'
import { Generator } from './generate.js'
import { failureLaws } from './laws/failures.js'
import { mendedLaws } from './laws/mended.js'
import { replyLaws } from './laws/replies.js'
import { requestLaws } from './laws/requests.js'
import type { Case, LawText } from './law.js'
import { onStage } from './stage.js'
import type { ConformanceServer, Stage } from './stage.js'
import { messageOf, Talk } from './talk.js'

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
  const { without = [], seed = Math.floor(Math.random() * 1_000_000_000) } = options
  checkOptions(options)
  const names = Object.keys(LAWS) as LawName[]
  return names
    .filter((name) => !without.includes(name))
    .map((name) => ({ name, says: LAWS[name].says, check: () => checkLaw(name, { ...options, seed }) }))
}

type Settings = ConformanceOptions & { readonly seed: number }

async function checkLaw(name: LawName, { api: given, make, seed, cases = 20, turnMs = 5000 }: Settings): Promise<void> {
  const law: LawText = LAWS[name]
  const count = Math.max(1, Math.round(cases * (law.share ?? 1)))
  const api = typeof given === 'string' ? knownApi(given) : given
  await onStage(api, async (stage) => {
    const model = make(stage)
    for (let number = 0; number < count; number++) {
      try {
        await law.holds(caseOf({ stage, model, seed: seed + number, turnMs }))
      } catch (error) {
        throw broken(name, seed + number, error)
      }
    }
    await model.close?.()
  })
}

interface CaseOptions {
  readonly stage: Stage
  readonly model: Model
  readonly seed: number
  readonly turnMs: number
}

function caseOf({ stage, model, seed, turnMs }: CaseOptions): Case {
  const chance = new Chance(seed)
  const talk = (name?: string): Talk => new Talk(stage, model, { generator: new Generator(chance, name), turnMs })
  return { stage, api: stage.api, chance, talk }
}

function broken(name: LawName, seed: number, error: unknown): Error {
  const again = `To see this case again: \`conformance({ …, seed: ${seed}, cases: 1 })\`.`
  return new Error(`The law \`${name}\` is broken. ${LAWS[name].says}\n${messageOf(error)}\n${again}`, { cause: error })
}

function checkOptions({ make, without = [], seed = 0, cases = 1, turnMs = 1 }: ConformanceOptions): void {
  if (typeof make !== 'function') throw invalid('make', 'a function that makes the model', make)
  const known = Object.keys(LAWS)
  const strange = without.find((name) => !known.includes(name))
  if (strange !== undefined) throw invalid('without', `names of laws (${known.join(', ')})`, strange)
  if (!Number.isSafeInteger(seed)) throw invalid('seed', 'a whole number', seed)
  if (!Number.isSafeInteger(cases) || cases < 1) throw invalid('cases', 'a whole number from 1 up', cases)
  if (!(turnMs >= 1 && turnMs < 2 ** 31)) throw invalid('turnMs', 'a number of ms from 1 up', turnMs)
}

function invalid(name: string, expected: string, got: unknown): HarnessError {
  return new HarnessError('invalid_options', `Expected \`${name}\` to be ${expected}, got \`${String(got)}\`.`)
}
