import type { ModelRun } from '#contracts/attempt.js'
import { estimateEntry } from '#contracts/estimate.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { ModelSession, ModelTurn, RequestConstants, TurnOptions } from '#core/model-session.js'
import type { JsonObject } from '#util/json.js'
import { CandidateModel, CandidateSessions } from './candidate-model.js'
import type { CandidateOption } from './candidate-model.js'
import { ComposedModel } from './composed-model.js'
import { checkRoute } from './options.js'
import { askPrepaid } from './prepaid.js'

/** A request, as far as it decides who is asked. */
export interface RouteRequest {
  /** Why the model is asked: `main` in the conversation itself, else `summarise`, `judge`, `plan`, `decide` or the asker's own word. */
  readonly purpose: string
  /** Rough number of tokens of the newest turn: of all entries since the last reply. */
  readonly tokens: number
  /** Number of the request in its run, from 1. */
  readonly turn: number
  readonly hasTools: boolean
  readonly metadata: JsonObject
  readonly labels: Readonly<Record<string, string>>
}

/**
 * A model that asks one of several, by its key: as `choose` says, else by the purpose of the request. A key that is missing means
 * `main`, and so does a chooser that throws; without `main`, the first.
 * @throws HarnessError `invalid_options` for no model, and for a value that is none.
 * @example
 * const model = route({ main: 'anthropic:claude-sonnet-5', summarise: 'openai:gpt-5.5-mini' })
 * const harness = new Harness({ model })
 * const { text } = await harness.run('Go.')
 */
export function route(
  models: Readonly<Record<string, CandidateOption>>,
  choose: (request: RouteRequest) => string = ({ purpose }) => purpose,
): ComposedModel {
  checkRoute(models, choose)
  const candidates = new Map(Object.entries(models).map(([key, option]) => [key, new CandidateModel(option, {})]))
  return new RouteModel(candidates, choose)
}

/** For `route`: `cheap`, `standard` or `premium`, by the length of the newest turn alone. */
export function byComplexity({ cheapTokens = 200, premiumTokens = 1_500 } = {}): (request: RouteRequest) => string {
  return ({ tokens }) => (tokens <= cheapTokens ? 'cheap' : tokens < premiumTokens ? 'standard' : 'premium')
}

type Choose = (request: RouteRequest) => string

class RouteModel extends ComposedModel {
  readonly #candidates: ReadonlyMap<string, CandidateModel>
  readonly #choose: Choose

  constructor(candidates: ReadonlyMap<string, CandidateModel>, choose: Choose) {
    const first = mainOf(candidates)
    super(
      [...(first === undefined ? [] : [first]), ...[...candidates.values()].filter((each) => each !== first)].map(
        ({ model }) => model,
      ),
    )
    this.#candidates = candidates
    this.#choose = choose
  }

  asks(constants: RequestConstants): ReturnType<ComposedModel['asks']> {
    return [...this.#candidates.values()].map((each) => ({ model: each.model, constants: each.constants(constants) }))
  }

  openSession(run?: ModelRun): ModelSession {
    return new RouteSession(this.#candidates, this.#choose, run)
  }
}

class RouteSession implements ModelSession {
  readonly #candidates: ReadonlyMap<string, CandidateModel>
  readonly #choose: Choose
  readonly #run: ModelRun | undefined
  readonly #sessions: CandidateSessions

  constructor(candidates: ReadonlyMap<string, CandidateModel>, choose: Choose, run: ModelRun | undefined) {
    this.#candidates = candidates
    this.#choose = choose
    this.#run = run
    this.#sessions = new CandidateSessions(run)
  }

  turn(view: readonly TranscriptEntry[], constants: RequestConstants, options: TurnOptions): Promise<ModelTurn> {
    const { purpose = 'main', metadata = {}, labels = {} } = this.#run ?? {}
    const request = { purpose, tokens: newestTokens(view), turn: options.turn ?? 1, metadata, labels }
    const candidate = this.#chosen({ ...request, hasTools: constants.tools.length > 0 })
    return askPrepaid(candidate.model, options, (paid) => this.#sessions.turn(candidate, view, constants, paid))
  }

  close(): void {
    this.#sessions.close()
  }

  #chosen(request: RouteRequest): CandidateModel {
    const main = mainOf(this.#candidates)
    if (main === undefined) throw new RangeError('Expected a route with at least one model.')
    try {
      return this.#candidates.get(this.#choose(request)) ?? main
    } catch {
      return main
    }
  }
}

function mainOf(candidates: ReadonlyMap<string, CandidateModel>): CandidateModel | undefined {
  return candidates.get('main') ?? candidates.values().next().value
}

/** Tokens of the entries since the last reply. */
function newestTokens(view: readonly TranscriptEntry[]): number {
  let tokens = 0
  for (let index = view.length - 1; index >= 0; index--) {
    const entry = view[index]
    if (entry === undefined || entry.role === 'assistant') break
    tokens += estimateEntry(entry)
  }
  return tokens
}
